"""The cells of an experiment's tables: the paper's number and ours, for each system, task and budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from peer_rl.paper.catalogue import System
from peer_rl.paper.plan import Planned
from peer_rl.paper.published import PublishedSystem, Score, ScoreTable
from peer_rl.report.runs import Group, RunRecord
from peer_rl.report.scores import SCORE, Estimate, Measure, last_evaluation, mean_over, paired_difference, std_over
from peer_rl.settings import variant
from peer_rl.settings.tasks import find_task


def score_at(counter: str, count: int) -> Measure:
    """The mean return of the evaluation at exactly that many steps or frames; none if there was none."""

    def of(record: RunRecord) -> float:
        rows = [row for row in record.rows.get("eval", []) if row.get(counter) == count]
        value = rows[-1].get("mean") if rows else None
        return float(value) if isinstance(value, int | float) else math.nan

    return Measure(f"at_{count}_{counter}s", f"Score at {count:,} {counter}s", of, 1)


@dataclass(frozen=True)
class Budget:
    """A point of training at which systems are compared."""

    title: str
    measure: Measure
    published: int | None
    """The budget of the paper's numbers that ours are shown with; None without any."""
    counts: bool = True
    """Whether it is what the paper says it compares, rather than what its code may have compared."""


_LAST = Measure("last", "Last evaluation", last_evaluation, 1)
_DMC_BUDGETS = (
    Budget("at 500,000 environment steps", score_at("frame", 500_000), 500_000),
    Budget("at 100,000 environment steps", score_at("frame", 100_000), 100_000),
    Budget("at 100,000 agent steps, which the authors' trainers count", score_at("step", 100_000), 100_000, False),
)


def budgets_of(suite: str, profile: str, tables: Sequence[ScoreTable]) -> list[Budget]:
    """Where the scores of a suite are read; a short profile never gets to the paper's budgets, so its end is shown."""
    if suite == "dmc":
        end = Budget("at the end of the run, not a budget of the paper", _LAST, None)
        return [*_DMC_BUDGETS, end] if profile != "paper" else list(_DMC_BUDGETS)
    published = tables[0].budgets[0] if tables else None
    return [Budget("at the end of training", SCORE, published)]


@dataclass(frozen=True)
class Cell:
    """One system on one task at one budget."""

    task: str
    label: str
    published: Score | None
    about: PublishedSystem | None
    """The paper's system, if it is in one of its tables."""
    system: System | None
    """Ours; None for what the paper only quotes."""
    group: Group | None
    """The runs; None if there is no directory of any."""
    values: Mapping[int, float] = field(default_factory=dict)
    """Our number by seed."""
    planned: int = 0
    """Seeds wanted."""
    absent: str = ""
    """Why the system is not available."""
    difference: Estimate | None = None
    """Ours minus the system that it is compared with, paired by seed."""
    published_difference: float | None = None

    @property
    def mean(self) -> float:
        """Over seeds; NaN if there are none."""
        return mean_over(self.values)

    @property
    def std(self) -> float:
        """Over seeds, with n - 1; NaN for fewer than two."""
        return std_over(self.values)

    @property
    def state(self) -> str:
        """Why our number is missing; empty if it is there."""
        if self.values:
            return ""
        if self.absent:
            return "not available"
        if self.about and self.about.derived:
            return f"the better of {' and '.join(self.about.derived)}"
        if not self.planned:
            return "not planned" if self.system or (self.about and self.about.agent) else "quoted by the paper, not run"
        return "not reached" if self.group and self.group.finished else "missing"


@dataclass(frozen=True)
class Grid:
    """All cells of one suite at one budget."""

    suite: str
    budget: Budget
    cells: list[Cell]

    @property
    def tasks(self) -> list[str]:
        """In the order of the experiment."""
        return list(dict.fromkeys(cell.task for cell in self.cells))

    def find(self, task: str, label: str) -> Cell | None:
        """The cell of a task and a system."""
        return next((cell for cell in self.cells if (cell.task, cell.label) == (task, label)), None)


def make_grids(planned: Sequence[Planned], groups: Iterable[Group], tables: Sequence[ScoreTable]) -> list[Grid]:
    """One grid for each suite and budget, with the planned tasks only."""
    by_key = {group.key: group for group in groups}
    profile = next((run.config.profile for run in planned if run.config), "paper")
    grids = []
    for suite in dict.fromkeys(find_task(run.task).suite for run in planned):
        here = [run for run in planned if find_task(run.task).suite == suite]
        own = [table for table in tables if any(find_task(task).suite == suite for task in table.tasks)]
        for budget in budgets_of(suite, profile, own):
            grids.append(_grid(suite, budget, here, by_key, own))
    return grids


def _grid(
    suite: str,
    budget: Budget,
    planned: Sequence[Planned],
    groups: Mapping[tuple[str, str, str], Group],
    tables: Sequence[ScoreTable],
) -> Grid:
    systems = {run.system.label: run.system for run in planned}
    values: dict[tuple[str, str], dict[int, float]] = {}
    cells = []
    for task in dict.fromkeys(run.task for run in planned):
        for label in _labels(systems, tables):
            published, about = _published(tables, task, label, budget.published)
            own = about.same_as if about and about.same_as else label
            mine = [run for run in planned if (run.task, run.system.label) == (task, own)]
            config = next((run.config for run in mine if run.config), None)
            group = groups.get((config.profile, task, variant(config))) if config else None
            found = _values(group, budget.measure, {run.seed for run in mine})
            values[task, label] = found
            system = systems.get(own)
            if published is None and (system is None or own != label):
                continue  # no number on either side, or it is shown under the other name
            baseline = system.baseline if system else ""
            theirs, _ = _published(tables, task, baseline, budget.published)
            cells.append(
                Cell(
                    task, label, published, about, system, group, found, len(mine),
                    next((run.absent for run in mine if run.absent), ""),
                    published_difference=published.mean - theirs.mean if published and theirs else None,
                )
            )  # fmt: skip
    return Grid(suite, budget, [_paired(cell, values) for cell in cells])


def _labels(systems: Mapping[str, System], tables: Sequence[ScoreTable]) -> list[str]:
    """The paper's systems in its order, then ours; two names of the same runs are one."""
    names = [system.name for table in tables for system in table.systems]
    return list(dict.fromkeys([*names, *systems]))


def _values(group: Group | None, measure: Measure, seeds: set[int]) -> dict[int, float]:
    if group is None:
        return {}
    pairs = zip(group.seeds, group.finished, strict=True)
    return {seed: value for seed, record in pairs if seed in seeds and math.isfinite(value := measure.of(record))}


def _published(
    tables: Sequence[ScoreTable], task: str, label: str, budget: int | None
) -> tuple[Score | None, PublishedSystem | None]:
    for table in tables:
        for system in table.systems:
            if system.name == label:
                return (table.find(task, label, budget) if budget else None), system
    return None, None


def _paired(cell: Cell, values: Mapping[tuple[str, str], Mapping[int, float]]) -> Cell:
    if cell.system is None or not cell.system.baseline:
        return cell
    difference = paired_difference(cell.values, values.get((cell.task, cell.system.baseline), {}))
    return replace(cell, difference=difference)
