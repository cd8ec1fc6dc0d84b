"""Scores, paired differences and intervals. Every draw comes from a fixed seed: a report is the same twice."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap, trim_mean

from peer_rl.report.runs import Group, Row, RunRecord

Floats = NDArray[np.float64]
LAST_EVALUATIONS = 10
"""Evaluations that the score averages, as in the paper."""
FEWEST_PAIRS = 6
"""With five pairs the exact sign-flip test cannot reach 5 %: its smallest p-value is 2 / 2^5."""
LEVEL = 0.05
"""Of every verdict that a report prints: its false-positive rate is at most this."""
_DRAWS = 9_999
_GENERATORS = 13
"""Of the sign flips that a test goes through: 2^13."""
STRATIFIED_DRAWS = 2_000


@dataclass(frozen=True)
class Estimate:
    """A number over seeds with its 95 % bootstrap interval; NaN ends where one seed allows none."""

    value: float
    low: float
    high: float
    count: int
    """How many seeds, or pairs of seeds, it comes from."""
    p: float = math.nan
    """p-value of the sign-flip test, for a paired difference."""

    @property
    def has_interval(self) -> bool:
        """Whether there were enough seeds for an interval."""
        return math.isfinite(self.low)

    @property
    def excludes_zero(self) -> bool:
        """Whether the whole interval lies on one side of zero."""
        return self.has_interval and not self.low <= 0 <= self.high

    def decided(self, level: float = LEVEL) -> bool:
        """Whether the difference has a sign: enough pairs, an interval without zero, and a small p-value."""
        return self.count >= FEWEST_PAIRS and self.excludes_zero and self.p <= level


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
        return mean_over(self.values)

    @property
    def std(self) -> float:
        """Over seeds, with n - 1."""
        return std_over(self.values)


def mean_over(values: Mapping[int, float]) -> float:
    """Of numbers by seed; NaN if there are none."""
    return float(np.mean(list(values.values()))) if values else math.nan


def std_over(values: Mapping[int, float]) -> float:
    """Of numbers by seed, with n - 1; NaN for fewer than two."""
    return float(np.std(list(values.values()), ddof=1)) if len(values) > 1 else math.nan


def as_floats(values: Sequence[Any]) -> Floats:
    """Numbers from a log; NaN for null and for anything that is no number."""
    return np.array([value if isinstance(value, int | float) else math.nan for value in values], dtype=np.float64)


def column(rows: Sequence[Row], name: str) -> Floats:
    """One key of all rows; NaN where it is missing or null."""
    return as_floats([row.get(name) for row in rows])


def finite(record: RunRecord, log: str, name: str) -> Floats:
    """The finite values of one key of a run's log."""
    values = column(record.rows.get(log, []), name)
    return values[np.isfinite(values)]


def last_finite(record: RunRecord, log: str, name: str) -> float:
    """The last of them; NaN if there is none."""
    values = finite(record, log, name)
    return float(values[-1]) if values.size else math.nan


def last_evaluation(record: RunRecord) -> float:
    """The mean return of a run's last evaluation."""
    means = column(record.rows.get("eval", []), "mean")
    return float(means[-1]) if means.size else math.nan


def score(record: RunRecord) -> float:
    """The mean of the last ten evaluations; of the last one alone where it has episodes of its own (Atari)."""
    means = column(record.rows.get("eval", []), "mean")[-1 if has_final(record) else -LAST_EVALUATIONS :]
    return float(means.mean()) if means.size else math.nan


def has_final(record: RunRecord) -> bool:
    """Whether the last evaluation is the score: the protocol gives it more episodes than the others."""
    return bool(record.config and record.config.protocol.final_episodes)


def best_evaluation(record: RunRecord) -> float:
    """The best evaluation of the run, which CURL's authors report."""
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
    """The mean with its BCa bootstrap interval."""
    data = np.asarray(values, dtype=np.float64)
    mean = float(data.mean())
    if data.size < 2:
        return Estimate(mean, math.nan, math.nan, data.size)
    if np.ptp(data) == 0:
        return Estimate(mean, mean, mean, data.size)
    ends = bootstrap((data,), np.mean, n_resamples=_DRAWS, rng=np.random.default_rng(0)).confidence_interval
    return Estimate(mean, float(ends.low), float(ends.high), data.size)


def sign_flip_p(differences: Sequence[float] | Floats) -> float:
    """Two-sided p-value of the mean of paired differences, when each could as well have had the other sign.

    Over all flips up to 13 pairs, over a random subgroup of 2^13 flips beyond: either way the test's level is exact.
    SciPy's ``permutation_test`` gives the same number up to 13 pairs and takes 300 times as long, which the simulated
    error rates cannot afford.
    """
    data = np.asarray(differences, dtype=np.float64)
    if data.size < 2:
        return math.nan
    sums = np.abs(_signs(data.size) @ data)
    return float(np.mean(sums >= np.abs(data.sum()) * (1 - 1e-12)))


@lru_cache(maxsize=64)
def _signs(count: int) -> Floats:
    """Every row of signs, or, where those are too many, the rows of a random subgroup: closed under products."""
    bits = np.array(list(itertools.product((0, 1), repeat=min(count, _GENERATORS))))
    if count > _GENERATORS:
        bits = bits @ np.random.default_rng(0).integers(2, size=(_GENERATORS, count)) % 2
    return 1.0 - 2.0 * bits


def mean_difference(differences: Sequence[float]) -> Estimate:
    """The mean of paired differences, its interval and its p-value."""
    return replace(bootstrap_mean(differences), p=sign_flip_p(differences))


def standardised(differences: Floats) -> Floats:
    """Differences in units of their root mean square, which no sign flip changes: tasks then count alike."""
    scale = float(np.sqrt(np.mean(np.square(differences))))
    return differences / scale if scale > 0 else differences


def suite_difference(by_task: Sequence[Floats]) -> Estimate:
    """The mean standardised difference over the pairs of several tasks, tested over all of them together."""
    return mean_difference(np.concatenate([standardised(differences) for differences in by_task]).tolist())


def percentile_interval(samples: Sequence[Floats], statistic: Callable[..., Floats], draws: int) -> tuple[Any, Any]:
    """The 95 % percentile bootstrap interval of a statistic whose ``samples`` are resampled independently.

    Each sample runs along its last axis; ``statistic`` takes the samples and their ``axis``. Percentiles as in
    rliable: BCa is undefined where no resample differs, such as for a probability of improvement of 1.
    """
    found = bootstrap(
        samples, statistic, n_resamples=draws, vectorized=True, axis=-1, method="percentile",
        rng=np.random.default_rng(0),
    )  # fmt: skip
    return found.confidence_interval.low, found.confidence_interval.high


def interval_of_mean(data: Floats, draws: int) -> tuple[Floats, Floats]:
    """Interval of the mean over the first axis: whole rows (seeds) are drawn, so a curve stays one curve."""
    low, high = percentile_interval((data.T,), np.mean, draws)
    return low, high


def paired_difference(values: Mapping[int, float], backbone: Mapping[int, float]) -> Estimate | None:
    """``values`` minus ``backbone`` over the seeds that both have."""
    common = sorted(values.keys() & backbone.keys())
    return mean_difference([values[seed] - backbone[seed] for seed in common]) if common else None


def iqm(scores: Floats) -> Estimate:
    """Interquartile mean of scores (runs x tasks); in its bootstrap the runs of each task are resampled separately."""

    def middle(*tasks: Floats, axis: int = -1) -> Floats:
        return np.asarray(trim_mean(np.concatenate(tasks, axis=axis), 0.25, axis=axis))

    tasks = list(scores.T)
    return _stratified(float(middle(*tasks)), tasks, middle, len(scores))


def improvement(scores: Floats, backbone: Floats) -> Estimate:
    """The probability that a run of one beats a run of the other on the same task, on average over tasks.

    Mann and Whitney's U over the number of pairs; both sides are resampled, each task separately.
    """
    count = scores.shape[1]

    def wins(*tasks: Floats, axis: int = -1) -> Floats:
        ours, theirs = tasks[:count], tasks[count:]
        shares = []
        for one, other in zip(ours, theirs, strict=True):
            left, right = one[..., :, None], other[..., None, :]
            shares.append(np.mean((left > right) + 0.5 * (left == right), axis=(-2, -1)))
        return np.asarray(np.mean(shares, axis=0))

    tasks = [*scores.T, *backbone.T]
    return _stratified(float(wins(*tasks)), tasks, wins, min(len(scores), len(backbone)))


def _stratified(value: float, tasks: Sequence[Floats], statistic: Callable[..., Floats], count: int) -> Estimate:
    if count < 2:
        return Estimate(value, math.nan, math.nan, count)
    low, high = percentile_interval(tasks, statistic, STRATIFIED_DRAWS)
    return Estimate(value, float(low), float(high), count)


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
