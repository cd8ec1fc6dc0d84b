"""Figures for papers and READMEs, by matplotlib without pyplot: no global state, no display."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Rectangle
from matplotlib.ticker import AutoLocator, MaxNLocator

from peer_rl.envs.gridworld import COLUMNS, GOAL, ROWS, S1, S2, SHORTEST, START
from peer_rl.report.aggregates import Aggregate
from peer_rl.report.charts import Styles, group_styles, styles_of
from peer_rl.report.curves import Curve
from peer_rl.report.gridworld import SMOOTHING, Study, value_limits
from peer_rl.report.results import DIAGNOSTICS
from peer_rl.report.scores import Floats

CELLS = {START: "start", S1: "$S_1$", S2: "$S_2$", GOAL: "$S_T$"}
STUDY_AXES = {"step": "agent step", "episode": "training episode"}
_DPI = 150
_GRIDS_A_ROW = 4
_PANELS_A_ROW = 3
_CLEAR_BANDS = 6
"""The bands of more curves would hide one another: they are fainter."""
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "text.parse_math": True,
    "svg.hashsalt": "peer-rl",
}
"""The salt makes the ids in an SVG the same twice."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


@dataclass(frozen=True)
class Drawing:
    """A finished figure, the same bytes for the same numbers."""

    png: bytes
    svg: bytes

    def save(self, path: Path) -> None:
        """Write ``path`` with .png and with .svg."""
        path.with_name(f"{path.name}.png").write_bytes(self.png)
        path.with_name(f"{path.name}.svg").write_bytes(self.svg)


def finish(figure: Figure) -> Drawing:
    """The figure as PNG and SVG, neither with a date in it."""
    png, svg = BytesIO(), BytesIO()
    figure.savefig(png, format="png", metadata={"Software": None})
    figure.set_layout_engine("none")  # everything has its place now
    figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return Drawing(png.getvalue(), svg.getvalue())


def plain(text: str, width: int) -> str:
    """A name from a run directory, in lines that fit: a dollar sign in it is no formula."""
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=False)).replace("$", r"\$")


def columns_of(labels: Sequence[str], width: int) -> int:
    """How many entries of a legend fit side by side into ``width`` characters."""
    return max(1, min(len(labels), width // (max(map(len, labels), default=0) + 8)))


def draw_curves(axes: Axes, curves: Sequence[Curve], styles: Styles) -> None:
    """Means with their bands; ``styles`` are the labels'."""
    for curve in curves:
        colour, dash = styles[curve.label]
        alpha = 0.2 if len(curves) <= _CLEAR_BANDS else 0.06
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=alpha, linewidth=0)
        point: dict[str, Any] = {"marker": "o"} if curve.x.size == 1 else {}
        if point and dash != "solid":  # a point shows no dashes: a backbone's is hollow
            point["markerfacecolor"] = "none"
        axes.plot(
            curve.x, curve.mean, color=colour, linestyle=dash, linewidth=1.6, label=plain(curve.name, 76), **point
        )
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.margins(x=0.01)


def _draw_grid(axes: Axes, values: Floats, label: str, limits: tuple[float, float]) -> Any:
    """One grid world coloured by value; red S_T, and frames around S_1 and S_2, which the paper draws in grey."""
    low, high = limits
    image = axes.imshow(values.reshape(ROWS, COLUMNS), cmap="Blues", vmin=low, vmax=high + (high - low) * 0.25)
    for state, value in enumerate(values):
        row, column = divmod(state, COLUMNS)
        if state == GOAL:
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, color="#C8102E", linewidth=0))
            axes.text(column, row, CELLS[state], ha="center", va="center", color="white", fontsize=13)
            continue
        name = CELLS.get(state)
        colour = "white" if value > low + 0.72 * (high - low) else "#1a1a1a"
        axes.text(column, row + (0.22 if name else 0), f"{value:.2f}", ha="center", va="center", color=colour)
        if name:
            axes.text(column, row - 0.18, name, ha="center", va="center", color=colour, fontsize=10)
        if state in (S1, S2):
            axes.add_patch(Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, fill=False, edgecolor="#555", lw=2))
    axes.set_xticks(np.arange(COLUMNS + 1) - 0.5, labels=[])
    axes.set_yticks(np.arange(ROWS + 1) - 0.5, labels=[])
    axes.tick_params(length=0)
    axes.grid(color="white", linewidth=2)
    axes.spines[:].set_visible(False)
    axes.set_title(plain(label, 30), fontweight="normal", loc="center", fontsize=9.5)
    return image


def _draw_grids(part: SubFigure, study: Study) -> None:
    shown, limits = [(name, study.values[name]) for name in study.paper if name in study.values], value_limits(study)
    rows = math.ceil(len(shown) / _GRIDS_A_ROW)
    grid: Any = part.subplots(rows, math.ceil(len(shown) / rows), squeeze=False)
    image: Any = None
    for axes, (label, values) in zip(grid.flat, shown, strict=False):
        image = _draw_grid(axes, values, label, limits)
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    bar: Any = part.colorbar(image, ax=grid, fraction=0.025, pad=0.02, label="max Q")
    bar.outline.set_visible(False)
    bar.ax.set_ylim(*limits)
    part.suptitle("(a) Grid world: max Q at the end", x=0.012, ha="left", fontsize=10.5, fontweight="bold")


def _of(curves: Sequence[Curve], labels: Sequence[str]) -> list[Curve]:
    return [curve for curve in curves if curve.label in labels]


def _draw_panels(part: SubFigure, study: Study) -> None:
    cosine, difference, steps = part.subplots(1, 3)
    styles = group_styles(study.groups)
    draw_curves(cosine, _of(study.cosine, study.paper), styles)
    cosine.set_title("(b) Cosine similarity")
    draw_curves(difference, _of(study.difference, study.paper), styles)
    difference.set_title(r"(c) Q value difference, $S_1$ $-$ $S_2$")
    difference.axhline(study.exact, color="#333", linestyle=":", linewidth=1.4)
    _note(difference, study.exact, f"exact: {study.exact:g}", above=True)
    draw_curves(steps, _of(study.steps, study.paper), styles)
    steps.set_title("(d) Steps to reach $S_T$")
    steps.axhline(SHORTEST, color="#333", linestyle=":", linewidth=1.4)
    _note(steps, SHORTEST, f"shortest path: {SHORTEST}")
    steps.set_ylim(bottom=-SHORTEST)  # room for the note
    for axes in (cosine, difference, steps):
        axes.set_xlabel(STUDY_AXES[study.axis])
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    _study_legend(part, study, (cosine, steps), study.paper)


def _study_legend(part: SubFigure | Figure, study: Study, panels: Sequence[Axes], labels: Sequence[str]) -> None:
    lines = [pair for axes in panels for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    handles = {name: line for line, name in lines}
    seeds = {len(group.finished) for group in study.groups if group.label in labels}
    shown = f"{seeds.pop()} seeds" if len(seeds) == 1 else "seeds"
    part.legend(
        list(handles.values()), list(handles), loc="outside lower center",
        ncols=columns_of(list(handles), 100), fontsize=10,
        title=f"mean over {shown}; shaded: half a standard deviation; steps: moving mean over {SMOOTHING} episodes",
        title_fontsize=8.5,
    )  # fmt: skip


def _note(axes: Axes, height: float, text: str, *, above: bool = False) -> None:
    """A word at the right end of a dotted line."""
    axes.annotate(
        text, (1, height), xycoords=("axes fraction", "data"), xytext=(-3, 4 if above else -4),
        textcoords="offset points", ha="right", va="bottom" if above else "top", fontsize=8.5, color="#333",
    )  # fmt: skip


def draw_figure3(study: Study, path: Path) -> None:
    """The paper's figure 3 from our runs."""
    grids = [name for name in study.paper if name in study.values]
    rows = max(1, math.ceil(len(grids) / _GRIDS_A_ROW))
    with mpl.rc_context(STYLE):
        figure = new_figure(9.6, 3.6 + 2.7 * rows)
        parts: Any = figure.subfigures(2, 1, height_ratios=[2.7 * rows, 3.6], hspace=0.04)
        if grids:
            _draw_grids(parts[0], study)
        _draw_panels(parts[1], study)
        finish(figure).save(path)


def draw_controls(study: Study, path: Path) -> None:
    """Steps, cosine and norm of PEER and of every control, each variant against the same plain DQN."""
    labels = [group.label for group in study.groups]
    with mpl.rc_context(STYLE):
        figure = new_figure(10.5, 4.4)
        panels = figure.subplots(1, 3)
        titles = ("Steps to reach $S_T$", "Cosine similarity", "Norm of phi")
        for axes, title, curves in zip(panels, titles, (study.steps, study.cosine, study.norm), strict=True):
            draw_curves(axes, curves, group_styles(study.groups))
            axes.set_title(title)
            axes.set_xlabel(STUDY_AXES[study.axis])
            axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
        panels[0].set_ylim(bottom=0)
        panels[2].set_ylim(bottom=0)
        _study_legend(figure, study, panels, labels)
        finish(figure).save(path)


def draw_learning_curves(title: str, curves: Sequence[Curve], styles: Styles, path: Path, *, note: str = "") -> None:
    """Evaluation return over agent steps with 95 % bootstrap bands; ``styles`` are the labels'."""
    with mpl.rc_context(STYLE):
        figure = new_figure(7, 4.2)
        axes = figure.subplots()
        draw_curves(axes, curves, styles)
        axes.set_title(plain(title, 76))
        axes.set_xlabel("agent steps")
        axes.set_ylabel("evaluation return")
        columns = columns_of([curve.label for curve in curves], 80)
        figure.legend(loc="outside lower center", ncols=columns, title=plain(note, 96), title_fontsize=8.5)
        finish(figure).save(path)


def draw_representation(
    title: str, diagnostics: Mapping[str, Sequence[Curve]], styles: Styles, path: Path, *, note: str = ""
) -> None:
    """DRD, cosine, norms and the other diagnostics over agent steps, a panel each."""
    rows = math.ceil(len(diagnostics) / _PANELS_A_ROW)
    with mpl.rc_context(STYLE):
        figure = new_figure(10.5, 0.9 + 2.5 * rows)
        grid: Any = figure.subplots(rows, min(_PANELS_A_ROW, len(diagnostics)), squeeze=False)
        lines: dict[str, Any] = {}
        for axes, (name, curves) in zip(grid.flat, diagnostics.items(), strict=False):
            draw_curves(axes, curves, styles)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
            axes.set_title("\n".join(textwrap.wrap(DIAGNOSTICS[name], 36)), fontsize=9)
            lines |= {label: line for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
        for axes in grid.flat[len(diagnostics) :]:
            axes.set_visible(False)
        figure.suptitle(f"{plain(title, 100)}, over agent steps", fontsize=10.5, fontweight="bold")
        options: Any = {"ncols": columns_of(list(lines), 110), "title": plain(note, 120), "title_fontsize": 8.5}
        figure.legend(list(lines.values()), list(lines), loc="outside lower center", **options)
        finish(figure).save(path)


def draw_profiles(aggregate: Aggregate, path: Path) -> None:
    """The performance profiles of a variant and its backbone."""
    with mpl.rc_context(STYLE):
        figure = new_figure(7, 4.2)
        axes = figure.subplots()
        draw_curves(axes, aggregate.profiles, styles_of(aggregate.lines))
        axes.xaxis.set_major_locator(AutoLocator())
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        tasks = f"{len(aggregate.tasks) - len(aggregate.unscaled)} tasks of {aggregate.suite}"
        axes.set_title(f"{tasks}, {len(aggregate.seeds)} seeds, {aggregate.terms}")
        axes.set_xlabel("normalised score x")
        axes.set_ylabel("fraction of runs above x")
        figure.legend(loc="outside lower center", ncols=columns_of([curve.label for curve in aggregate.profiles], 80))
        finish(figure).save(path)
