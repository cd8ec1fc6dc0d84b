"""Figure 3 of the paper from runs in the grid world: its four panels, a table, and what agrees with the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from peer_rl.envs.gridworld import GOAL, REWARD, SHORTEST, STATES
from peer_rl.report.curves import Curve, half_std, log_curves, mean_curve
from peer_rl.report.findings import verdict
from peer_rl.report.runs import Group, RunRecord, label
from peer_rl.report.scores import (
    Estimate,
    Floats,
    Measure,
    Summary,
    as_floats,
    column,
    finite,
    last_finite,
    paired_difference,
    summarise,
)
from peer_rl.settings.resolve import defaults
from peer_rl.settings.run import AnyRunConfig

TASK = "gridworld/paper"
SMOOTHING = 50
"""Training episodes that the moving mean of panel (d) covers."""
LAST_EPISODES = 100


@dataclass(frozen=True)
class Claim:
    """Something that the paper says about figure 3, as a sign of a paired difference."""

    panel: str
    text: str
    measure: Measure
    sign: int
    """+1 if the paper has PEER above DQN, -1 if below."""
    decides: bool = True
    """Whether this score decides the panel's claim; the others are secondary (results/gridworld.toml)."""


@dataclass(frozen=True)
class Verdict:
    """A claim compared with our numbers, for one variant."""

    claim: Claim
    group: Group
    difference: Estimate | None
    words: str


@dataclass(frozen=True)
class Study:
    """Everything that the report shows about the grid world under one profile."""

    profile: str
    encoding: str
    """How the network reads a state: integer or one-hot."""
    axis: str
    """What the curves run over: step for a budget of agent steps, else episode."""
    groups: list[Group]
    paper: list[str]
    """Labels of the variants that figure 3 compares: DQN and PEER. The others are controls."""
    values: dict[str, Floats]
    """Panel (a), by label: mean over seeds of max Q in every cell at the end; NaN in S_T."""
    cosine: list[Curve]
    difference: list[Curve]
    steps: list[Curve]
    norm: list[Curve]
    summaries: list[list[Summary]]
    """One list for each measure, in the order of the groups."""
    verdicts: list[Verdict]
    exact: float
    """The true difference of the values of S_1 and S_2."""


def _last(record: RunRecord, name: str) -> float:
    return last_finite(record, "diagnostics", name)


def exact_difference(record: RunRecord) -> float:
    """The best policy's max Q(S_1) - max Q(S_2): the reward, less the reward a step later."""
    gamma = record.config.learning.gamma if record.config else 0.99
    return REWARD * (1 - gamma)


def episode_lengths(record: RunRecord) -> Floats:
    """Steps of each training episode, in order."""
    return column([row for row in record.rows.get("metrics", []) if "length" in row], "length")


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else math.nan


def _greedy_steps(record: RunRecord) -> float:
    evaluations = record.rows.get("eval", [])
    lengths = evaluations[-1].get("lengths") if evaluations else None
    return _mean(as_floats(lengths)) if isinstance(lengths, list) else math.nan


def _order(record: RunRecord) -> float:
    """Fraction of the probes over training that value the state nearer to S_T higher."""
    return _mean((finite(record, "diagnostics", "probe_q_difference") > 0).astype(np.float64))


def _mean_cosine(record: RunRecord) -> float:
    return _mean(finite(record, "diagnostics", "probe_cosine"))


def _steps_per_episode(record: RunRecord) -> float:
    """Agent steps of the whole run for each episode that ended: one that the budget cut off counts with its steps."""
    episodes, steps = len(episode_lengths(record)), record.count("step")
    return steps / episodes if episodes and steps is not None else math.nan


COSINE = Measure("final_cosine", "Final cosine", lambda record: _last(record, "probe_cosine"), 4)
MEAN_COSINE = Measure("mean_cosine", "Mean cosine", _mean_cosine, 4)
NORM = Measure("final_norm", "Final norm of phi", lambda record: _last(record, "feature_norm"), 2)
DIFFERENCE = Measure("final_q_difference", "Final Q difference", lambda record: _last(record, "probe_q_difference"), 4)
ERROR = Measure(
    "final_q_error",
    "Error of the Q difference",
    lambda record: abs(_last(record, "probe_q_difference") - exact_difference(record)),
    4,
)
ORDER = Measure("q_order", "S_1 above S_2, share of probes", _order, 2)
STEPS = Measure("episode_steps", "Steps per episode", _steps_per_episode, 2)
EPISODES = Measure("episodes", "Episodes", lambda record: float(len(episode_lengths(record))), 0)
LAST_STEPS = Measure(
    "last_episode_steps",
    f"Steps, last {LAST_EPISODES} episodes",
    lambda record: _mean(episode_lengths(record)[-LAST_EPISODES:]),
    2,
)
GREEDY = Measure("greedy_steps", "Greedy steps at the end", _greedy_steps, 1)
MEASURES = (COSINE, MEAN_COSINE, NORM, DIFFERENCE, ERROR, ORDER, STEPS, EPISODES, LAST_STEPS, GREEDY)
CLAIMS = (
    Claim("b", "PEER lowers the cosine similarity of the network and its target", COSINE, -1),
    Claim("c", "PEER distinguishes S_1 and S_2 better: a difference of values closer to the exact one", ERROR, -1),
    Claim("c", "PEER distinguishes S_1 and S_2 better: a greater difference of values", DIFFERENCE, +1, False),
    Claim("c", "PEER distinguishes S_1 and S_2 better: S_1 above S_2 more often", ORDER, +1, False),
    Claim("d", "PEER needs fewer steps to reach S_T in training", STEPS, -1),
    Claim("d", "PEER yields a better policy: fewer greedy steps at the end", GREEDY, -1, False),
)


def moving_mean(values: Floats, window: int) -> Floats:
    """The mean of each value and up to ``window - 1`` before it."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    means: Floats = (sums[ends] - sums[starts]) / (ends - starts)
    return means


def _steps_curve(group: Group, axis: str) -> Curve | None:
    series = []
    for record in group.finished:
        rows = [row for row in record.rows.get("metrics", []) if "length" in row]
        series.append((column(rows, axis), moving_mean(column(rows, "length"), SMOOTHING)))
    return mean_curve(group.label, series, half_std)


def final_values(group: Group) -> Floats | None:
    """The max Q of every state at the end, averaged over seeds; NaN in S_T, where nothing is left to decide."""
    found = []
    for record in group.finished:
        probes = [row.get("probe_max_q") for row in record.rows.get("diagnostics", [])]
        lists = [probe for probe in probes if isinstance(probe, list) and len(probe) == GOAL]
        if lists:
            found.append(as_floats(lists[-1]))
    if not found:
        return None
    values = np.full(STATES, math.nan)
    values[:GOAL] = np.mean(found, axis=0)
    return values


def studies(groups: Sequence[Group]) -> list[Study]:
    """One study for each profile, encoding and budget that the grid world was run with."""
    found: dict[tuple[str, str, str], list[Group]] = {}
    for group in groups:
        if group.task == TASK and group.finished:
            key = (group.profile, group.config.encoding, group.budget)
            found.setdefault(key, []).append(replace(group, label=label_of(group.config)))
    return [_study(profile, encoding, members) for (profile, encoding, _), members in found.items()]


def label_of(config: AnyRunConfig) -> str:
    """The variant without what its whole study shares."""
    base, _ = defaults(config.agent, config.task, profile=config.profile)
    shared = {name: getattr(base, name) for name in ("encoding", "steps", "episodes", "protocol")}
    text = label(replace(config, **shared), several=False)
    return text.replace("critic.layer-normTrue", "LayerNorm critic").replace("weight-decay", "weight decay ")


def place(config: AnyRunConfig) -> tuple[bool, bool, str, float]:
    """The order of variants: PEER, its halves, then controls without a beta."""
    return config.beta == 0, config.regularizer != "peer", config.regularizer, float(config.beta)


def plain_group(groups: Sequence[Group]) -> Group | None:
    """DQN without anything: what the other backbones of a study (LayerNorm, weight decay) are controls for."""
    plain = [group for group in groups if group.config.beta == 0 and ", " not in group.label]
    return plain[0] if plain else None


def _with_baselines(groups: Sequence[Group], measure: Measure) -> list[Summary]:
    """As ``summarise``, and every control without a regularizer compared with plain DQN."""
    plain = plain_group(groups)
    found = summarise(groups, measure)
    reference = next((one for one in found if plain and one.group.key == plain.key), None)
    if reference is None:
        return found
    return [
        replace(one, difference=paired_difference(one.values, reference.values))
        if one.difference is None and one is not reference
        else one
        for one in found
    ]


def _study(profile: str, encoding: str, members: list[Group]) -> Study:
    plain = plain_group(members)
    groups = sorted(members, key=lambda one: (one is not plain, place(one.config)))
    axis = "step" if groups[0].config.steps else "episode"

    curves = partial(log_curves, groups, "diagnostics", spread=half_std, x=axis)
    summaries = {measure.name: _with_baselines(groups, measure) for measure in MEASURES}
    verdicts = [
        Verdict(claim, summary.group, summary.difference, verdict(summary.difference, claim.sign))
        for claim in CLAIMS
        for summary in summaries[claim.measure.name]
        if summary.group.backbone and summary.group.config.regularizer == "peer"
    ]
    return Study(
        profile,
        encoding,
        axis,
        groups,
        [one.label for one in groups if one == plain or (one.config.beta and one.config.regularizer == "peer")],
        {group.label: found for group in groups if (found := final_values(group)) is not None},
        curves("probe_cosine"),
        curves("probe_q_difference"),
        [curve for group in groups if (curve := _steps_curve(group, axis))],
        curves("feature_norm"),
        list(summaries.values()),
        verdicts,
        exact_difference(groups[0].finished[0]),
    )


def value_limits(study: Study) -> tuple[float, float]:
    """The colour scale that all grids of panel (a) share."""
    shown = [values for label, values in study.values.items() if label in study.paper]
    values = np.concatenate(shown or list(study.values.values()))
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, REWARD)
    return low, max(high, low + 1e-6)


CAPTION = (
    "(a) The grid world, 4 x 5 cells: max Q of every cell at the end of training, mean over seeds. "
    "(b) Cosine similarity between the features of the Q network and its target, mean over the states. "
    "(c) Difference between the max Q values of S_1 and S_2; dotted: exact. "
    f"(d) Steps of the training episodes, moving mean over {SMOOTHING} episodes; dotted: the shortest path, "
    f"{SHORTEST}. Shaded: half a standard deviation over seeds, as in the paper."
)
