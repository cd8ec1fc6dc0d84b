"""The paper's figures drawn from our runs: panels of curves (figure 1, the DMControl curves) and bars (figure 4, beta).

What has no run yet keeps its place and says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from peer_rl.report.charts import COLOURS, Styles
from peer_rl.report.curves import Curve
from peer_rl.report.figures import STYLE, Drawing, draw_curves, finish, new_figure, plain

_COLUMNS = 4
_FAINT = "#8a8f98"
_CLEAR = {"facecolor": "white", "edgecolor": "none", "pad": 0.2}
"""Behind a bar's number, so that no line crosses it."""
_PAPER, _OURS = "#b9c4d0", COLOURS[0]


@dataclass(frozen=True)
class Panel:
    """The curves of one task; none if nothing of it has been run."""

    title: str
    curves: Sequence[Curve]


@dataclass(frozen=True)
class Bars:
    """Groups of bars: for each name of a group, the height of each series; NaN where there is none."""

    title: str
    names: Sequence[str]
    heights: Mapping[str, Sequence[float]]
    """By series."""


def draw_panels(
    panels: Sequence[Panel], styles: Styles, *, x: str, y: str, zero: bool = False, note: str = ""
) -> Drawing:
    """Four panels a row; ``styles`` are the labels', ``zero`` draws a line at 0."""
    rows = math.ceil(len(panels) / _COLUMNS)
    with mpl.rc_context(STYLE):
        figure = new_figure(11, 0.9 + 2.2 * rows)
        grid: Any = figure.subplots(rows, _COLUMNS, squeeze=False)
        lines: dict[str, Any] = {}
        for axes, panel in zip(grid.flat, panels, strict=False):
            axes.set_title(plain(panel.title, 32), fontsize=9.5)
            if not panel.curves:
                _leave_empty(axes)
                continue
            draw_curves(axes, panel.curves, styles)
            axes.xaxis.get_major_locator().set_params(nbins=4)
            axes.xaxis.set_major_formatter(_count)
            if zero:
                axes.axhline(0.0, color="#333", linestyle=":", linewidth=1.2)
            handles, labels = axes.get_legend_handles_labels()
            lines |= {label.split(":")[0]: line for line, label in zip(handles, labels, strict=True)}
        for axes in list(grid.flat)[len(panels) :]:
            axes.set_visible(False)
        for axes in grid[-1, :]:
            axes.set_xlabel(x)
        for axes in grid[:, 0]:
            axes.set_ylabel(y)
        shown = [label for label in styles if label in lines]
        if shown:
            handles = [lines[label] for label in shown]
            figure.legend(handles, shown, loc="outside lower center", ncols=len(shown), title=note, title_fontsize=8.5)
        return finish(figure)


def _count(value: float, _: object) -> str:
    return f"{value / 1000:,g}k" if value >= 10_000 else f"{value:,.0f}"


def draw_bars(panels: Sequence[Bars], *, y: str, line: float | None = None, ramp: bool = False) -> Drawing:
    """A panel under the other; ``line`` is a dotted reference, ``ramp`` colours the series from light to dark."""
    with mpl.rc_context(STYLE):
        figure = new_figure(11, 0.7 + 2.5 * len(panels))
        grid: Any = figure.subplots(len(panels), 1, squeeze=False)
        for axes, panel in zip(grid.flat, panels, strict=True):
            _draw_group(axes, panel, ramp=ramp)
            axes.set_title(plain(panel.title, 110))
            axes.set_ylabel(y)
            if line is not None:
                axes.axhline(line, color="#333", linestyle=":", linewidth=1.2, zorder=0.9)
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 8))
        return finish(figure)


def _draw_group(axes: Axes, panel: Bars, *, ramp: bool) -> None:
    count = len(panel.heights)
    colours: list[Any] = list(mpl.colormaps["viridis_r"](np.linspace(0.08, 0.92, count))) if ramp else [_PAPER, _OURS]
    width = 0.8 / count
    tallest = max((value for row in panel.heights.values() for value in row if math.isfinite(value)), default=1.0)
    axes.set_ylim(0, max(tallest, 0.1) * 1.14)
    axes.set_xlim(-0.6, len(panel.names) - 0.4)
    look: dict[str, Any] = {"fontsize": 7} if ramp else {"fontsize": 8, "bbox": _CLEAR}
    for index, (label, row) in enumerate(panel.heights.items()):
        offset = (index - (count - 1) / 2) * width
        places = [place + offset for place in range(len(row))]
        axes.bar(places, np.nan_to_num(row), width * 0.94, color=colours[index], label=label)
        for x, height in zip(places, row, strict=True):
            if math.isfinite(height):
                text = f"{height:.1f}" if ramp else f"{height:.2f}"
                axes.annotate(text, (x, height), (0, 4), textcoords="offset points", ha="center", **look)
            elif not ramp:
                _note(axes, x, "no number" if label == "paper" else "not run", rotation=90)
    for place in range(len(panel.names)) if ramp else ():
        if not any(math.isfinite(row[place]) for row in panel.heights.values()):
            _note(axes, place, "not run")
    axes.set_xticks(range(len(panel.names)), [plain(name, 18) for name in panel.names])
    axes.grid(axis="x", visible=False)
    axes.set_axisbelow(True)


def _note(axes: Axes, x: float, text: str, *, rotation: int = 0) -> None:
    axes.annotate(
        text, (x, 0), (0, 4), textcoords="offset points", ha="center", va="bottom", fontsize=8, color=_FAINT,
        rotation=rotation,
    )  # fmt: skip


def _leave_empty(axes: Axes) -> None:
    axes.text(0.5, 0.5, "not run", ha="center", va="center", transform=axes.transAxes, color=_FAINT)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color("#dcdfe4")
