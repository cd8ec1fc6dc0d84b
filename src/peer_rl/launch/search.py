"""``peer-rl sweep --search beta``: Optuna looks for the beta with the best mean score over the sweep's seeds.

Trials are ordinary run directories, and nothing else is stored: a search that is started again asks the same sampler
with the same seed, finds the runs of the betas that it gets, reads their scores and so comes to where it was stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from peer_rl.errors import ConfigError, PeerError, RunError
from peer_rl.launch.jobs import Job
from peer_rl.launch.sweep import SearchSettings, Sweep
from peer_rl.packages import from_extra
from peer_rl.settings import as_dict, find_agent
from peer_rl.settings.resolve import canonical

Conduct = Callable[[Sequence[Job]], None]
_DIGITS = 3
"""Significant digits of a beta: enough to distinguish them, few enough for a folder's name."""


@dataclass
class Trial:
    """One beta with all seeds; ``asked`` is Optuna's trial, None for the backbone, which runs alongside the search."""

    beta: float
    jobs: list[Job]
    asked: Any = None

    def scores(self) -> dict[int, float]:
        """The finished runs' scores, by seed."""
        from peer_rl.report.runs import read_run
        from peer_rl.report.scores import SCORE

        records = {job.config.seed: read_run(job.path) for job in self.jobs}
        found = {seed: SCORE.of(record) for seed, record in records.items() if record.usable}
        return {seed: score for seed, score in found.items() if math.isfinite(score)}

    def mean(self) -> float:
        """The objective; NaN if a seed is missing."""
        scores = self.scores()
        return float(np.mean(list(scores.values()))) if len(scores) == len(self.jobs) else math.nan


@dataclass
class Family:
    """Runs that differ in beta and seed alone: one study."""

    examples: list[Job]
    """One job for each seed, with whatever beta."""
    first: list[float]
    """Betas that the file names, tried before the sampler's own."""
    backbone: bool
    """Whether the file names beta 0, which a logarithmic scale does not have."""
    study: Any = None
    trials: list[Trial] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What is searched, to print."""
        config = self.examples[0].config
        seeds = ", ".join(str(job.config.seed) for job in self.examples)
        regularizer = "" if config.regularizer == "peer" else f" with {config.regularizer}"
        return f"{config.agent}{regularizer} on {config.task}, profile {config.profile}, seeds {seeds}"

    def trial(self, beta: float, asked: Any = None) -> Trial:
        """A beta with every seed."""
        configs = [canonical(replace(job.config, beta=beta)) for job in self.examples]
        pairs = zip(configs, self.examples, strict=True)
        return Trial(beta, [Job.of(config, job.runs, extra=job.extra) for config, job in pairs], asked)


class BetaSearch:
    """One study for each family of the sweep; all of them advance together, a round at a time."""

    def __init__(self, families: list[Family], settings: SearchSettings) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.families, self.settings = families, settings
        for family in families:
            sampler = optuna.samplers.TPESampler(seed=settings.seed)
            family.study = optuna.create_study(direction="maximize", sampler=sampler)
            for beta in family.first:
                family.study.enqueue_trial({"beta": beta})

    def first_round(self) -> list[Job]:
        """The runs that the search begins with."""
        count = min(self.settings.round, self.settings.trials)
        return [job for _, trial in self._ask(count) for job in trial.jobs]

    def run(self, conduct: Conduct) -> PeerError | None:
        """Search; returns what went wrong with single runs, if anything did. ``conduct`` runs what is missing."""
        failures = []
        left = self.settings.trials
        while left:
            asked = self._ask(min(self.settings.round, left))
            try:
                conduct([job for _, trial in asked for job in trial.jobs])
            except RunError as error:  # a beta with which training fails is a beta that is not chosen
                failures.append(str(error))
            self._tell(asked)
            left -= min(self.settings.round, left)
        return RunError(" ".join(failures)) if failures else None

    def jobs(self) -> list[Job]:
        """Every run of the search."""
        return [job for family in self.families for trial in family.trials for job in trial.jobs]

    def _ask(self, count: int) -> list[tuple[Family, Trial]]:
        """The next betas of every family; the backbone comes with the first."""
        asked = []
        for family in self.families:
            new = [family.trial(0.0)] if family.backbone and not family.trials else []
            for _ in range(count):
                trial = family.study.ask()
                beta = trial.suggest_float("beta", self.settings.low, self.settings.high, log=True)
                new.append(family.trial(float(f"{beta:.{_DIGITS}g}"), trial))
            family.trials += new
            asked += [(family, trial) for trial in new]
        return asked

    def _tell(self, asked: list[tuple[Family, Trial]]) -> None:
        from optuna.trial import TrialState

        for family, trial in asked:
            if trial.asked is None:
                continue
            mean = trial.mean()
            if math.isfinite(mean):
                family.study.tell(trial.asked, mean)
            else:
                family.study.tell(trial.asked, state=TrialState.FAIL)

    def summary(self) -> str:
        """Best betas and the tables behind them."""
        return "\n\n".join(_summary(family) for family in self.families)


def search_beta(sweep: Sweep) -> BetaSearch:
    """The search that a sweep's file describes."""
    with from_extra("search", "--search"):
        import peer_rl.report.scores  # noqa: F401  (now, not when the first runs are done)

        return BetaSearch(_families(sweep), sweep.search)


def _families(sweep: Sweep) -> list[Family]:
    plain: dict[str, list[Job]] = {}
    regularized: dict[tuple[str, str], list[Job]] = {}
    for job in sweep.jobs:
        config = job.config
        if not find_agent(config.agent).td_target:
            raise ConfigError(f"{config.agent} takes no beta, so there is nothing to search; leave it out")
        if config.beta == "auto":
            raise ConfigError("--search beta tries betas that are numbers; leave out beta = 'auto'")
        rest = {path: value for path, value in as_dict(config).items() if path not in ("seed", "beta", "regularizer")}
        if config.beta:
            regularized.setdefault((repr(rest), config.regularizer), []).append(job)
        else:
            plain.setdefault(repr(rest), []).append(job)
    families = [_family(jobs, plain.get(rest, []), sweep.search) for (rest, _), jobs in regularized.items()]
    searched = {rest for rest, _ in regularized}
    return families + [_family([], jobs, sweep.search) for rest, jobs in plain.items() if rest not in searched]


def _family(regularized: list[Job], plain: list[Job], settings: SearchSettings) -> Family:
    examples = {job.config.seed: job for job in [*plain, *regularized]}  # the regularized ones' regularizer counts
    betas = list(dict.fromkeys(float(job.config.beta) for job in regularized))
    for beta in betas:
        if not settings.low <= beta <= settings.high:
            span = f"[{settings.low:g}, {settings.high:g}]"
            raise ConfigError(f"beta {beta:g} is outside the search's range {span}; widen [search], or leave it out")
    return Family([examples[seed] for seed in sorted(examples)], betas, backbone=bool(plain))


def _summary(family: Family) -> str:
    scores = {id(trial): trial.scores() for trial in family.trials}
    unique = {trial.beta: trial for trial in family.trials}
    ranked = sorted(unique.values(), key=lambda trial: -np.nan_to_num(trial.mean(), nan=-math.inf))
    seeds = [job.config.seed for job in family.examples]
    rows = [["beta", "mean score", "std", *(f"seed {seed}" for seed in seeds)]]
    for trial in ranked:
        values = scores[id(trial)]
        spread = np.std(list(values.values()), ddof=1) if len(values) > 1 else math.nan
        name = f"{trial.beta:g}" if trial.beta else "0 (backbone)"
        single = [f"{values[seed]:.2f}" if seed in values else "failed" for seed in seeds]
        rows.append([name, _number(trial.mean()), _number(float(spread)), *single])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    table = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([f"{family.name}:", *table, _conclusion(family, ranked, seeds)])


def _number(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "-"


def _conclusion(family: Family, ranked: list[Trial], seeds: list[int]) -> str:
    searched = [trial for trial in ranked if trial.asked is not None and math.isfinite(trial.mean())]
    if not searched:
        return "no beta has a score on every seed"
    best = searched[0]
    fresh = list(range(max(seeds) + 1, max(seeds) + 1 + max(len(seeds), 5)))
    return (
        f"best beta: {best.beta:g}, mean score {best.mean():.2f}. It was chosen as the best of {len(searched)} on "
        f"these seeds, so its score is optimistic: confirm it with fresh ones, "
        f"betas = [0, {best.beta:g}] and seeds = {fresh}"
    )
