"""Interactive charts as plotly's own JSON, which ``assets/page.js`` draws."""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from plotly.io.json import to_json_plotly

from peer_rl.report.curves import Curve
from peer_rl.report.runs import Group
from peer_rl.report.scores import Floats
from peer_rl.report.tables import number

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's colours, distinct for colour-blind readers."""
AXES = {"steps": "agent steps", "frames": "environment frames", "hours": "hours of training"}
"""What the x axis of a learning curve can be switched between."""
_DASHES = (("solid", "dashed"), ("dashdot", "dotted"))
"""With PEER and without, for the first hues and for those after them."""
Styles = dict[str, tuple[str, str]]
"""Colour and dash by label, in the order of a legend."""
_PLOTLY_DASHES = {"solid": "solid", "dashed": "dash", "dashdot": "dashdot", "dotted": "dot"}
_CONFIG = {
    "responsive": True,
    "displaylogo": False,
    "modeBarButtons": [["zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]],
}
"""No button that would send anything anywhere; dragging zooms and a double click resets."""
_LEGEND_WIDTH = 42
_TICK_WIDTH = 16


def style(index: int, *, plain: bool = False) -> tuple[str, str]:
    """Colour and dash of the hue at ``index``: solid, or dashed for a backbone next to its regularized variant."""
    solid, dashed = _DASHES[index // len(COLOURS) % len(_DASHES)]
    return COLOURS[index % len(COLOURS)], dashed if plain else solid


def styles_of(lines: Iterable[tuple[str, str]]) -> Styles:
    """Colour and dash of each (label, backbone's label); the latter is empty for a line that has no backbone.

    A backbone has the hue of the first variant that is compared with it, dashed; further variants have their own hue.
    """
    backbones = dict(lines)
    hues = iter(range(len(backbones)))
    found: Styles = {}
    for label, backbone in backbones.items():
        if label in found or (not backbone and label in backbones.values()):
            continue
        hue = next(hues)
        found[label] = style(hue)
        if backbone in backbones and backbone not in found:
            found[backbone] = style(hue, plain=True)
    return {label: found[label] for label in backbones}


def group_styles(groups: Sequence[Group]) -> Styles:
    """The style of each group's label."""
    labels = {group.key: group.label for group in groups}
    return styles_of((group.label, labels.get(group.backbone, "") if group.backbone else "") for group in groups)


def rounded(values: Floats) -> list[float | None]:
    """To five digits, None where there is no number."""
    return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values.tolist()]


def _lines(label: str, width: int = _LEGEND_WIDTH) -> list[str]:
    """A label in lines that fit into a legend, broken at spaces and plus signs; plotly reads some HTML in texts."""
    lines = [""]
    for word in label.split():
        for index, piece in enumerate(re.split(r"(?<=\+)(?=.)", word)):
            gap = " " if index == 0 and lines[-1] else ""
            first, *rest = textwrap.wrap(piece, width)
            if lines[-1] and len(lines[-1] + gap + first) > width:
                lines.append(first)
            else:
                lines[-1] += gap + first
            lines += rest
    return [html.escape(line) for line in lines]


@dataclass(frozen=True)
class Chart:
    """One interactive chart."""

    title: str
    alt: str
    """What it shows, for readers who cannot see it."""
    figure: dict[str, Any]
    """Plotly's ``data`` and ``layout``, and what else ``assets/page.js`` needs."""
    height: int
    """In pixels."""

    @property
    def json(self) -> Markup:
        """The figure as JSON. Plotly escapes <, > and / in it, so no name can end the script that holds it."""
        clear = {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "font": {"size": 12}}
        layout = {**clear, "height": self.height, **self.figure["layout"]}
        return Markup(to_json_plotly({**self.figure, "title": self.title, "layout": layout, "config": _CONFIG}))


def _axes(curves: Sequence[Curve]) -> dict[str, dict[str, Any]]:
    """The x of each line in every unit, and the axis' title, which says who has no times."""
    found: dict[str, dict[str, Any]] = {}
    for name, along in (("steps", [c.x for c in curves]), ("frames", [c.frames for c in curves]),
                        ("hours", [c.hours for c in curves])):  # fmt: skip
        absent = sum(x is None for x in along)
        note = (
            f" (no times for {absent} of {len(along)} lines)" if absent < len(along) else ": these runs have no times"
        )
        title = AXES[name] + (note if absent else "")
        lists = [[] if x is None else rounded(x) for x in along]
        found[name] = {"title": title, "x": lists, "format": ".3~f" if name == "hours" else ",.0f"}
    return found


def _traces(curves: Sequence[Curve], styles: Styles) -> list[dict[str, Any]]:
    """All bands, then all lines, so that no band hides a line; one click in the legend hides a line and its band."""
    bands: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for curve in curves:
        colour, dash = styles[curve.label]
        label = "<br>".join(_lines(curve.name))
        shared = {"type": "scatter", "legendgroup": label, "name": label, "mode": "lines"}
        ring = [*rounded(curve.high), *rounded(curve.low)[::-1]]
        fill = {"fill": "toself", "fillcolor": f"{colour}33", "line": {"width": 0}, "hoverinfo": "skip"}
        bands.append({**shared, **fill, "y": ring, "showlegend": False})
        pen = {"color": colour, "width": 2, "dash": _PLOTLY_DASHES[dash]}
        line = {**shared, "y": rounded(curve.mean), "line": pen, "hovertemplate": "%{y:.5g}"}
        if curve.x.size == 1:  # a line of one point would not be seen, nor its dashes
            line |= {"mode": "lines+markers", "marker": {"symbol": "circle" if dash == "solid" else "circle-open"}}
        lines.append(line)
    return bands + lines


def _ends(curves: Sequence[Curve]) -> str:
    """The last point of every line, for those who cannot see it."""
    ends = [
        f"{curve.name} {number(curve.mean[-1], 3)} [{number(curve.low[-1], 3)}, {number(curve.high[-1], 3)}]"
        for curve in curves
    ]
    return f"At the end: {'; '.join(ends)}."


def curve_chart(
    title: str, curves: Sequence[Curve], styles: Styles, *, x: str = "", line: tuple[float, str] | None = None
) -> Chart:
    """Means over seeds with their bands; ``styles`` are the labels', ``line`` is a dotted reference.

    Without a name for ``x`` the curves run along agent steps, and the page's switch changes that.
    """
    data, ends = _traces(curves, styles), _ends(curves)
    below = 60 + sum(5 + 15 * len(_lines(curve.name)) for curve in curves)
    layout: dict[str, Any] = {
        "margin": {"l": 50, "r": 12, "t": 24, "b": below},
        "xaxis": {"title": {"text": x, "standoff": 8}, "zeroline": False, "nticks": 6},
        "yaxis": {"zeroline": False, "automargin": True},
        "hovermode": "x unified",
        "hoverlabel": {"namelength": -1},
        "legend": {
            "x": 0,
            "xanchor": "left",
            "yref": "container",
            "yanchor": "bottom",
            "y": 0.01,
            "font": {"size": 11},
            "tracegroupgap": 2,
        },
        "modebar": {"bgcolor": "rgba(0,0,0,0)"},
    }
    if line:
        height, text = line
        reference = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": height, "y1": height}
        layout["shapes"] = [{**reference, "line": {"dash": "dot", "width": 1.5, "color": "#888888"}}]
        note = {"xref": "paper", "x": 1, "y": height, "xanchor": "right", "yanchor": "top"}
        layout["annotations"] = [{**note, "text": html.escape(text), "showarrow": False, "font": {"color": "#808080"}}]
    figure: dict[str, Any] = {"data": data, "layout": layout, "ends": ends, "along": x}
    if x:
        for curve, band, mean in zip(curves, data[: len(curves)], data[len(curves) :], strict=True):
            along = rounded(curve.x)
            band["x"], mean["x"] = along + along[::-1], along
    else:
        figure["axes"] = _axes(curves)
    return Chart(title, f"{title}, along {x or AXES['steps']}. {ends}", figure, 250 + below)


def pair_chart(title: str, sides: tuple[str, str], scores: Mapping[int, tuple[float, float]]) -> Chart:
    """Each seed's two scores, joined by a line: the baseline's on the left, the treatment's on the right."""
    data = []
    for seed, (ours, theirs) in scores.items():
        colour = COLOURS[0] if ours >= theirs else COLOURS[1]
        line = {"type": "scatter", "mode": "lines+markers", "x": [0, 1], "y": rounded(np.array([theirs, ours]))}
        data.append({**line, "name": f"seed {seed}", "line": {"color": colour}, "hovertemplate": "%{y:.5g}"})
    labels = ["<br>".join(_lines(side, _TICK_WIDTH)) for side in sides]
    layout = {
        "margin": {"l": 50, "r": 12, "t": 24, "b": 60}, "showlegend": False, "dragmode": False,
        "modebar": {"bgcolor": "rgba(0,0,0,0)"},
        "xaxis": {
            "tickvals": [0, 1], "ticktext": labels, "ticklabeloverflow": "allow", "range": [-0.35, 1.35],
            "zeroline": False, "fixedrange": True,
        },
        "yaxis": {"zeroline": False, "automargin": True, "title": {"text": "score"}},
    }  # fmt: skip
    higher = sum(ours > theirs for ours, theirs in scores.values())
    alt = f"{title}: {sides[1]} is higher than {sides[0]} in {higher} of {len(scores)} pairs"
    return Chart(title, alt, {"data": data, "layout": layout, "ends": alt, "along": "x"}, 300)


def grid_chart(title: str, values: Floats, cells: Sequence[Sequence[str]], limits: tuple[float, float]) -> Chart:
    """A grid of values as a heat map with ``cells`` written into it; a cell without a value is the goal, in red."""
    rows = [rounded(row) for row in values.reshape(len(cells), -1)]
    heat = {
        "type": "heatmap", "z": rows, "text": [list(row) for row in cells], "texttemplate": "%{text}",
        "textfont": {"size": 12},
        "colorscale": [[0, "#eff5fb"], [1, "#2171b5"]], "zmin": limits[0], "zmax": limits[1], "xgap": 2, "ygap": 2,
        "hovertemplate": "%{z:.4f}<extra></extra>", "showscale": False,
    }  # fmt: skip
    holes = [(x, y) for y, row in enumerate(rows) for x, value in enumerate(row) if value is None]
    red = {"type": "rect", "fillcolor": "#C8102E", "line": {"width": 0}}
    white = {"showarrow": False, "font": {"color": "#ffffff", "size": 16}}
    layout = {
        "margin": {"l": 4, "r": 4, "t": 4, "b": 4}, "dragmode": False,
        "xaxis": {"visible": False, "fixedrange": True},
        "yaxis": {"visible": False, "fixedrange": True, "autorange": "reversed"},
        "shapes": [{**red, "x0": x - 0.48, "x1": x + 0.48, "y0": y - 0.48, "y1": y + 0.48} for x, y in holes],
        "annotations": [{**white, "x": x, "y": y, "text": cells[y][x]} for x, y in holes],
    }  # fmt: skip
    spread = f"from {number(limits[0], 2)} to {number(limits[1], 2)}"
    alt = f"{title}: max Q of every cell, {spread} over all grids, highest next to the goal"
    return Chart(title, alt, {"data": [heat], "layout": layout, "ends": "", "along": ""}, 240)
