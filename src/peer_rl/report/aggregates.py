"""Many tasks in one number: normalised scores of a variant and its backbone over the tasks of a suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from peer_rl.report.curves import Curve
from peer_rl.report.runs import Group, Key, terms
from peer_rl.report.scores import (
    SCORE,
    STRATIFIED_DRAWS,
    Estimate,
    Floats,
    improvement,
    iqm,
    percentile_interval,
    suite_difference,
    summarise,
)
from peer_rl.report.tables import Table, full_linked, with_interval
from peer_rl.settings.atari_games import human_normalised
from peer_rl.settings.tasks import find_task

FEWEST_TASKS = 2
_THRESHOLDS = 61
_DMC_MOST = 1000.0
"""An episode of DMControl has 1000 frames with at most 1 each."""

SCALES = {
    "atari": "human-normalised: 0 is random play, 1 a human player (both from the paper's table 3)",
    "dmc": "divided by 1000, the most that an episode can give",
}
OWN_SCALE = (
    "divided by the backbone's mean over the same seeds, so 1 is the backbone: returns of this suite have no common "
    "scale. The intervals take that mean as exact. The probability of improvement needs no scale"
)


@dataclass(frozen=True)
class Aggregate:
    """A variant against its backbone over those tasks of a suite, and those seeds, that both have."""

    profile: str
    suite: str
    variant: Group
    """The variant's group on the first of the tasks."""
    backbone: Group
    tasks: list[str]
    seeds: list[int]
    improvement: Estimate
    difference: Estimate
    """Paired, in units of each task's root mean square difference, tested over all pairs together."""
    better: int
    """Tasks on which the variant's mean is above the backbone's."""
    unscaled: list[str]
    """Tasks without a scale: a backbone's mean that is not above zero cannot be divided by."""
    incomplete: list[str]
    """Tasks on which too few of the seeds are finished."""
    iqms: tuple[Estimate, Estimate] | None
    """Of the normalised scores, the variant's first; None if fewer than two tasks have a scale."""
    profiles: list[Curve]
    """Fraction of runs above each normalised score, the backbone's first."""

    @property
    def terms(self) -> str:
        """The profile, or that the settings are a user's own."""
        return terms([self.variant, self.backbone])

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The two labels of the performance profiles, each with its backbone's."""
        plain = self.backbone.full_label
        return [(plain, ""), (self.variant.full_label, plain)]


def normalise(task: str, scores: Floats, backbone_mean: float) -> Floats | None:
    """Scores of one task on its suite's scale; None where there is none."""
    suite = find_task(task).suite
    if suite == "atari":
        return np.array([human_normalised(task, score) for score in scores.tolist()])
    if suite == "dmc":
        return scores / _DMC_MOST
    return scores / backbone_mean if backbone_mean > 0 else None


def aggregates(groups: Sequence[Group]) -> list[Aggregate]:
    """One for each variant that ran, like its backbone, on several tasks of a suite."""
    values = {summary.group.key: dict(summary.values) for summary in summarise(groups, SCORE)}
    by_key = {group.key: group for group in groups}
    compared = [group for group in groups if group.backbone in by_key]

    def family(group: Group) -> tuple[str, str, str]:
        return group.profile, find_task(group.task).suite, group.key[2]

    found = []
    for _, members in groupby(sorted(compared, key=family), key=family):
        pairs = [(group, by_key[group.backbone]) for group in members if group.backbone]
        pairs = [(ours, plain) for ours, plain in pairs if values[ours.key].keys() & values[plain.key].keys()]
        if len(pairs) >= FEWEST_TASKS and (aggregate := _aggregate(pairs, values)):
            found.append(aggregate)
    return found


Pair = tuple[Group, Group]
"""A variant and its backbone on one task."""


def _rectangle(pairs: list[Pair], values: dict[Key, dict[int, float]]) -> tuple[list[Pair], list[int]]:
    """The tasks and seeds to aggregate: all runs of a rectangle must be there, and the one with most runs is taken."""
    common = [set(values[ours.key]) & set(values[plain.key]) for ours, plain in pairs]
    order = sorted(range(len(pairs)), key=lambda index: -len(common[index]))
    choices = []
    for count in range(FEWEST_TASKS, len(order) + 1):
        kept = sorted(order[:count])
        seeds = set.intersection(*(common[index] for index in kept))
        choices.append(([pairs[index] for index in kept], sorted(seeds)))
    return max(choices, key=lambda choice: len(choice[0]) * len(choice[1]))


def _aggregate(given: list[Pair], values: dict[Key, dict[int, float]]) -> Aggregate | None:
    pairs, seeds = _rectangle(given, values)
    if not seeds:
        return None
    scores, backbone = (
        np.array([[values[pair[side].key][seed] for pair in pairs] for seed in seeds]) for side in (0, 1)
    )
    tasks = [ours.task for ours, _ in pairs]
    means = backbone.mean(axis=0).tolist()
    scaled = [
        [normalise(task, column, mean) for task, column, mean in zip(tasks, side.T, means, strict=True)]
        for side in (scores, backbone)
    ]
    kept = [index for index, column in enumerate(scaled[0]) if column is not None]
    ours, plain = (np.array([side[index] for index in kept], dtype=np.float64).T for side in scaled)
    variant, reference = pairs[0]
    enough = len(kept) >= FEWEST_TASKS
    return Aggregate(
        variant.profile,
        find_task(variant.task).suite,
        variant,
        reference,
        tasks,
        seeds,
        improvement(scores, backbone),
        suite_difference(list((scores - backbone).T)),
        int((scores.mean(axis=0) > backbone.mean(axis=0)).sum()),
        [task for index, task in enumerate(tasks) if index not in kept],
        [ours.task for ours, _ in given if ours.task not in tasks],
        (iqm(ours), iqm(plain)) if enough else None,
        performance_profiles({reference.full_label: plain, variant.full_label: ours}) if enough else [],
    )


def performance_profiles(scores: dict[str, Floats]) -> list[Curve]:
    """The fraction of runs above each score, with bootstrap bands, at thresholds that span all scores."""
    everything = np.concatenate([matrix.ravel() for matrix in scores.values()])
    margin = float(np.ptp(everything)) / 20 or 0.5
    thresholds = np.linspace(everything.min() - margin, everything.max() + margin, _THRESHOLDS)

    def shares(*tasks: Floats, axis: int = -1) -> Floats:
        together = np.concatenate(tasks, axis=axis)
        return np.stack([np.mean(together > level, axis=axis) for level in thresholds])

    curves = []
    for label, matrix in scores.items():
        tasks = list(matrix.T)
        share = shares(*tasks)
        low, high = percentile_interval(tasks, shares, STRATIFIED_DRAWS) if len(matrix) > 1 else (share, share)
        curves.append(Curve(label, thresholds, share, low, high, len(matrix)))
    return curves


def aggregate_table(found: Sequence[Aggregate]) -> Table:
    """The aggregates of one suite and profile."""
    rows = []
    for one in found:
        ours, plain = one.iqms or (None, None)
        rows.append(
            [
                full_linked(one.variant),
                full_linked(one.backbone),
                str(len(one.tasks)),
                str(len(one.seeds)),
                with_interval(ours, 3),
                with_interval(plain, 3),
                with_interval(one.improvement, 2),
                f"{one.better} of {len(one.tasks)}",
            ]
        )
    suite, both = found[0].suite, [group for one in found for group in (one.variant, one.backbone)]
    tasks = list(dict.fromkeys(task for one in found for task in one.tasks))
    unscaled = list(dict.fromkeys(task for one in found for task in one.unscaled))
    incomplete = list(dict.fromkeys(task for one in found for task in one.incomplete))
    words = [
        f"{terms(both).capitalize()}; {', '.join(tasks)}; the seeds that both sides finished on every task.",
        f"Scores are {SCALES.get(suite, OWN_SCALE)}.",
        "P(better): that a run of the variant beats a run of the backbone on the same task, mean over tasks.",
    ]
    if unscaled:
        words.append(f"Not in the IQM, because the backbone's mean is not above zero: {', '.join(unscaled)}.")
    if incomplete:
        words.append(f"Left out, because too few seeds are finished there: {', '.join(incomplete)}.")
    header = ["variant", "backbone", "tasks", "seeds", "IQM [95 %]", "backbone's IQM [95 %]", "P(better) [95 %]"]
    return Table(" ".join(words), [*header, "tasks with a higher mean"], rows)
