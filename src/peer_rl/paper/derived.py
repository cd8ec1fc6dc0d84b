"""What the paper's figures show in addition to scores: DRD, shares of State SAC, scores by beta, smoothed curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from peer_rl.paper.catalogue import Experiment
from peer_rl.paper.cells import Grid
from peer_rl.paper.panels import Bars, Panel, draw_bars, draw_panels
from peer_rl.paper.plan import Planned
from peer_rl.paper.published import figures_of
from peer_rl.report.charts import Chart, curve_chart, styles_of
from peer_rl.report.curves import Curve, half_std, mean_curve
from peer_rl.report.figures import Drawing
from peer_rl.report.findings import verdict
from peer_rl.report.gridworld import moving_mean
from peer_rl.report.page import Picture
from peer_rl.report.runs import Group, RunRecord
from peer_rl.report.scores import Floats, column, mean_difference, paired_difference
from peer_rl.report.tables import Table, number, with_interval
from peer_rl.settings import variant
from peer_rl.settings.tasks import find_task

SMOOTHING = 5
"""Evaluations that the moving mean of the DMControl curves covers."""
_LAST_LINES = 10
_FIGURE1 = {"TD3": -1, "PEER": -1, "CURL": +1, "PEER+CURL": -1}
"""The sign of DRD at the end, as the paper has it: below zero the property holds."""


@dataclass(frozen=True)
class Extra:
    """More for a section."""

    tables: list[tuple[str, Table]] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)


Labelled = dict[tuple[str, str], Group]
"""The runs by task and label."""


@dataclass(frozen=True)
class Runs:
    """An experiment, its plan and the runs there are of it."""

    experiment: Experiment
    grids: Sequence[Grid]
    planned: Sequence[Planned]
    labelled: Labelled

    @property
    def profile(self) -> str:
        """paper, small or smoke."""
        return next((run.config.profile for run in self.planned if run.config), "paper")

    def tasks(self, part: int = 0) -> list[str]:
        """Every task of the experiment, or of one of its parts, planned here or not."""
        return list(self.experiment.parts[part].tasks)

    def picture(self, name: str, drawing: Drawing, figure: int = 0) -> Picture:
        """A drawing with the facts of the paper's figure and of ours in its caption."""
        theirs = figures_of(self.experiment.name)[figure]
        facts = [f"{theirs.seeds} seeds" if theirs.seeds else "seeds not stated"]
        facts += [f"beta {theirs.beta:g}"] if theirs.beta else []
        tasks = {task for task, _ in self.labelled}
        seeds = sorted({len(group.finished) for group in self.labelled.values()} or {0})
        span = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
        budgets = " or ".join(dict.fromkeys(group.budget for group in self.labelled.values()))
        count = f"{span} finished seed{'s' * (span != '1')}"
        ours = f"Ours: profile {self.profile}, {len(tasks)} of {theirs.tasks} tasks, {count}"
        caption = [
            f"The paper's {theirs.number}: {theirs.caption} ({', '.join(facts)}). ",
            f"{ours}{f', {budgets}' if budgets else ''}.",
        ]
        return Picture(name, drawing, f"{theirs.number}, from our runs: {theirs.caption}", caption)


def parts(experiment: Experiment, grids: Sequence[Grid], planned: Sequence[Planned], groups: Sequence[Group]) -> Extra:
    """What an experiment shows in addition to its grids of scores."""
    by_key = {group.key: group for group in groups}
    labelled: Labelled = {}
    for run in planned:
        if run.config and (group := by_key.get((run.config.profile, run.task, variant(run.config)))):
            labelled[run.task, run.system.label] = group
    show = {"figure1": _figure1, "figure4": _figure4, "beta-study": _beta_study, "dmc-curves": _dmc_curves}
    runs = Runs(experiment, grids, planned, labelled)
    return show[experiment.name](runs) if experiment.name in show else Extra()


# -- figure 1 ----------------------------------------------------------------------------------------------------------


def _drd(record: RunRecord) -> tuple[Floats, Floats]:
    """Of the first critic, where the run logs it alone; else of both."""
    rows = record.rows.get("diagnostics", [])
    name = "drd_head0" if any("drd_head0" in row for row in rows) else "drd"
    return column(rows, "step"), column(rows, name)


def _final_drd(group: Group) -> dict[int, float]:
    found = {}
    for seed, record in zip(group.seeds, group.finished, strict=True):
        values = _drd(record)[1]
        finite = values[np.isfinite(values)][-_LAST_LINES:]
        if finite.size:
            found[seed] = float(finite.mean())
    return found


def _whole_std(curves: Floats) -> tuple[Floats, Floats]:
    """A standard deviation to each side, as the paper shades figure 1."""
    mean = curves.mean(axis=0)
    std = curves.std(axis=0, ddof=1) if len(curves) > 1 else np.zeros_like(mean)
    return mean - std, mean + std


def _figure1(runs: Runs) -> Extra:
    values = {key: _final_drd(group) for key, group in runs.labelled.items()}
    curves: dict[str, list[Curve]] = {}
    for (task, label), group in runs.labelled.items():
        curve = mean_curve(label, [_drd(record) for record in group.finished], _whole_std)
        curves.setdefault(task, []).extend([curve] if curve else [])
    charts, rows = [], []
    for task in dict.fromkeys(run.task for run in runs.planned):
        systems = list({run.system.label: run.system for run in runs.planned if run.task == task}.values())
        for system in systems:
            found = values.get((task, system.label), {})
            final = mean_difference(list(found.values())) if found else None  # to zero
            difference = paired_difference(found, values.get((task, system.baseline), {})) if system.baseline else None
            sign = _FIGURE1[system.label]
            words = verdict(final, sign) if final else "missing"
            claim = "below zero" if sign < 0 else "above zero"
            interval = with_interval(final, 4, sign=True)
            rows.append([task, system.label, claim, interval, words, with_interval(difference, 4, sign=True)])
        if curves.get(task):
            styles = styles_of((system.label, system.baseline) for system in systems)
            charts.append(curve_chart(f"DRD, {task}", curves[task], styles, x="agent steps", line=(0.0, "0")))
    header = ["task", "system", "DRD in the paper", "our DRD at the end [95 %]", "our runs", "difference to backbone"]
    caption = (
        f"DRD: mean of the last {_LAST_LINES} lines of diagnostics, of the first critic where the run logs it alone; "
        "below zero the distinguishable representation property holds on average."
    )
    panels = [Panel(task, curves.get(task, [])) for part in runs.experiment.parts for task in part.tasks]
    styles = styles_of((system.label, system.baseline) for system in runs.experiment.systems)
    note = "DRD, mean over seeds; shaded: a standard deviation; below the dotted line the property holds"
    drawing = draw_panels(panels, styles, x="agent steps", y="DRD", zero=True, note=note)
    return Extra([("DRD", Table(caption, header, rows))], charts, [runs.picture("figure1", drawing)])


# -- figure 4 and the beta study ---------------------------------------------------------------------------------------


def _share(means: dict[str, float], yardstick: dict[str, float]) -> tuple[float, int]:
    """Average over the tasks that both have, divided by the yardstick's; and how many those are."""
    tasks = sorted(means.keys() & yardstick.keys())
    below = sum(yardstick[task] for task in tasks)
    return (sum(means[task] for task in tasks) / below if tasks and below else math.nan), len(tasks)


@dataclass(frozen=True)
class Share:
    """A system's average score over State SAC's at one budget, and over how many tasks."""

    label: str
    paper: float
    paper_tasks: int
    ours: float
    our_tasks: int


def shares_of(grid: Grid) -> list[Share]:
    """Figure 4's numbers, from the tasks that are planned; the paper's from its table 2."""
    labels = list(dict.fromkeys(cell.label for cell in grid.cells))
    paper: dict[str, dict[str, float]] = {label: {} for label in labels}
    ours: dict[str, dict[str, float]] = {label: {} for label in labels}
    for cell in grid.cells:
        if cell.published:
            paper[cell.label][cell.task] = cell.published.mean
        if cell.values:
            ours[cell.label][cell.task] = cell.mean
    return [
        Share(label, *_share(paper[label], paper.get("State SAC", {})), *_share(ours[label], ours.get("State SAC", {})))
        for label in labels
        if label != "DrQ-v2"  # the paper's figure leaves it out
    ]


def _tasks(count: int) -> str:
    return f"{count} task{'s' * (count != 1)}"


def _figure4(runs: Runs) -> Extra:
    rows, panels = [], []
    for grid in runs.grids:
        shares = shares_of(grid)
        for share in shares:
            shown = f"{number(share.paper, 3)} ({_tasks(share.paper_tasks)})" if share.paper_tasks else "not in a table"
            own = f"{number(share.ours, 3)} ({_tasks(share.our_tasks)})" if share.our_tasks else "missing"
            rows.append([share.label, grid.budget.title, shown, own])
        heights = {"paper": [share.paper for share in shares], "ours": [share.ours for share in shares]}
        if (grid.budget.published and grid.budget.counts) or any(share.our_tasks for share in shares):
            panels.append(Bars(f"DMControl {grid.budget.title}", [share.label for share in shares], heights))
    caption = (
        "Average score divided by State SAC's average, over the tasks that are planned here and that both have; "
        "the paper's from its table 2. A share over other tasks is another number."
    )
    table = Table(caption, ["system", "budget", "paper", "ours"], rows)
    drawing = draw_bars(panels, y="share of State SAC", line=1.0)
    tasks = ", ".join(dict.fromkeys(run.task for run in runs.planned))
    note = f"Both bars are averages over {tasks}; the paper's figure averages over six tasks."
    return Extra([("shares of State SAC", table)], [], [runs.picture("figure4", drawing)], [note])


def _beta_study(runs: Runs) -> Extra:
    labels = [system.label for system in runs.experiment.systems]
    rows, panels = [], []
    for grid in runs.grids:
        shares: dict[str, dict[str, float]] = {}
        for task in grid.tasks:
            means = {label: cell.mean for label in labels if (cell := grid.find(task, label)) and cell.values}
            betas = [mean for label, mean in means.items() if label != "CURL"]  # the paper's six, without plain CURL
            best = max(betas or means.values(), default=math.nan)
            shares[task] = {label: mean / best for label, mean in means.items()} if best > 0 else {}
            rows.append([task, *(number(shares[task].get(label, math.nan), 2) for label in labels)])
        heights = {
            "beta 0" if label == "CURL" else label: [shares.get(task, {}).get(label, math.nan) for task in runs.tasks()]
            for label in labels
        }
        names = [task.partition("/")[2] for task in runs.tasks()]
        panels.append(Bars(f"Atari {grid.budget.title}", names, heights))
    caption = (
        "Mean score over that of the game's best beta above 0; a dash where there is no run or no score above zero."
    )
    table = Table(caption, ["task", *labels], rows)
    drawing = draw_bars(panels, y="share of the best beta", ramp=True)
    return Extra([("shares of the best beta", table)], [], [runs.picture("beta-study", drawing)])


# -- the appendix's curves ---------------------------------------------------------------------------------------------


def _dmc_curves(runs: Runs) -> Extra:
    curves: dict[str, list[Curve]] = {}
    for (task, label), group in runs.labelled.items():
        rows = [record.rows.get("eval", []) for record in group.finished]
        series = [(column(lines, "frame"), moving_mean(column(lines, "mean"), SMOOTHING)) for lines in rows if lines]
        curve = mean_curve(label, series, half_std)
        curves.setdefault(task, []).extend([replace(curve, runs=len(rows))] if curve else [])
    order = [system.label for system in runs.experiment.systems]
    styles = styles_of((system.label, system.baseline) for system in runs.experiment.systems)
    charts = [
        curve_chart(find_task(task).name, found, styles, x="environment frames")
        for task, found in curves.items()
        if found
    ]
    smoothing = f"moving mean over {SMOOTHING} evaluations"
    pictures = []
    for index, labels in enumerate((order[:2], order[2:])):  # the paper has a figure for CURL and one for DrQ
        panels = [
            Panel(find_task(task).name, [one for one in curves.get(task, []) if one.label in labels])
            for task in runs.tasks()
        ]
        note = f"{smoothing}; mean over seeds; shaded: half a standard deviation"
        drawing = draw_panels(panels, styles, x="environment frames", y="evaluation return", note=note)
        pictures.append(runs.picture(f"dmc-curves-{labels[0].lower()}", drawing, index))
    note = f"The paper does not say over how many evaluations its moving average runs; ours is a {smoothing}."
    return Extra([], charts, pictures, [note])
