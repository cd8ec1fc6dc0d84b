"""The paper and our runs: tables with both, and sentences about what agrees, disagrees or is missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from peer_rl.paper import derived
from peer_rl.paper.catalogue import CATALOGUE, Experiment
from peer_rl.paper.cells import Cell, Grid, make_grids
from peer_rl.paper.plan import Choice, Planned, planned_runs
from peer_rl.paper.published import ScoreTable, WinCount, notes_of, score_table, tables_of
from peer_rl.report import page
from peer_rl.report.findings import AGREES, DISAGREES, FAILS, HOLDS, UNCLEAR, verdict
from peer_rl.report.page import Bullets, Cards, Details, Heading, Part, Section, Text
from peer_rl.report.runs import Group, Key
from peer_rl.report.tables import Linked, Table, number, with_interval
from peer_rl.settings import variant

_HEADER = [
    "task", "system", "paper", "ours", "seeds done", "agent steps", "frames", "paper's difference",
    "our difference [95 %] (pairs)",
]  # fmt: skip
_HEADINGS = {AGREES: HOLDS, DISAGREES: FAILS}
_MISSING = "Missing"
_NOWHERE: Key = ("", "", "")
"""Of a run that is not available."""


@dataclass(frozen=True)
class Comparison:
    """One experiment under one profile."""

    experiment: Experiment
    profile: str
    grids: list[Grid]
    tables: list[ScoreTable]
    groups: list[Group]
    planned: list[Planned]
    partial: bool = False
    """Made from whatever runs there are, not from a plan."""

    @property
    def heading(self) -> str:
        """Of the section."""
        return f"Paper against ours: {self.experiment.name}, profile {self.profile}"


def compare(experiment: Experiment, planned: Sequence[Planned], groups: Sequence[Group]) -> Comparison:
    """An experiment's plan with the runs there are."""
    profile = next((run.config.profile for run in planned if run.config), "paper")
    # figure 4 has no numbers of its own: it is drawn from table 2
    tables = [score_table("table2")] if experiment.name == "figure4" else tables_of(experiment.name)
    grids = make_grids(planned, groups, tables)
    return Comparison(experiment, profile, grids, tables, list(groups), list(planned))


def comparisons_of(groups: Sequence[Group]) -> list[Comparison]:
    """The paper's tables for whatever runs there are: the tasks of which a system of the table has a run."""
    found = []
    keys = {group.key: set(group.seeds) for group in groups if group.finished}
    for experiment in CATALOGUE.values():
        tasks_there = {key[1] for key in keys} & {task for part in experiment.parts for task in part.tasks}
        if not tables_of(experiment.name) or not tasks_there:
            continue
        for profile in dict.fromkeys(key[0] for key in keys):
            full = planned_runs(experiment, Choice(profile, seeds=1, tasks=tuple(sorted(tasks_there))))
            cells = [(run, _key(run)) for run in full]
            tasks = tuple(dict.fromkeys(run.task for run, key in cells if key in keys))
            if tasks:
                seeds = 1 + max(max(keys[key]) for _, key in cells if keys.get(key))
                planned = planned_runs(experiment, Choice(profile, seeds=seeds, tasks=tasks))
                wanted = [run for run in planned if run.seed in keys.get(_key(run), ())]
                rest = [run for run in planned if run.seed == 0 and _key(run) not in keys]
                one = compare(experiment, [*wanted, *rest], groups)
                found.append(replace(one, partial=True))
    return found


def _key(run: Planned) -> Key:
    return (run.config.profile, run.task, variant(run.config)) if run.config else _NOWHERE


# -- the table ---------------------------------------------------------------------------------------------------------


def _digits(cell: Cell) -> int:
    return 1 if cell.task.startswith("atari/") else 0


def _paper_text(cell: Cell, best: bool) -> str:
    if cell.published is None:
        return "-"
    mean = f"{cell.published.mean:,g}"
    deviation = f" ± {cell.published.deviation:g}" if cell.published.deviation is not None else ""
    quoted = f", from {cell.about.source}" if cell.about and cell.about.source else ""
    return f"{mean}{deviation}{' (best)' if best else ''}{quoted}"


def _our_text(cell: Cell, best: bool) -> str:
    if cell.state:
        return cell.state
    digits = _digits(cell)
    spread = f" ± {number(cell.std, digits)}" if math.isfinite(cell.std) else ""
    text = f"{number(cell.mean, digits)}{spread}{' (best)' if best else ''}"
    return Linked(text, f"#{cell.group.anchor}") if cell.group else text


def grid_table(comparison: Comparison, grid: Grid) -> Table:
    """Every system on every planned task."""
    rows = []
    for task in grid.tasks:
        here = [cell for cell in grid.cells if cell.task == task]
        compared = [cell.mean for cell in here if cell.values and not (cell.about and cell.about.reference)]
        best = max(compared) if len(compared) > 1 else math.nan
        for cell in here:
            counts = [number(cell.group.mean_count(name) if cell.group else math.nan, 0) for name in ("step", "frame")]
            difference = "-" if cell.published_difference is None else f"{cell.published_difference:+g}"
            ours = with_interval(cell.difference, _digits(cell), sign=True)
            pairs = f" ({cell.difference.count})" if cell.difference else ""
            rows.append(
                [
                    task,
                    cell.label,
                    _paper_text(cell, bool(cell.published and cell.published.best)),
                    _our_text(cell, cell.mean == best and not (cell.about and cell.about.reference)),
                    f"{len(cell.values)} of {cell.planned}" if cell.planned else "-",
                    *counts,
                    difference,
                    ours + pairs,
                ]
            )
    return Table(_caption(comparison, grid), list(_HEADER), rows)


def _caption(comparison: Comparison, grid: Grid) -> str:
    published = {table.number: table for table in comparison.tables}
    source = " and ".join(published) or "no table of the paper"
    rule = f" Its numbers are: {comparison.tables[0].score}." if comparison.tables else ""
    ours = grid.budget.measure.title.lower()
    return (
        f"{grid.suite} {grid.budget.title}; profile {comparison.profile}; paper: {source}.{rule} Ours: {ours}, mean ± "
        "standard deviation over seeds. Differences: to the backbone, ours paired by seed."
    )


# -- sentences ---------------------------------------------------------------------------------------------------------


def statements(comparison: Comparison) -> dict[str, list[str]]:
    """What agrees, what does not, and what is missing; a profile that is not the paper's proves nothing."""
    found: dict[str, list[str]] = {heading: [] for heading in (HOLDS, UNCLEAR, FAILS, _MISSING)}
    for grid in comparison.grids:
        for cell in grid.cells:
            if not cell.system or not cell.system.baseline or cell.published_difference is None:
                continue
            words = verdict(cell.difference, 1 if cell.published_difference > 0 else -1)
            heading = _HEADINGS.get(words, UNCLEAR) if comparison.profile == "paper" else UNCLEAR
            if cell.difference is not None:
                ours = with_interval(cell.difference, _digits(cell), sign=True)
                found[heading].append(
                    f"{cell.label} against {cell.system.baseline} on {cell.task} {grid.budget.title}: the paper has "
                    f"{cell.published_difference:+g}, ours is {ours} ({words})."
                )
        found[_MISSING] += _absences(grid)
    return found


def _absences(grid: Grid) -> list[str]:
    """Which systems lack a number of ours and why; those that lack it for one reason on the same tasks together."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for cell in grid.cells:
        if cell.state in ("missing", "not available", "not reached"):
            reason = f" ({cell.absent})" if cell.absent else ""
            tasks.setdefault((cell.label, cell.state + reason), []).append(cell.task)
    systems: dict[tuple[str, str], list[str]] = {}
    for (label, state), places in tasks.items():
        systems.setdefault((state, _list(places)), []).append(label)
    return [f"{', '.join(names)}: {state} {grid.budget.title}, {where}." for (state, where), names in systems.items()]


def counts(comparison: Comparison) -> list[str]:
    """The paper's counts of tasks, recounted."""
    texts = [_win_text(comparison, table, claim) for table in comparison.tables for claim in table.claims]
    return [text for text in texts if text]


def _list(tasks: Sequence[str]) -> str:
    return ", ".join(tasks) if len(tasks) < 5 else f"{len(tasks)} tasks"


def _win_text(comparison: Comparison, table: ScoreTable, claim: WinCount) -> str:
    """One of the paper's counts, recounted from our means where we have all that it compares and that we run."""
    run = {system.label for part in comparison.experiment.parts for system in part.systems}
    left, right = [name for name in claim.left if name in run], [name for name in claim.right if name in run]
    if not left or not right:
        return ""
    wins = total = 0
    for grid in comparison.grids:
        if grid.budget.published not in table.budgets or not grid.budget.counts:
            continue
        if claim.budget not in (None, grid.budget.published):
            continue
        for task in grid.tasks:
            means = {name: cell.mean for name in (*left, *right) if (cell := grid.find(task, name)) and cell.values}
            if len(means) == len(left) + len(right):
                total += 1
                wins += max(means[name] for name in left) > max(means[name] for name in right)
    printed = f"{claim.text}: the paper says {claim.printed} of {claim.of}"
    wrong = f" ({claim.note})" if claim.note else ""
    quoted = sorted({*claim.left, *claim.right} - run)
    without = f", without {', '.join(quoted)}, which we do not run" if quoted else ""
    ours = f"our means say {wins} of {total}{without}" if total else "we have no task with all of them"
    return f"{printed}{wrong}; {ours}."


# -- the section -------------------------------------------------------------------------------------------------------


def warnings(comparison: Comparison) -> list[str]:
    """What a reader must know before the numbers."""
    lines = []
    if comparison.profile != "paper":
        lines.append(
            f"These runs have the profile {comparison.profile}: shorter, with smaller settings. Their numbers are NOT "
            "comparable with the paper's; they show that everything runs."
        )
    if comparison.partial:
        lines.append("Only tasks that have a run are shown; peer-rl reproduce runs and shows the whole table.")
    tasks = {task for part in comparison.experiment.parts for task in part.tasks}
    left = sorted(tasks - {run.task for run in comparison.planned})
    if left and not comparison.partial:
        lines.append(f"Not planned here: {', '.join(left)}.")
    return lines


def comparison_section(comparison: Comparison) -> tuple[Section, list[tuple[str, Table]]]:
    """The page's part, and its tables for the other forms of the report."""
    extra = derived.parts(comparison.experiment, comparison.grids, comparison.planned, comparison.groups)
    named = [(f"{grid.suite} {grid.budget.title}", grid_table(comparison, grid)) for grid in comparison.grids]
    tables = [(f"{comparison.heading}: {name}", table) for name, table in [*extra.tables, *named]]
    notes = notes_of(comparison.experiment.name)
    recounted = counts(comparison)
    parts: list[Part | None] = [Text(line, "warning") for line in warnings(comparison)]
    parts += [*extra.pictures, *(Text(line, "soft") for line in extra.captions)]
    parts.append(Cards(statements(comparison)))
    parts += [Heading("The paper's counts, and ours"), Bullets(recounted)] if recounted else []
    parts.append(Details("The same curves, one chart each", [extra.charts]) if extra.charts else None)
    parts += [table for _, table in tables]
    parts.append(Details("Where the paper contradicts itself or its code", [Bullets(notes)]) if notes else None)
    return page.section(comparison.heading, *parts), tables
