"""Writes the tables of docs/results.md, and its pictures, from the run directories under results/.

    python tools/results_page.py

A table stands between ``<!-- results FOLDER TASK -->`` and ``<!-- end -->``: FOLDER below results/, TASK as in
``peer-rl list tasks``. ``<!-- results FOLDER TASK figure1 -->`` also draws docs/figures/figure1-SUITE-NAME.png, DRD and
cosine as in the paper's figure 1, and tells the return of random play. ``<!-- results FOLDER TASK scores TABLE -->``
adds each run's score by three rules, and what the paper's TABLE prints for the task. tests/test_results.py compares the
page with what this would write.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from peer_rl.paper.figure1 import draw_figure1, random_play
from peer_rl.paper.published import score_table
from peer_rl.paper.report import write_report
from peer_rl.report.runs import Group, RunRecord, find_runs, group_runs
from peer_rl.report.statistics import BEST, SCORE, WITHIN
from peer_rl.settings.tasks import find_task

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results.md"
BLOCK = re.compile(r"(<!-- results (\S+) (\S+)( figure1| scores (\S+))? -->\n).*?(<!-- end -->)", re.DOTALL)
QUARTERS = (0.25, 0.5, 0.75, 1.0)


def groups_of(folder: str, task: str) -> list[Group]:
    """The variants of one task."""
    return [group for group in group_runs(find_runs([ROOT / "results" / folder])) if group.task == task]


def table(groups: list[Group]) -> str:
    """One row for each variant; a cell has each seed's evaluation at that share of the budget."""
    lines = [
        "| variant | seeds | agent steps | a quarter | half | three quarters | the end |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for group in groups:
        cells = [" / ".join(_return_at(record, share) for record in group.finished) for share in QUARTERS]
        seeds = ", ".join(map(str, group.seeds))
        lines.append(f"| {group.label} | {seeds} | {_steps(group):,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _steps(group: Group) -> int:
    return int(group.mean_count("step"))


def _return_at(record: RunRecord, share: float) -> str:
    """The mean return of the last evaluation up to that share of the steps."""
    evaluations = record.rows["eval"]
    limit = share * evaluations[-1]["step"]
    reached = [row for row in evaluations if row["step"] <= limit]
    return f"{reached[-1]['mean']:.0f}" if reached else "-"


def scores(groups: list[Group], task: str, name: str) -> str:
    """Each seed's score by our rule, by the paper's and by CURL's, and the paper's own numbers for the task."""
    lines = [
        "",
        "| variant | seeds | final policy, 100 games | games within 125,000 steps | best evaluation | frames |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for group in groups:
        cells = [" / ".join(f"{rule.of(run):.0f}" for run in group.finished) for rule in (SCORE, WITHIN, BEST)]
        seeds = ", ".join(map(str, group.seeds))
        lines.append(f"| {group.label} | {seeds} | {' | '.join(cells)} | {int(group.mean_count('frame')):,} |")
    published = score_table(name)
    printed = [f"{score.system} {score.mean:g}" for score in published.scores if score.task == task]
    lines += ["", f"The paper's {published.number} has for this task: {', '.join(printed)}.", ""]
    return "\n".join(lines)


def block(found: re.Match[str]) -> str:
    """A block written anew."""
    groups = groups_of(found[2], found[3])
    text = table(groups)
    if found[5]:
        text += scores(groups, found[3], found[5])
    elif found[4]:
        level, episodes = random_play(groups)
        text += (
            f"\nRandom play has a return of {level:.0f}, the mean of the {episodes} episodes before learning began.\n"
        )
    return f"{found[1]}{text}{found[6]}"


def render(text: str) -> str:
    """The page with its tables written anew."""
    return BLOCK.sub(block, text)


def draw(text: str) -> None:
    """Each task's learning curves, as the report draws them, beside the page, and figure 1 where it is asked for."""
    for found in BLOCK.finditer(text):
        if found[4] == " figure1":
            name = f"figure1-{find_task(found[3]).slug}.png"
            draw_figure1(groups_of(found[2], found[3]), PAGE.parent / "figures" / name)
    for folder in {found[2] for found in BLOCK.finditer(text)}:
        with tempfile.TemporaryDirectory() as out:
            write_report(find_runs([ROOT / "results" / folder]), Path(out), title="")
            for picture in Path(out).glob("learning-*.png"):
                shutil.copy(picture, PAGE.parent / "figures" / picture.name)


if __name__ == "__main__":
    (PAGE.parent / "figures").mkdir(exist_ok=True)
    PAGE.write_text(render(PAGE.read_text()))
    draw(PAGE.read_text())
