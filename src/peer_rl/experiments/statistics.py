"""Scores, paired differences and intervals. Every draw comes from a fixed seed: a report is the same twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rliable.library import StratifiedBootstrap
from rliable.metrics import aggregate_iqm

from peer_rl.experiments.runs import Group, Row, RunRecord

Floats = NDArray[np.float64]
LAST_EVALUATIONS = 10
"""Evaluations that the score averages, as in the paper."""
_CONFIDENCE = (2.5, 97.5)
_DRAWS = 10_000
_BAND_DRAWS = 1_000
_IQM_DRAWS = 2_000
_POINTS = 300


@dataclass(frozen=True)
class Estimate:
    """A number over seeds with its 95 % bootstrap interval; NaN ends where one seed allows none."""

    value: float
    low: float
    high: float
    count: int
    """How many seeds, or pairs of seeds, it comes from."""

    @property
    def has_interval(self) -> bool:
        """Whether there were enough seeds for an interval."""
        return math.isfinite(self.low)

    @property
    def excludes_zero(self) -> bool:
        """Whether the whole interval lies on one side of zero."""
        return self.has_interval and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class Measure:
    """A number that one finished run has."""

    name: str
    title: str
    of: Callable[[RunRecord], float]
    digits: int = 1


@dataclass(frozen=True)
class Summary:
    """One measure of one group."""

    group: Group
    measure: Measure
    values: Mapping[int, float]
    """By seed; a seed whose number is not finite is not in it."""
    difference: Estimate | None
    """To the backbone, paired by seed; None for a backbone, or if no seed ran with both."""

    @property
    def mean(self) -> float:
        """Over seeds."""
        return float(np.mean(list(self.values.values()))) if self.values else math.nan

    @property
    def std(self) -> float:
        """Over seeds, with n - 1."""
        return float(np.std(list(self.values.values()), ddof=1)) if len(self.values) > 1 else math.nan


@dataclass(frozen=True)
class Curve:
    """The mean over seeds along an axis, with a band."""

    label: str
    x: Floats
    mean: Floats
    low: Floats
    high: Floats
    seeds: int


def as_floats(values: Sequence[Any]) -> Floats:
    """Numbers from a log; NaN for null and for anything that is no number."""
    return np.array([value if isinstance(value, int | float) else math.nan for value in values], dtype=np.float64)


def column(rows: Sequence[Row], name: str) -> Floats:
    """One key of all rows; NaN where it is missing or null."""
    return as_floats([row.get(name) for row in rows])


def score(record: RunRecord) -> float:
    """The mean of the last ten evaluations; of the last one alone where it has episodes of its own (Atari)."""
    means = column(record.rows.get("eval", []), "mean")[-1 if has_final(record) else -LAST_EVALUATIONS :]
    return float(means.mean()) if means.size else math.nan


def has_final(record: RunRecord) -> bool:
    """Whether the last evaluation is the score: the protocol gives it more episodes than the others."""
    return bool(record.config and record.config.protocol.final_episodes)


def best_evaluation(record: RunRecord) -> float:
    """The best evaluation of the training, which CURL's authors report."""
    means = column(record.rows.get("eval", []), "mean")
    return float(means.max()) if means.size else math.nan


def within_steps(record: RunRecord) -> float:
    """The mean return of the last evaluation's episodes that end within ``final_steps``, as the paper evaluates."""
    if record.config is None or not record.rows.get("eval"):
        return math.nan
    last = record.rows["eval"][-1]
    ends = np.cumsum(as_floats(last["lengths"]))
    returns = as_floats(last["returns"])[ends <= record.config.protocol.final_steps]
    return float(returns.mean()) if returns.size else math.nan


SCORE = Measure("score", "Score", score, 2)
BEST = Measure("best", "Best evaluation", best_evaluation, 2)
WITHIN = Measure("within", "Mean of the final evaluation's first steps", within_steps, 2)


def bootstrap_mean(values: Sequence[float]) -> Estimate:
    """The mean with its percentile bootstrap interval."""
    data = np.asarray(values, dtype=np.float64)
    low, high = _percentiles(data[:, None], _DRAWS) if data.size > 1 else (np.array([math.nan]), np.array([math.nan]))
    return Estimate(float(data.mean()), float(low[0]), float(high[0]), data.size)


def _percentiles(data: Floats, draws: int) -> tuple[Floats, Floats]:
    """Interval of the mean over the first axis: whole rows (seeds) are drawn, so a curve stays one curve."""
    picks = np.random.default_rng(0).integers(len(data), size=(draws, len(data)))
    weights = np.stack([(picks == row).mean(axis=1) for row in range(len(data))], axis=1)
    low, high = np.percentile(weights @ data, _CONFIDENCE, axis=0)
    return low, high


def paired_difference(values: Mapping[int, float], backbone: Mapping[int, float]) -> Estimate | None:
    """``values`` minus ``backbone`` over the seeds that both have."""
    common = sorted(values.keys() & backbone.keys())
    return bootstrap_mean([values[seed] - backbone[seed] for seed in common]) if common else None


class _SeededBootstrap(StratifiedBootstrap):  # type: ignore[misc]
    """rliable 1.2 draws from numpy's global generator, whatever random_state it is given."""

    def __init__(self, scores: Floats) -> None:
        super().__init__(scores)
        self._draws = np.random.default_rng(0)

    def update_indices(self) -> tuple[Any, ...]:
        """Runs to take, for each task apart."""
        return (self._draws.integers(self._num_items, size=self._args_shape), *self._strata_indices)


def iqm(scores: Floats) -> Estimate:
    """Interquartile mean of scores (runs x tasks), with rliable's stratified bootstrap over runs."""
    value = float(aggregate_iqm(scores))
    if len(scores) < 2:
        return Estimate(value, math.nan, math.nan, len(scores))
    interval = _SeededBootstrap(scores).conf_int(
        lambda sample: np.array([aggregate_iqm(sample)]), reps=_IQM_DRAWS, size=0.95, method="percentile"
    )
    return Estimate(value, float(interval[0, 0]), float(interval[1, 0]), len(scores))


def summarise(groups: Sequence[Group], measure: Measure) -> list[Summary]:
    """The measure of each group, and its difference to the backbone's, paired by seed."""
    values = {
        group.key: {
            seed: value
            for seed, record in zip(group.seeds, group.finished, strict=True)
            if math.isfinite(value := measure.of(record))
        }
        for group in groups
    }
    return [
        Summary(
            group,
            measure,
            values[group.key],
            paired_difference(values[group.key], values.get(group.backbone, {})) if group.backbone else None,
        )
        for group in groups
    ]


def half_std(curves: Floats) -> tuple[Floats, Floats]:
    """Half a standard deviation (n - 1) to each side of the mean, as the paper shades."""
    mean = curves.mean(axis=0)
    half = curves.std(axis=0, ddof=1) / 2 if len(curves) > 1 else np.zeros_like(mean)
    return mean - half, mean + half


def bootstrap_band(curves: Floats) -> tuple[Floats, Floats]:
    """The 95 % interval of the mean at every point; no width for a single seed."""
    return _percentiles(curves, _BAND_DRAWS) if len(curves) > 1 else (curves[0], curves[0])


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
    """One logged number of a group's finished runs."""
    rows = [record.rows.get(log, []) for record in group.finished]
    return mean_curve(group.label, [(column(lines, x), column(lines, name)) for lines in rows], spread)
