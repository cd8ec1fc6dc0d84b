"""Writes the tables of docs/results.md, and its pictures, from the run directories under results/.

    python tools/results_page.py

A table stands between ``<!-- results FOLDER TASK -->`` and ``<!-- end -->``: FOLDER below results/, TASK as in
``peer-rl list tasks``. tests/test_results.py compares the page with what this would write.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from peer_rl.experiments.report import write_report
from peer_rl.experiments.runs import Group, RunRecord, find_runs, group_runs

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results.md"
BLOCK = re.compile(r"(<!-- results (\S+) (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
QUARTERS = (0.25, 0.5, 0.75, 1.0)


def table(folder: str, task: str) -> str:
    """One row for each variant; a cell has each seed's evaluation at that share of the budget."""
    groups = [group for group in group_runs(find_runs([ROOT / "results" / folder])) if group.task == task]
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


def render(text: str) -> str:
    """The page with its tables written anew."""
    return BLOCK.sub(lambda block: f"{block[1]}{table(block[2], block[3])}{block[4]}", text)


def draw(text: str) -> None:
    """Each task's learning curves, as the report draws them, beside the page."""
    for folder in {block[2] for block in BLOCK.finditer(text)}:
        with tempfile.TemporaryDirectory() as out:
            write_report(find_runs([ROOT / "results" / folder]), Path(out), title="")
            for picture in Path(out).glob("learning-*.png"):
                shutil.copy(picture, PAGE.parent / "figures" / picture.name)


if __name__ == "__main__":
    (PAGE.parent / "figures").mkdir(exist_ok=True)
    PAGE.write_text(render(PAGE.read_text()))
    draw(PAGE.read_text())
