"""The report as one HTML page that needs no network: text, tables, and interactive charts by an inlined plotly.js."""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plotly.io.json import to_json_plotly
from plotly.offline import get_plotlyjs

from peer_rl.experiments.statistics import Curve, Estimate, Floats, Summary

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's colours, which colour-blind people tell apart."""
_DASHES = ("solid", "dashed", "dashdot", "dotted")
_CONFIG = {"displayModeBar": False, "responsive": True}
"""Plotly's own tool bar offers to upload the data; dragging zooms and a double click resets without it."""
_PLOTLY_DASHES = {"solid": "solid", "dashed": "dash", "dashdot": "dashdot", "dotted": "dot"}
_DRAW = """
for (const chart of document.querySelectorAll(".chart")) {
  const figure = JSON.parse(chart.nextElementSibling.textContent);
  Plotly.newPlot(chart, figure.data, figure.layout, figure.config);
}
"""
_CSS = """
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #5b6068; --line: #d9dce1; --back: #ffffff; --card: #f6f7f9;
  --accent: #0b62a8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #a3a9b3; --line: #3a3f47; --back: #15171a;
  --card: #1e2125; --accent: #7db8ec; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem 1.25rem 4rem; color: var(--ink); background: var(--back);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; margin: 2.75rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .25rem; }
p, li { max-width: 50rem; } .soft, .caption { color: var(--soft); }
ul { padding-left: 1.25rem; } a { color: var(--accent); }
.scroll { overflow-x: auto; margin: .75rem 0 1rem; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
.caption { margin: 1rem 0 -.25rem; max-width: none; font-size: .875rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 600; } .short { white-space: nowrap; }
tbody th:not(.short) { min-width: 16rem; } td:not(.short) { min-width: 10rem; }
code { font: .8125rem/1.4 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
details { margin: .75rem 0; } summary { cursor: pointer; color: var(--accent); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(21rem, 100%), 1fr)); gap: 1rem;
  margin: 1rem 0; }
figure { display: flex; flex-direction: column; justify-content: space-between;
  margin: 0; min-width: 0; background: var(--card); border-radius: .5rem; padding: .6rem .6rem .2rem; }
figcaption { font-size: .875rem; font-weight: 600; padding: 0 .25rem; }
img { max-width: 100%; height: auto; background: #fff; border-radius: .25rem; }
.js-plotly-plot :is(.xtick, .ytick, .g-xtitle, .legend) text { fill: var(--ink) !important; }
.js-plotly-plot :is(.gridlayer, .zerolinelayer) path { stroke: var(--line) !important; }
@media (max-width: 40rem) { body { padding: 1rem .9rem 3rem; } h1 { font-size: 1.45rem; } }
@media print { body { max-width: none; font-size: 10pt; } figure, tr { break-inside: avoid; }
  .scroll { overflow: visible; } table { font-size: 8pt; } h2, h3, figcaption { break-after: avoid; } }
"""


@dataclass(frozen=True)
class Table:
    """A table for the page and for Markdown: a caption that says where it comes from, a header, rows of text."""

    caption: str
    header: list[str]
    rows: list[list[str]]


def number(value: float, digits: int, *, sign: bool = False) -> str:
    """A number for people; a dash where there is none. Minus zero is zero."""
    if not math.isfinite(value):
        return "-"
    return f"{round(value, digits) + 0.0:{'+' if sign else ''},.{digits}f}"


def with_spread(summary: Summary) -> str:
    """``mean ± standard deviation`` over seeds."""
    mean, digits = number(summary.mean, summary.measure.digits), summary.measure.digits
    return f"{mean} ± {number(summary.std, digits)}" if math.isfinite(summary.std) else mean


def with_interval(estimate: Estimate | None, digits: int, *, sign: bool = False) -> str:
    """``value [low, high]``, as far as known."""
    if estimate is None:
        return "-"
    value = number(estimate.value, digits, sign=sign)
    if not estimate.has_interval:
        return value
    return f"{value} [{number(estimate.low, digits, sign=sign)}, {number(estimate.high, digits, sign=sign)}]"


def pairs(estimate: Estimate | None) -> str:
    """How many seeds a paired difference comes from."""
    return "-" if estimate is None else str(estimate.count)


def style(index: int) -> tuple[str, str]:
    """Colour and dash of the variant at ``index``: colours first, then other dashes."""
    return COLOURS[index % len(COLOURS)], _DASHES[index // len(COLOURS) % len(_DASHES)]


def table_html(table: Table) -> str:
    """A table that scrolls sideways on a narrow screen; the first cell of a row names it."""
    head = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in table.header)
    body = []
    for first, *rest in table.rows:
        cells = "".join(f"<td{_short(text)}>{html.escape(text)}</td>" for text in rest)
        body.append(f'<tr><th scope="row"{_short(first)}>{html.escape(first)}</th>{cells}</tr>')
    rows = f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>"
    caption = html.escape(table.caption)
    inner = f'<table aria-label="{caption}">{rows}</table>'
    return f'<p class="caption">{caption}</p><div class="scroll" tabindex="0">{inner}</div>'


def _short(text: str) -> str:
    """Numbers and names stay on one line."""
    return ' class="short"' if len(text) < 30 else ""


def details_html(summary: str, inner: str) -> str:
    """Something to unfold; ``inner`` is HTML."""
    return f"<details><summary>{html.escape(summary)}</summary>{inner}</details>"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f"<p{f' class={kind}' if kind else ''}>{html.escape(text)}</p>"


def bullets(lines: Sequence[str]) -> str:
    """A list of plain sentences."""
    return f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>"


def image_html(path: Path, alt: str) -> str:
    """A PNG inside the page."""
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{html.escape(alt)}">'


def charts_html(charts: Sequence[str]) -> str:
    """Charts side by side, as many as the screen has room for."""
    return f'<div class="charts">{"".join(charts)}</div>'


def _rounded(values: Floats) -> list[float | None]:
    return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values.tolist()]


def _figure(title: str, alt: str, data: list[Any], layout: dict[str, Any]) -> str:
    """One chart. Plotly writes <, > and / of the data as JSON escapes, so that no name in it can end the script."""
    clear = {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "font": {"size": 12}}
    figure = to_json_plotly({"data": data, "layout": clear | layout, "config": _CONFIG})
    caption = f"<figcaption>{html.escape(title)}</figcaption>"
    chart = f'<div class="chart" style="height:{layout["height"]}px"></div>'
    script = f'<script type="application/json">{figure}</script>'
    return f'<figure role="group" aria-label="{html.escape(alt)}">{caption}{chart}{script}</figure>'


def curve_chart(
    title: str,
    curves: Sequence[Curve],
    order: Sequence[str],
    *,
    x: str,
    line: tuple[float, str] | None = None,
) -> str:
    """Means over seeds with their bands; ``order`` fixes each label's colour, ``line`` is a dotted reference."""
    data: list[dict[str, Any]] = []
    for curve in curves:
        colour, dash = style(order.index(curve.label))
        axis, label = _rounded(curve.x), html.escape(curve.label)
        shared = {"legendgroup": label, "name": label, "mode": "lines"}
        band = [*_rounded(curve.high), *_rounded(curve.low)[::-1]]
        fill = {"fill": "toself", "fillcolor": f"{colour}33", "line": {"width": 0}, "hoverinfo": "skip"}
        data.append({**shared, **fill, "x": axis + axis[::-1], "y": band, "showlegend": False})
        pen = {"color": colour, "width": 2, "dash": _PLOTLY_DASHES[dash]}
        data.append({**shared, "x": axis, "y": _rounded(curve.mean), "line": pen, "hovertemplate": "%{y:.5g}"})
    below = 54 + 26 * len(curves)
    layout: dict[str, Any] = {
        "height": 270 + below,
        "margin": {"l": 50, "r": 12, "t": 10, "b": below},
        "xaxis": {"title": {"text": x, "standoff": 8}, "zeroline": False, "nticks": 6},
        "yaxis": {"zeroline": False, "automargin": True},
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": "#ffffff", "font": {"color": "#1c1e21"}, "namelength": -1},
        "legend": {"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0.01, "x": 0},
    }
    if line:
        height, text = line
        reference = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": height, "y1": height}
        layout["shapes"] = [{**reference, "line": {"dash": "dot", "width": 1.5, "color": "#888888"}}]
        note = {"xref": "paper", "x": 1, "y": height, "xanchor": "right", "yanchor": "top"}
        layout["annotations"] = [{**note, "text": html.escape(text), "showarrow": False, "font": {"color": "#808080"}}]
    alt = f"{title}, over {x}, for {', '.join(curve.label for curve in curves)}"
    return _figure(title, alt, data, layout)


def grid_chart(title: str, values: Floats, cells: Sequence[Sequence[str]], limits: tuple[float, float]) -> str:
    """A grid of values as a heat map with ``cells`` written into it; a cell without a value is the goal, in red."""
    rows = [_rounded(row) for row in values.reshape(len(cells), -1)]
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
        "height": 240, "margin": {"l": 4, "r": 4, "t": 4, "b": 4}, "dragmode": False,
        "xaxis": {"visible": False, "fixedrange": True},
        "yaxis": {"visible": False, "fixedrange": True, "autorange": "reversed"},
        "shapes": [{**red, "x0": x - 0.48, "x1": x + 0.48, "y0": y - 0.48, "y1": y + 0.48} for x, y in holes],
        "annotations": [{**white, "x": x, "y": y, "text": cells[y][x]} for x, y in holes],
    }  # fmt: skip
    return _figure(title, f"{title}: max Q of every cell", [heat], layout)


def section(heading: str, parts: Sequence[str]) -> str:
    """A part of the page; ``parts`` is HTML."""
    return f"<section><h2>{html.escape(heading)}</h2>{''.join(parts)}</section>"


def render(title: str, lead: str, sections: Sequence[str]) -> str:
    """The whole page. Its policy forbids every request, so a reader can trust that it sends nothing."""
    policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html.escape(title)}</title>",
            f"<style>{_CSS}</style>",
            f"<script>{get_plotlyjs()}</script>",
            "</head><body>",
            f"<h1>{html.escape(title)}</h1>",
            paragraph(lead, "soft"),
            "<noscript><p>The charts need JavaScript; the numbers and tables do not.</p></noscript>",
            *sections,
            f"<script>{_DRAW}</script>",
            "</body></html>\n",
        ]
    )
