"""A ledger's answer: the comparisons that its plan fixed beforehand, tested on the runs that are there.

The plan (``results/ledger.toml``) names blocks. Each compares variants with a baseline on the tasks of its grids, by
one score. A verdict is given when a look is complete: all of its seeds on both sides. The levels of the looks add up
to 5 %.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from peer_rl.errors import ConfigError
from peer_rl.launch.jobs import Job
from peer_rl.launch.sweep import read_sweep
from peer_rl.report.findings import effect
from peer_rl.report.runs import Group, RunRecord
from peer_rl.report.scores import (
    FEWEST_PAIRS,
    LEVEL,
    SCORE,
    Estimate,
    Floats,
    Measure,
    column,
    improvement,
    iqm,
    last_evaluation,
    mean_difference,
    standardised,
    suite_difference,
)
from peer_rl.settings.run import AnyRunConfig
from peer_rl.training.rundir import read_toml

REPRESENTATION = {"cosine": "cosine", "drd": "DRD", "feature_norm": "norm of phi", "effective_rank": "effective rank"}
_LAST_DIAGNOSTICS = 10


def mean_of_last(name: str) -> Measure:
    """A diagnostic at the end of training: the mean of its last ten values."""

    def of(record: RunRecord) -> float:
        values = column(record.rows.get("diagnostics", []), name)[-_LAST_DIAGNOSTICS:]
        return float(np.nanmean(values)) if np.isfinite(values).any() else math.nan

    return Measure(f"last_{name}", REPRESENTATION.get(name, name), of)


SCORES = {"last-ten": SCORE, "final": Measure("final", "Evaluation at the budget", last_evaluation, 2)}


@dataclass(frozen=True)
class Look:
    """When a verdict is given, and the level of its test."""

    seeds: int
    level: float


@dataclass(frozen=True)
class Block:
    """One question of the plan."""

    name: str
    question: str
    score: str
    comparisons: tuple[tuple[str, str], ...]
    """Pairs of variants, as run directories name them: the treatment and its baseline."""
    tasks: tuple[str, ...]
    profile: str
    seeds: Mapping[tuple[str, str], tuple[int, ...]]
    """Planned seeds by task and variant, of the whole ledger."""
    configs: Mapping[str, AnyRunConfig]
    """One config of each variant, of the whole ledger."""
    hold: str = ""
    """Why none of its runs may start yet."""


@dataclass(frozen=True)
class Ledger:
    """The plan."""

    looks: tuple[Look, ...]
    blocks: tuple[Block, ...]

    def progress(self, groups: Sequence[Group]) -> tuple[int, int]:
        """Finished and planned runs."""
        planned = {
            (block.profile, task, variant, seed)
            for block in self.blocks
            for (task, variant), seeds in block.seeds.items()
            if task in block.tasks
            for seed in seeds
        }
        finished = {(*group.key, seed) for group in groups for seed in group.seeds}
        return len(planned & finished), len(planned)


def read_ledger(file: Path) -> Ledger:
    """The plan in a file, checked."""
    table = read_toml(file).get("ledger")
    if not isinstance(table, dict) or not isinstance(table.get("block"), list):
        raise ConfigError(f"{file} is not a ledger: it has no [[ledger.block]]")
    looks = tuple(Look(int(one["seeds"]), float(one["level"])) for one in table.get("looks", []))
    looks = looks or (Look(FEWEST_PAIRS, LEVEL),)
    if sum(look.level for look in looks) > LEVEL + 1e-9:
        raise ConfigError(f"{file}: the levels of the looks must add up to {LEVEL:g} at most")
    planned = {block["name"]: read_sweep(file, Path(), block=block["name"]).jobs for block in table["block"]}
    seeds: dict[tuple[str, str], set[int]] = {}
    configs: dict[str, AnyRunConfig] = {}
    for job in itertools.chain(*planned.values()):
        variant = job.path.parent.name
        seeds.setdefault((job.config.task, variant), set()).add(job.config.seed)
        configs.setdefault(variant, job.config)
    everywhere = {key: tuple(sorted(found)) for key, found in seeds.items()}
    blocks = (_block(file, one, planned[one["name"]], everywhere, configs) for one in table["block"])
    return Ledger(looks, tuple(blocks))


def _block(
    file: Path,
    table: dict[str, Any],
    planned: Sequence[Job],
    seeds: Mapping[tuple[str, str], tuple[int, ...]],
    configs: Mapping[str, AnyRunConfig],
) -> Block:
    name = table["name"]
    if table.get("score") not in SCORES:
        raise ConfigError(f"{file}, block {name}: score must be one of {', '.join(SCORES)}")
    for variant in itertools.chain(*table["comparisons"]):
        if variant not in configs:
            raise ConfigError(f"{file}, block {name}: no grid runs {variant!r}; there are {', '.join(configs)}")
    comparisons = tuple((first, second) for first, second in table["comparisons"])
    tasks = tuple(dict.fromkeys(job.config.task for job in planned))
    profile, hold = planned[0].config.profile, table.get("hold", "")
    return Block(name, table["question"], table["score"], comparisons, tasks, profile, seeds, configs, hold)


@dataclass(frozen=True)
class TaskAnswer:
    """A treatment and its baseline on one task."""

    task: str
    treatment: Group | None
    baseline: Group | None
    planned: int
    """Pairs that the plan wants."""
    scores: Mapping[int, tuple[float, float]]
    """By seed, of the pairs that count: the treatment's and the baseline's."""
    level: float | None
    """Of the last complete look; None before the first."""
    difference: Estimate | None = None
    better: Estimate | None = None
    representation: Mapping[str, Floats] = field(default_factory=dict)
    """For each diagnostic the paired differences, in the order of ``scores``."""

    @property
    def differences(self) -> Floats:
        """Of the scores, by seed."""
        return np.array([ours - theirs for ours, theirs in self.scores.values()])

    @property
    def verdict(self) -> str:
        """helps, hurts or not decided."""
        return effect(self.difference, self.level)


@dataclass(frozen=True)
class Answer:
    """A comparison over the tasks of its block."""

    block: Block
    treatment: str
    baseline: str
    tasks: list[TaskAnswer]
    level: float | None
    """Of the last look that is complete on every task; None before the first."""
    suite: Estimate | None
    """The standardised difference over all pairs."""
    iqms: tuple[Estimate, Estimate] | None
    """Of scores divided by the baseline's mean: treatment, baseline."""
    better: Estimate | None
    correlations: Mapping[str, tuple[float, float, int]]
    """For each diagnostic, Spearman's correlation over pairs with the score's difference, its p-value, the pairs."""

    @property
    def verdict(self) -> str:
        """helps, hurts or not decided."""
        return effect(self.suite, self.level)

    @property
    def finished(self) -> int:
        """Pairs that are there."""
        return sum(len(task.scores) for task in self.tasks)

    @property
    def planned(self) -> int:
        """Pairs that the plan wants."""
        return sum(task.planned for task in self.tasks)


def answers(ledger: Ledger, groups: Sequence[Group]) -> list[Answer]:
    """Every comparison of the plan, in its order."""
    by_key = {group.key: group for group in groups}
    return [
        _answer(ledger, block, treatment, baseline, by_key)
        for block in ledger.blocks
        for treatment, baseline in block.comparisons
    ]


def _answer(
    ledger: Ledger, block: Block, treatment: str, baseline: str, groups: Mapping[tuple[str, str, str], Group]
) -> Answer:
    pairs = [
        _pairs(block, task, treatment, baseline, groups)
        for task in block.tasks
        if (task, treatment) in block.seeds and (task, baseline) in block.seeds
    ]
    look = max((look for look in ledger.looks if all(_complete(one, look) for one in pairs)), key=_seeds, default=None)
    tasks = [_task_answer(one, ledger, look) for one in pairs]
    shown = [task for task in tasks if task.scores]
    common = set.intersection(*(set(task.scores) for task in tasks)) if tasks else set()
    matrices = [np.array([[task.scores[seed][side] for task in tasks] for seed in sorted(common)]) for side in (0, 1)]
    means = matrices[1].mean(axis=0) if common else np.zeros(0)
    return Answer(
        block, treatment, baseline, tasks, look.level if look else None,
        suite_difference([task.differences for task in shown]) if shown else None,
        (iqm(matrices[0] / means), iqm(matrices[1] / means)) if common and (means > 0).all() else None,
        improvement(*matrices) if common else None,
        _correlations(shown),
    )  # fmt: skip


def _seeds(look: Look) -> int:
    return look.seeds


@dataclass(frozen=True)
class _Pairs:
    task: str
    treatment: Group | None
    baseline: Group | None
    planned: tuple[int, ...]
    scores: dict[int, tuple[float, float]]
    records: dict[int, tuple[RunRecord, RunRecord]]


def _pairs(
    block: Block, task: str, treatment: str, baseline: str, groups: Mapping[tuple[str, str, str], Group]
) -> _Pairs:
    sides = [groups.get((block.profile, task, variant)) for variant in (treatment, baseline)]
    planned = tuple(sorted(set(block.seeds[task, treatment]) & set(block.seeds[task, baseline])))
    found = [{record.seed: record for record in side.finished} if side else {} for side in sides]
    measure = SCORES[block.score]
    records = {seed: (found[0][seed], found[1][seed]) for seed in planned if seed in found[0] and seed in found[1]}
    scores = {seed: (measure.of(ours), measure.of(theirs)) for seed, (ours, theirs) in records.items()}
    return _Pairs(task, sides[0], sides[1], planned, scores, records)


def _complete(pairs: _Pairs, look: Look) -> bool:
    """Whether the first seeds of the plan, as many as the look wants, are all there."""
    wanted = pairs.planned[: look.seeds]
    return len(wanted) == look.seeds and all(seed in pairs.scores for seed in wanted)


def _task_answer(pairs: _Pairs, ledger: Ledger, common: Look | None) -> TaskAnswer:
    """The pairs of the last look that is complete on every task, else on this one; before the first, all there are."""
    own = max((look for look in ledger.looks if _complete(pairs, look)), key=_seeds, default=None)
    look = common or own
    counted = pairs.planned[: look.seeds] if look else tuple(pairs.scores)
    scores = {seed: pairs.scores[seed] for seed in counted}
    shared = (pairs.task, pairs.treatment, pairs.baseline, len(pairs.planned), scores, look.level if look else None)
    if not scores:
        return TaskAnswer(*shared)
    sides = np.array(list(scores.values()))
    records = [pairs.records[seed] for seed in counted]
    representation = {}
    for name in REPRESENTATION:
        of = mean_of_last(name).of
        representation[name] = np.array([of(ours) - of(theirs) for ours, theirs in records])
    return TaskAnswer(
        *shared,
        difference=mean_difference((sides[:, 0] - sides[:, 1]).tolist()),
        better=improvement(sides[:, :1], sides[:, 1:]),
        representation=representation,
    )


def _correlations(tasks: Sequence[TaskAnswer]) -> dict[str, tuple[float, float, int]]:
    """Over the pairs of all tasks, both sides in units of the task's root mean square difference."""
    found = {}
    for name in REPRESENTATION:
        moved = [task for task in tasks if np.isfinite(task.representation[name]).all()]
        count = sum(len(task.scores) for task in moved)
        if count < FEWEST_PAIRS:
            continue
        returns = np.concatenate([standardised(task.differences) for task in moved])
        features = np.concatenate([standardised(task.representation[name]) for task in moved])
        if np.ptp(returns) and np.ptp(features):
            test = spearmanr(features, returns)
            found[name] = (float(test.statistic), float(test.pvalue), count)
    return found
