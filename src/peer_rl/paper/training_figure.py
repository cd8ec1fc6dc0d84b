"""Returns, DRD and cosine of one task over training, with and without PEER, seed by seed, for the results page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from peer_rl.report.charts import group_styles
from peer_rl.report.figures import STYLE, new_figure
from peer_rl.report.runs import Group
from peer_rl.settings.beta import describe_beta

PANELS = (
    ("eval", "mean", "Evaluation return"),
    ("diagnostics", "drd_head0", "DRD of the first critic"),
    ("diagnostics", "cosine", "Cosine of phi and the target's phi'"),
)


@dataclass(frozen=True)
class Series:
    """One number of a group's runs over training; (seeds, points), NaN where it is not defined."""

    frames: NDArray[np.float64]
    values: NDArray[np.float64]

    @property
    def mean(self) -> NDArray[np.float64]:
        """Over the seeds."""
        mean: NDArray[np.float64] = self.values.mean(0)
        return mean


def series(group: Group, log: str, name: str) -> Series | None:
    """What the finished runs logged at the steps that all of them have; None if they have none."""
    runs = [
        {row["frame"]: np.nan if row.get(name) is None else row[name] for row in record.rows.get(log, [])}
        for record in group.finished
    ]
    shared = sorted(set.intersection(*map(set, runs))) if runs else []
    if not shared:
        return None
    return Series(np.array(shared, np.float64), np.array([[run[frame] for frame in shared] for run in runs]))


def random_play(groups: Sequence[Group]) -> tuple[float, int]:
    """Mean return of the training episodes that ended before learning began, and how many they are."""
    returns = {
        (record.seed, row["episode"]): row["return"]
        for group in groups
        for record in group.finished
        for row in record.rows.get("metrics", [])
        if "return" in row and row["step"] <= group.config.learning.start_steps
    }  # the same for every variant of a seed
    return (float(np.mean(list(returns.values()))) if returns else float("nan")), len(returns)


def draw_training(groups: Sequence[Group], path: Path) -> None:
    """One row of panels for each agent; bold lines are means over seeds, thin ones the seeds."""
    agents = [(agent, list(members)) for agent, members in groupby(groups, key=lambda group: group.config.agent)]
    with mpl.rc_context(STYLE):
        figure = new_figure(10.5, 0.6 + 2.9 * len(agents))
        grid: Any = figure.subplots(len(agents), len(PANELS), squeeze=False)
        for row, (agent, members) in zip(grid, agents, strict=True):
            members = sorted(members, key=lambda group: math.inf if group.config.beta == "auto" else group.config.beta)
            for axes, (log, name, title) in zip(row, PANELS, strict=True):
                _draw_panel(axes, members, log, name)
                axes.set_title(title, fontweight="bold")
                axes.set_xlabel("environment frames")
            row[0].set_ylabel(agent)
            row[0].set_ylim(bottom=0)
            level, count = random_play(members)
            if count:
                row[0].axhline(level, color="#333", linestyle=":", linewidth=1.4, label="random play")
            row[1].axhline(0.0, color="#333", linestyle=":", linewidth=1.0)
            row[0].legend(loc="best", fontsize=8.5)
        figure.savefig(path, metadata={"Software": None})


def _draw_panel(axes: Axes, groups: Sequence[Group], log: str, name: str) -> None:
    styles = group_styles(groups)
    for group in groups:
        colour, dash = styles[group.label]
        found = series(group, log, name)
        if found is None:
            continue
        for one in found.values if len(found.values) > 1 else ():
            axes.plot(found.frames, one, color=colour, linestyle=dash, linewidth=0.7, alpha=0.45)
        seeds = f"{len(found.values)} seed{'s' * (len(found.values) > 1)}"
        label = "without PEER" if group.config.beta == 0 else f"PEER, beta {describe_beta(group.config)}"
        axes.plot(found.frames, found.mean, color=colour, linestyle=dash, linewidth=1.8, label=f"{label} ({seeds})")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1_000:,.0f}k")
    axes.margins(x=0.01)
