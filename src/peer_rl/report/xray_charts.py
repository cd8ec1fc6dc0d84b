"""The charts of ``peer-rl xray``: a number along an episode, and phi and phi' on their principal components."""

from __future__ import annotations

from typing import Any

import numpy as np

from peer_rl.report.charts import Chart, rounded, style
from peer_rl.report.scores import Floats
from peer_rl.report.tables import number

Ints = np.ndarray[Any, Any]
_MOST_POINTS = 500


def time_chart(title: str, values: Floats, episode: Ints, most: int) -> Chart:
    """One line for each of the first episodes, along its steps."""
    data = []
    for index in range(min(most, int(episode.max()) + 1)):
        rows = values[episode == index]
        pen = {"color": style(index)[0], "width": 1.5}
        line = {"type": "scatter", "mode": "lines", "x": list(range(len(rows))), "y": rounded(rows)}
        data.append({**line, "name": f"episode {index + 1}", "line": pen, "hovertemplate": "%{y:.4g}"})
    layout = {
        "margin": {"l": 50, "r": 12, "t": 24, "b": 90},
        "xaxis": {"title": {"text": "step of the episode", "standoff": 8}, "zeroline": False},
        "yaxis": {"zeroline": False, "automargin": True},
        "legend": {"orientation": "h", "yref": "container", "y": 0.01, "yanchor": "bottom"},
        "modebar": {"bgcolor": "rgba(0,0,0,0)"},
    }
    finite = values[np.isfinite(values)]
    ends = f"mean {number(float(finite.mean()), 3)}" if finite.size else "not defined"
    if finite.size:
        ends += f", from {number(float(finite.min()), 3)} to {number(float(finite.max()), 3)}"
    figure = {"data": data, "layout": layout, "ends": ends, "along": "step of the episode"}
    return Chart(title, f"{title}, along the step of the episode: {ends}", figure, 360)


def principal_components(phi: Floats, phi_next: Floats) -> tuple[Floats, Floats, float]:
    """Both on the two directions in which they vary most together, and the fraction of variance in these."""
    both = np.concatenate([phi, phi_next])
    centre = both.mean(axis=0)
    _, sigma, directions = np.linalg.svd(both - centre, full_matrices=False)
    plane = np.zeros((2, phi.shape[1]))
    plane[: min(2, len(directions))] = directions[:2]
    total = float(np.square(sigma).sum())
    share = float(np.square(sigma[:2]).sum()) / total if total > 0 else 0.0
    return (phi - centre) @ plane.T, (phi_next - centre) @ plane.T, share


def projection_chart(title: str, phi: Floats, phi_next: Floats, episode: Ints) -> Chart:
    """The first episode's phi and phi', coloured by time."""
    rows = np.flatnonzero(episode == 0)
    rows = rows[:: max(1, len(rows) // _MOST_POINTS)]
    mine, theirs, share = principal_components(phi[rows], phi_next[rows])
    data = []
    for name, points, symbol, bar in (("phi", mine, "circle", True), ("phi'", theirs, "x-thin-open", False)):
        marker = {"color": rows.tolist(), "colorscale": "Viridis", "size": 6, "symbol": symbol, "showscale": bar}
        marker["colorbar"] = {"title": {"text": "step"}, "thickness": 10}
        place = {"x": rounded(points[:, 0]), "y": rounded(points[:, 1])}
        data.append({"type": "scatter", "mode": "markers", "name": name, "marker": marker, **place})
    layout = {
        "margin": {"l": 50, "r": 12, "t": 24, "b": 90},
        "xaxis": {"title": {"text": "first component", "standoff": 8}, "zeroline": False},
        "yaxis": {"title": {"text": "second component"}, "zeroline": False, "automargin": True},
        "legend": {"orientation": "h", "yref": "container", "y": 0.01, "yanchor": "bottom"},
        "modebar": {"bgcolor": "rgba(0,0,0,0)"},
    }
    ends = f"the two components hold {100 * share:.0f} % of the variance"
    figure = {"data": data, "layout": layout, "ends": ends, "along": "first component"}
    return Chart(f"{title} ({100 * share:.0f} % of the variance)", f"{title}: {ends}", figure, 360)
