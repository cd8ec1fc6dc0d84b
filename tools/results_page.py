"""Writes every table of runs in README.md and docs/, and the pictures of docs/results.md, from results/.

    python tools/results_page.py

A table stands between a comment and ``<!-- end -->``. The comment names what it shows:

- ``<!-- results FOLDER TASK -->``: returns over training of the runs of TASK in results/FOLDER. With ``figure1`` at the
  end also docs/figures/figure1-SUITE-NAME.png (DRD and cosine as in the paper's figure 1) and random play's return.
  With ``scores TABLE`` each run's score by three rules, and what the paper's TABLE prints for the task.
- ``<!-- gridworld ENCODING -->``: the variants of the grid world's plan with that encoding and their paired differences
  to plain DQN. With ``verdicts`` for ENCODING: what holds in each encoding.
- ``<!-- ledger BLOCK -->``: verdict and table of a block of results/ledger.toml. ``short``: without p and P(better).
- ``<!-- status -->``: how many runs of each experiment are finished.

tests/test_results.py compares the pages with what this would write.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from ledger_picture import draw_ledger

from peer_rl.launch.sweep import read_sweep
from peer_rl.paper.catalogue import CATALOGUE
from peer_rl.paper.ledger import Answer, Ledger, answers, read_ledger
from peer_rl.paper.ledger_section import answer_table, sentence
from peer_rl.paper.plan import Choice, planned_runs, stand_ins
from peer_rl.paper.published import score_table
from peer_rl.paper.report import write_report
from peer_rl.paper.training_figure import draw_training, random_play
from peer_rl.report.figures import draw_figure3
from peer_rl.report.gridworld import COSINE, ERROR, NORM, STEPS, Study, place, studies
from peer_rl.report.gridworld_figure import draw_verdicts, short_name
from peer_rl.report.gridworld_tables import CONTROL_LEVEL, overview_table
from peer_rl.report.runs import Group, RunRecord, find_runs, group_runs
from peer_rl.report.scores import BEST, LEVEL, SCORE, WITHIN, Summary
from peer_rl.report.tables import with_interval, with_spread
from peer_rl.settings.tasks import find_task

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGES = tuple(
    ROOT / name for name in ("README.md", "docs/index.md", "docs/results.md", "docs/status.md", "docs/gridworld.md")
)
FIGURES = ROOT / "docs" / "figures"
BLOCK = re.compile(r"(<!-- (results|gridworld|ledger|status)((?: [\w./-]+)*) -->\n).*?(<!-- end -->)", re.DOTALL)
GRIDWORLD_SEEDS = 10
"""Of every variant in results/gridworld.toml."""
QUARTERS = (0.25, 0.5, 0.75, 1.0)


def as_markdown(header: list[str], rows: Iterable[list[str]]) -> str:
    """A table, in which an interval, a deviation or a count does not break over lines."""
    lines = [header, ["---"] * len(header), *([_unbroken(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _unbroken(cell: str) -> str:
    return re.sub(r" (?=±|/ )|(?<=±) |(?<=,) (?=[+-]?[\d.]+\])|(?<=\d) (?=of \d)|(?<=\d of) (?=\d)", "\u00a0", cell)


@cache
def records(folder: str) -> list[RunRecord]:
    """Every run below a folder of results/."""
    return find_runs([RESULTS / folder])


def groups_of(folder: str, task: str) -> list[Group]:
    """The variants of one task."""
    return [group for group in group_runs(records(folder)) if group.task == task]


def _variant(group: Group) -> str:
    """A short name; the options that all variants of a task share stand above the table."""
    config = group.config
    name = config.agent.upper() + (f" + PEER ({config.beta:g})" if config.beta else "")
    options = {"exploration-noise0.2": "noise 0.2", "updates2": "2 updates a step"}
    parts = group.key[2].split("+")
    return ", ".join([name, *(text for option, text in options.items() if option in parts)])


def returns_table(groups: list[Group]) -> str:
    """One row for each variant; a cell has each seed's evaluation at that fraction of the budget."""
    rows = [
        [
            _variant(group), ", ".join(map(str, group.seeds)), f"{int(group.mean_count('step')):,}",
            *(" / ".join(_return_at(record, share) for record in group.finished) for share in QUARTERS),
        ]
        for group in groups
    ]  # fmt: skip
    return as_markdown(["variant", "seeds", "agent steps", "25 %", "50 %", "75 %", "end"], rows)


def _return_at(record: RunRecord, share: float) -> str:
    """The mean return of the last evaluation up to that fraction of the steps."""
    evaluations = record.rows["eval"]
    limit = share * evaluations[-1]["step"]
    reached = [row for row in evaluations if row["step"] <= limit]
    return f"{reached[-1]['mean']:.0f}" if reached else "-"


def scores(groups: list[Group], task: str, name: str) -> str:
    """Each seed's score by our rule, by the paper's and by CURL's, and the paper's own numbers for the task."""
    header = ["variant", "seeds", "final policy, 100 games", "games within 125,000 steps", "best evaluation", "frames"]
    rows = [
        [
            _variant(group), ", ".join(map(str, group.seeds)),
            *(" / ".join(f"{rule.of(run):.0f}" for run in group.finished) for rule in (SCORE, WITHIN, BEST)),
            f"{int(group.mean_count('frame')):,}",
        ]
        for group in groups
    ]  # fmt: skip
    published = score_table(name)
    printed = ", ".join(f"{score.system} {score.mean:g}" for score in published.scores if score.task == task)
    return f"\n{as_markdown(header, rows)}\nThe paper's {published.number} has for this task: {printed}.\n\n"


def results_block(folder: str, task: str, *more: str) -> str:
    """Learning curves as a table, and what ``more`` asks for."""
    groups = groups_of(folder, task)
    text = returns_table(groups)
    if more[:1] == ("scores",):
        text += scores(groups, task, more[1])
    elif more == ("figure1",):
        level, episodes = random_play(groups)
        text += f"\nRandom play returns {level:.0f} (mean of the {episodes} episodes before learning starts).\n"
    return text


@cache
def gridworld_studies() -> dict[str, Study]:
    """By encoding, of the paper profile."""
    return {study.encoding: study for study in studies(group_runs(records("gridworld"))) if study.profile == "paper"}


def gridworld_block(name: str) -> str:
    """``verdicts``: what holds in each encoding. Else a table of that encoding, a row for each variant of the plan."""
    if name == "verdicts":
        table = overview_table([study for _, study in sorted(gridworld_studies().items())], GRIDWORLD_SEEDS)
        return as_markdown(
            table.header, [[re.sub(r"^([^:]+): ", r"**\1**: ", cell) for cell in row] for row in table.rows]
        )
    study = gridworld_studies()[name]
    measured = {summaries[0].measure.name: summaries for summaries in study.summaries}
    rows = {}
    for found in zip(*(measured[measure.name] for measure in (COSINE, ERROR, STEPS, NORM)), strict=True):
        group = found[0].group
        level = LEVEL if group.label in study.paper else CONTROL_LEVEL
        cells = [cell for one in found[:3] for cell in (with_spread(one), _difference(one, level))]
        rows[group.key[2]] = [short_name(group.config), str(len(group.finished)), *cells, with_spread(found[3])]
    planned = read_sweep(RESULTS / "gridworld.toml", RESULTS / "gridworld").jobs
    variants = {job.path.parent.name: job.config for job in planned if job.config.encoding == name}
    order = sorted(variants, key=lambda one: (short_name(variants[one]) != "DQN", place(variants[one])))
    header = ["agent", "seeds", "(b) final cosine", "difference", "(c) error of the Q difference", "difference"]
    header += ["(d) steps per episode", "difference", NORM.title]
    lines = [rows.get(one, [short_name(variants[one]), "not run", *("-" * (len(header) - 2))]) for one in order]
    return as_markdown(header, lines)


def _difference(one: Summary, level: float) -> str:
    if one.difference is None:
        return "-"
    return with_interval(one.difference, one.measure.digits, sign=True) + "*" * one.difference.decided(level)


@cache
def plan() -> Ledger:
    """The ledger."""
    return read_ledger(RESULTS / "ledger.toml")


@cache
def ledger_answers() -> list[Answer]:
    """Every comparison of the plan."""
    return answers(plan(), group_runs(records("ledger")))


def ledger_block(name: str, *more: str) -> str:
    """Each comparison's verdict, and a table of those that have runs."""
    text = ""
    for answer in ledger_answers():
        if answer.block.name != name:
            continue
        text += f"**{_plain(sentence(answer))}**\n\n"
        if answer.level is None:
            looks = " and ".join(f"{look.seeds * len(answer.tasks)}" for look in plan().looks)
            text += f"The plan gives a verdict at {looks} pairs, not before.\n\n"
        if answer.finished:
            table = answer_table(answer)
            keep = [i for i, head in enumerate(table.header) if more != ("short",) or head not in _LEFT_OUT]
            header, rows = _columns(table.header, table.rows, keep)
            text += as_markdown([_plain(head) for head in header], rows) + "\n"
    return text


def _plain(label: str) -> str:
    """A label without the two betas that everybody expects."""
    return re.sub(r" \(beta = (0|0\.0005)\)", "", label)


_LEFT_OUT = ("p", "P(better) [95 %]")


def _columns(header: list[str], rows: list[list[str]], keep: list[int]) -> tuple[list[str], list[list[str]]]:
    return [header[i] for i in keep], [[row[i] for i in keep] for row in rows]


def status_block() -> str:
    """Finished runs of each experiment, all tasks and as many seeds as the paper has, by profile."""
    folders = sorted(path.name for path in RESULTS.iterdir() if path.is_dir())
    groups = [group for folder in folders for group in group_runs(records(folder))]
    rows = []
    for name, experiment in CATALOGUE.items():
        tasks = tuple(dict.fromkeys(task for part in experiment.parts for task in part.tasks))
        cells = []
        for profile in ("paper", "small"):
            planned = planned_runs(
                experiment, Choice(profile, seeds=None if profile == "paper" else experiment.seeds, tasks=tasks)
            )
            cells.append(f"{stand_ins(planned, groups):,} of {len(planned):,}")
        rows.append([f"`{name}`", experiment.about, *cells])
    return as_markdown(["experiment", "reproduces", "runs with the paper's settings", "runs in profile `small`"], rows)


WRITERS: dict[str, Callable[..., str]] = {
    "results": results_block,
    "gridworld": gridworld_block,
    "ledger": ledger_block,
    "status": status_block,
}


def render(text: str) -> str:
    """The page with its tables written anew."""
    return BLOCK.sub(lambda found: f"{found[1]}{WRITERS[found[2]](*found[3].split())}{found[4]}", text)


def draw_gridworld() -> None:
    """The verdicts, figure 3 with each encoding, the printed one as docs/figure3.png."""
    found = gridworld_studies()
    with tempfile.TemporaryDirectory() as out:
        for name, study in found.items():
            draw_figure3(study, Path(out) / f"figure3-{name}")
        draw_verdicts([study for _, study in sorted(found.items())], Path(out) / "gridworld-verdicts", GRIDWORLD_SEEDS)
        for picture in Path(out).glob("*.png"):
            shutil.copy(picture, FIGURES / picture.name)
    shutil.copy(FIGURES / "figure3-integer.png", ROOT / "docs" / "figure3.png")
    (FIGURES / "figure3-integer.png").unlink()


def draw(text: str) -> None:
    """The pictures: the grid world's, the ledger's, each task's learning curves, and figure 1 where asked for."""
    FIGURES.mkdir(exist_ok=True)
    draw_gridworld()
    draw_ledger([answer for answer in ledger_answers() if answer.block.name == "table1"], FIGURES / "ledger-table1.png")
    blocks = [found[3].split() for found in BLOCK.finditer(text) if found[2] == "results"]
    for folder, task, *more in blocks:
        if more == ["figure1"]:
            draw_training(groups_of(folder, task), FIGURES / f"figure1-{find_task(task).slug}.png")
    for folder in {block[0] for block in blocks}:
        with tempfile.TemporaryDirectory() as out:
            write_report(records(folder), Path(out), title="")
            for picture in Path(out).glob("learning-*.png"):
                if picture.name in text:
                    shutil.copy(picture, FIGURES / picture.name)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(render(page.read_text()))
    draw((ROOT / "docs" / "results.md").read_text())
