"""A picture of a ledger's comparison: for each task its learning curves, and its pairs of scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from peer_rl.paper.ledger import Answer, TaskAnswer
from peer_rl.paper.training_figure import series
from peer_rl.report.charts import COLOURS

STYLE: Any = {
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
}
SIDES = (("baseline", "without PEER", "#6b6b6b"), ("treatment", "with PEER", COLOURS[1]))


def draw_ledger(found: Sequence[Answer], path: Path) -> None:
    """Learning curves above, pairs below, one column for each task with a finished pair."""
    tasks = [task for answer in found for task in answer.tasks if task.scores]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.9 * len(tasks), 5.2), dpi=150, layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        grid: Any = figure.subplots(2, len(tasks), squeeze=False)
        for column, task in enumerate(tasks):
            _draw_curves(grid[0][column], task)
            _draw_pairs(grid[1][column], task)
        grid[0][0].set_ylabel("evaluation return")
        grid[1][0].set_ylabel("score")
        grid[0][0].legend(loc="upper left", fontsize=8.5)
        figure.savefig(path, metadata={"Software": None})


def _draw_curves(axes: Axes, task: TaskAnswer) -> None:
    for side, label, colour in SIDES:
        group = getattr(task, side)
        if group is None or (found := series(group, "eval", "mean")) is None:
            continue
        for one in found.values:
            axes.plot(found.frames, one, color=colour, linewidth=0.7, alpha=0.4)
        axes.plot(found.frames, found.mean, color=colour, linewidth=2.0, label=label)
    axes.set_title(task.task.split("/")[1])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1_000:,.0f}k")
    axes.set_xlabel("environment frames")


def _draw_pairs(axes: Axes, task: TaskAnswer) -> None:
    """Each line is a seed, from its score without to its score with PEER."""
    for scores in task.scores.values():
        treatment, baseline = scores
        axes.plot((0, 1), (baseline, treatment), color=COLOURS[1 if treatment > baseline else 0], marker="o", alpha=0.8)
    means = np.array(list(task.scores.values())).mean(axis=0)
    axes.plot((0, 1), (means[1], means[0]), color="#222", linewidth=2.4, marker="D", label="mean")
    count = len(task.scores)
    axes.set_title(f"{count} pair{'s' * (count > 1)} of {task.planned}", fontweight="normal")
    axes.set_xticks((0, 1), ("without", "with PEER"))
    axes.set_xlim(-0.25, 1.25)
    axes.set_ylim(min(0.0, *(min(pair) for pair in task.scores.values())), 1.1 * max(map(max, task.scores.values())))
