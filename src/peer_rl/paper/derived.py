"""What the paper's figures show beside scores: DRD, shares of State SAC, scores by beta, smoothed curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from peer_rl.paper.cells import Grid
from peer_rl.paper.plan import Planned
from peer_rl.report.charts import Chart, curve_chart
from peer_rl.report.curves import Curve, half_std, mean_curve
from peer_rl.report.findings import verdict
from peer_rl.report.gridworld import moving_mean
from peer_rl.report.runs import Group, RunRecord
from peer_rl.report.statistics import Floats, column, mean_difference, paired_difference
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
    captions: list[str] = field(default_factory=list)


Labelled = dict[tuple[str, str], Group]
"""The runs by task and label."""


def parts(name: str, grids: Sequence[Grid], planned: Sequence[Planned], groups: Sequence[Group]) -> Extra:
    """What the experiment ``name`` shows beside its grids of scores."""
    by_key = {group.key: group for group in groups}
    labelled: Labelled = {}
    for run in planned:
        if run.config and (group := by_key.get((run.config.profile, run.task, variant(run.config)))):
            labelled[run.task, run.system.label] = group
    if name == "figure1":
        return _figure1(labelled, planned)
    if name == "figure4":
        return Extra([("shares of State SAC", _shares_table(grids))])
    if name == "beta-study":
        return Extra([("shares of the best beta", _betas_table(grids))])
    return _smoothed(labelled) if name == "dmc-curves" else Extra()


# -- figure 1 ----------------------------------------------------------------------------------------------------------


def _drd(record: RunRecord) -> tuple[Floats, Floats]:
    """Of the first critic, where the run tells it apart; else of both."""
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


def _figure1(labelled: Labelled, planned: Sequence[Planned]) -> Extra:
    charts, rows = [], []
    values = {key: _final_drd(group) for key, group in labelled.items()}
    for task in dict.fromkeys(run.task for run in planned):
        systems = list({run.system.label: run.system for run in planned if run.task == task}.values())
        curves = []
        for system in systems:
            found = values.get((task, system.label), {})
            group = labelled.get((task, system.label))
            curve = mean_curve(system.label, [_drd(record) for record in group.finished], _whole_std) if group else None
            curves += [curve] if curve else []
            final = mean_difference(list(found.values())) if found else None  # to zero
            difference = paired_difference(found, values.get((task, system.against), {})) if system.against else None
            sign = _FIGURE1[system.label]
            words = verdict(final, sign) if final else "missing"
            claim = "below zero" if sign < 0 else "above zero"
            interval = with_interval(final, 4, sign=True)
            paired = with_interval(difference, 4, sign=True)
            rows.append([task, system.label, claim, interval, words, paired])
        if curves:
            order = [system.label for system in systems]
            charts.append(curve_chart(f"DRD, {task}", curves, order, x="agent steps", line=(0.0, "0")))
    header = ["task", "system", "DRD in the paper", "our DRD at the end [95 %]", "our runs", "difference to backbone"]
    caption = (
        f"DRD: mean of the last {_LAST_LINES} lines of diagnostics, of the first critic where the run tells it apart; "
        "below zero the distinguishable representation property holds on average."
    )
    note = "Figure 1: DRD over training, mean over seeds; shaded: a standard deviation, as in the paper."
    return Extra([("DRD", Table(caption, header, rows))], charts, [note] if charts else [])


# -- figure 4 and the beta study ---------------------------------------------------------------------------------------


def _share(means: dict[str, float], yardstick: dict[str, float]) -> tuple[float, int]:
    """Average over the tasks that both have, divided by the yardstick's; and how many those are."""
    tasks = sorted(means.keys() & yardstick.keys())
    below = sum(yardstick[task] for task in tasks)
    return (sum(means[task] for task in tasks) / below if tasks and below else math.nan), len(tasks)


def _shares_table(grids: Sequence[Grid]) -> Table:
    rows = []
    for grid in grids:
        labels = list(dict.fromkeys(cell.label for cell in grid.cells))
        paper = {
            label: {cell.task: cell.published.mean for cell in grid.cells if cell.label == label and cell.published}
            for label in labels
        }
        ours = {
            label: {cell.task: cell.mean for cell in grid.cells if cell.label == label and cell.values}
            for label in labels
        }
        for label in labels:
            if label == "DrQ-v2":  # the paper's figure leaves it out
                continue
            theirs, their_tasks = _share(paper[label], paper.get("State SAC", {}))
            mine, my_tasks = _share(ours[label], ours.get("State SAC", {}))
            shown = f"{number(theirs, 3)} ({their_tasks} tasks)" if their_tasks else "in the picture alone"
            own = f"{number(mine, 3)} ({my_tasks} tasks)" if my_tasks else "missing"
            rows.append([label, grid.budget.title, shown, own])
    caption = (
        "Average score divided by State SAC's average, over the tasks that are planned here and that both have; "
        "the paper's from its table 2. A share over other tasks is another number."
    )
    return Table(caption, ["system", "budget", "paper", "ours"], rows)


def _betas_table(grids: Sequence[Grid]) -> Table:
    labels = list(dict.fromkeys(cell.label for grid in grids for cell in grid.cells))
    rows = []
    for grid in grids:
        for task in grid.tasks:
            means = {label: cell.mean for label in labels if (cell := grid.find(task, label)) and cell.values}
            best = max(means.values(), default=math.nan)
            rows.append(
                [task, *(number(means[label] / best, 2) if label in means and best > 0 else "-" for label in labels)]
            )
    caption = "Mean score divided by the best mean of the game; a dash where there is no run, or no score above zero."
    return Table(caption, ["task", *labels], rows)


# -- the appendix's curves ---------------------------------------------------------------------------------------------


def _smoothed(labelled: Labelled) -> Extra:
    charts = []
    for task in dict.fromkeys(task for task, _ in labelled):
        curves: list[Curve] = []
        for (place, label), group in labelled.items():
            if place != task:
                continue
            rows = [record.rows.get("eval", []) for record in group.finished]
            series = [
                (column(lines, "frame"), moving_mean(column(lines, "mean"), SMOOTHING)) for lines in rows if lines
            ]
            curve = mean_curve(label, series, half_std)
            curves += [replace(curve, runs=len(rows))] if curve else []
        if curves:
            order = [label for place, label in labelled if place == task]
            name = find_task(task).name
            charts.append(curve_chart(f"{name}", curves, order, x="environment frames"))
    note = (
        f"The appendix's curves: evaluation return, a moving mean over {SMOOTHING} evaluations (the paper does not say "
        "over how many); mean over seeds; shaded: half a standard deviation."
    )
    return Extra([], charts, [note] if charts else [])
