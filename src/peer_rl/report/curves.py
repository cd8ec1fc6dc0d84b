"""Curves over seeds: the mean along agent steps, its band, and the same points in frames and in hours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from peer_rl.report.runs import Group, Row
from peer_rl.report.scores import Floats, column, interval_of_mean

_BAND_DRAWS = 1_000
_POINTS = 300


@dataclass(frozen=True)
class Curve:
    """The mean over seeds along an axis, with a band."""

    label: str
    x: Floats
    mean: Floats
    low: Floats
    high: Floats
    seeds: int
    frames: Floats | None = None
    """Environment frames at each ``x``, where that counts agent steps."""
    hours: Floats | None = None
    """Hours of training up to each ``x``, the mean over seeds; None if a run has no times."""
    runs: int = 0
    """How many finished runs there are, where known; ``seeds`` of them have this number."""

    @property
    def name(self) -> str:
        """The label, and how many seeds are in the curve if that is not all of them."""
        return f"{self.label}: {self.seeds} of {self.runs} seeds" if self.seeds < self.runs else self.label


def half_std(curves: Floats) -> tuple[Floats, Floats]:
    """Half a standard deviation (n - 1) to each side of the mean, as the paper shades."""
    mean = curves.mean(axis=0)
    half = curves.std(axis=0, ddof=1) / 2 if len(curves) > 1 else np.zeros_like(mean)
    return mean - half, mean + half


def bootstrap_band(curves: Floats) -> tuple[Floats, Floats]:
    """The 95 % interval of the mean at every point; no width for a single seed."""
    return interval_of_mean(curves, _BAND_DRAWS) if len(curves) > 1 else (curves[0], curves[0])


Spread = Callable[[Floats], tuple[Floats, Floats]]


def mean_curve(label: str, series: Sequence[tuple[Floats, Floats]], spread: Spread) -> Curve | None:
    """The mean of each seed's (x, y), interpolated to one axis that spans what all seeds cover."""
    whole = [(x[finite], y[finite]) for x, y in series if (finite := np.isfinite(x) & np.isfinite(y)).any()]
    if not whole:
        return None
    start, end = max(x[0] for x, _ in whole), min(x[-1] for x, _ in whole)
    axis = np.unique(np.concatenate([x for x, _ in whole]))
    axis = axis[(axis >= start) & (axis <= end)]
    if not axis.size:
        return None
    if axis.size > _POINTS:
        axis = np.linspace(start, end, _POINTS)
    curves = np.stack([np.interp(axis, x, y) for x, y in whole])
    low, high = spread(curves)
    return Curve(label, axis, curves.mean(axis=0), low, high, len(whole))


def log_curve(group: Group, log: str, name: str, spread: Spread, *, x: str = "step") -> Curve | None:
    """One logged number of a group's finished runs; along agent steps, with frames and hours."""
    rows = [record.rows.get(log, []) for record in group.finished]
    curve = mean_curve(group.label, [(column(lines, x), column(lines, name)) for lines in rows], spread)
    if curve is None:
        return None
    curve = replace(curve, runs=len(rows))
    if x != "step":
        return curve
    return replace(curve, frames=_frames(rows, curve.x), hours=_hours(group, curve.x))


def log_curves(groups: Sequence[Group], log: str, name: str, spread: Spread, *, x: str = "step") -> list[Curve]:
    """The curves of all groups that logged it."""
    found = (log_curve(group, log, name, spread, x=x) for group in groups)
    return [curve for curve in found if curve]


def _frames(rows: Sequence[Sequence[Row]], steps: Floats) -> Floats | None:
    counted = [(column(lines, "step"), column(lines, "frame")) for lines in rows if lines]
    if not all(np.isfinite(counts).all() for pair in counted for counts in pair):
        return None
    mean: Floats = np.mean([np.interp(steps, *pair) for pair in counted], axis=0)
    return mean


def _hours(group: Group, steps: Floats) -> Floats | None:
    clocks = [clock(record.rows.get("timing", [])) for record in group.finished]
    if not clocks or not all(times.size for _, times in clocks):
        return None
    mean: Floats = np.mean([np.interp(steps, *pair) for pair in clocks], axis=0)
    return mean


def clock(rows: Sequence[Row]) -> tuple[Floats, Floats]:
    """Agent steps, and the hours of training up to each, from the lines of timing.jsonl; empty if there are none.

    Every start of a run counts its own seconds. What a killed start did after the checkpoint that the next one
    resumed from is left out: it was played again.
    """
    steps: list[float] = []
    seconds: list[float] = []
    began, before, last = -1, 0.0, math.inf
    for step, passed, speed in zip(
        *(column(rows, key) for key in ("step", "seconds", "steps_per_second")), strict=True
    ):
        if not math.isfinite(step + passed + speed):
            continue
        start = round(step - passed * speed)
        if start != began or passed <= last:
            began = start
            before = float(np.interp(start, steps, seconds)) if steps else 0.0
            kept = int(np.searchsorted(steps, start, side="left"))
            steps, seconds = [*steps[:kept], float(start)], [*seconds[:kept], before]
        steps.append(float(step))
        seconds.append(before + float(passed))
        last = float(passed)
    return np.array(steps), np.array(seconds) / 3600
