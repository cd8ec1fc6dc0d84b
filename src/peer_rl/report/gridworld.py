"""Figure 3 of the paper from runs in the grid world: its four panels, a table, and what agrees with the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from peer_rl.envs.gridworld import GOAL, REWARD, SHORTEST, STATES
from peer_rl.report.curves import Curve, half_std, log_curve, mean_curve
from peer_rl.report.findings import Finding, verdict
from peer_rl.report.runs import Group, RunRecord, describe, label
from peer_rl.report.statistics import Estimate, Floats, Measure, Summary, as_floats, column, summarise
from peer_rl.report.tables import Table, linked, number, pairs, with_interval, with_spread
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


@dataclass(frozen=True)
class Verdict:
    """A claim against our numbers, for one variant."""

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
    groups: list[Group]
    values: dict[str, Floats]
    """Panel (a), by label: mean over seeds of max Q in every cell at the end; NaN in S_T."""
    cosine: list[Curve]
    difference: list[Curve]
    steps: list[Curve]
    summaries: list[list[Summary]]
    """One list for each measure, in the order of the groups."""
    verdicts: list[Verdict]
    exact: float
    """The true difference of the values of S_1 and S_2."""


def _last(record: RunRecord, name: str) -> float:
    values = column(record.rows.get("diagnostics", []), name)
    finite = values[np.isfinite(values)]
    return float(finite[-1]) if finite.size else math.nan


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


COSINE = Measure("final_cosine", "Final cosine", lambda record: _last(record, "probe_cosine"), 4)
DIFFERENCE = Measure("final_q_difference", "Final Q difference", lambda record: _last(record, "probe_q_difference"), 4)
ERROR = Measure(
    "final_q_error",
    "Error of the Q difference",
    lambda record: abs(_last(record, "probe_q_difference") - exact_difference(record)),
    4,
)
STEPS = Measure("episode_steps", "Steps per episode", lambda record: _mean(episode_lengths(record)), 2)
LAST_STEPS = Measure(
    "last_episode_steps",
    f"Steps, last {LAST_EPISODES} episodes",
    lambda record: _mean(episode_lengths(record)[-LAST_EPISODES:]),
    2,
)
GREEDY = Measure("greedy_steps", "Greedy steps at the end", _greedy_steps, 1)
MEASURES = (COSINE, DIFFERENCE, ERROR, STEPS, LAST_STEPS, GREEDY)
CLAIMS = (
    Claim("b", "PEER lowers the cosine similarity of the network and its target", COSINE, -1),
    Claim("c", "PEER tells S_1 and S_2 better apart: a greater difference of their values", DIFFERENCE, +1),
    Claim("c", "PEER tells S_1 and S_2 better apart: a difference closer to the exact one", ERROR, -1),
    Claim("d", "PEER needs fewer steps to reach S_T", STEPS, -1),
)


def moving_mean(values: Floats, window: int) -> Floats:
    """The mean of each value and up to ``window - 1`` before it."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    means: Floats = (sums[ends] - sums[starts]) / (ends - starts)
    return means


def _steps_curve(group: Group) -> Curve | None:
    series = []
    for record in group.finished:
        lengths = episode_lengths(record)
        series.append((np.arange(1.0, len(lengths) + 1), moving_mean(lengths, SMOOTHING)))
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
            found.setdefault(key, []).append(replace(group, label=_label(group.config)))
    return [_study(profile, encoding, members) for (profile, encoding, _), members in found.items()]


def _label(config: AnyRunConfig) -> str:
    """The variant without what its whole study shares."""
    base, _ = defaults(config.agent, config.task, profile=config.profile)
    shared = {name: getattr(base, name) for name in ("encoding", "steps", "episodes", "protocol")}
    return label(replace(config, **shared), several=False)


def _study(profile: str, encoding: str, groups: list[Group]) -> Study:
    def curves(name: str) -> list[Curve]:
        found = [log_curve(group, "diagnostics", name, half_std, x="episode") for group in groups]
        return [curve for curve in found if curve]

    summaries = {measure.name: summarise(groups, measure) for measure in MEASURES}
    verdicts = [
        Verdict(claim, summary.group, summary.difference, verdict(summary.difference, claim.sign))
        for claim in CLAIMS
        for summary in summaries[claim.measure.name]
        if summary.group.backbone and summary.group.config.regularizer == "peer"
    ]
    values = {group.label: found for group in groups if (found := final_values(group)) is not None}
    steps = [curve for group in groups if (curve := _steps_curve(group))]
    exact = exact_difference(groups[0].finished[0])
    return Study(
        profile,
        encoding,
        groups,
        values,
        curves("probe_cosine"),
        curves("probe_q_difference"),
        steps,
        list(summaries.values()),
        verdicts,
        exact,
    )


def value_limits(study: Study) -> tuple[float, float]:
    """The colour scale that all grids of panel (a) share."""
    values = np.concatenate(list(study.values.values()))
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, REWARD)
    return low, max(high, low + 1e-6)


def findings(study: Study) -> list[Finding]:
    """Each of the paper's claims against each variant, for the summary of a report."""
    return [
        Finding(
            f"Figure 3 ({one.claim.panel}), profile {study.profile}. {one.claim.text}",
            linked(one.group),
            with_interval(one.difference, one.claim.measure.digits, sign=True),
            one.words,
        )
        for one in study.verdicts
    ]


def verdict_table(study: Study) -> Table:
    """What the paper says of figure 3, and what our runs say."""
    rows = [
        [
            f"({one.claim.panel}) {one.claim.text}",
            linked(one.group),
            one.words,
            one.claim.measure.title,
            with_interval(one.difference, one.claim.measure.digits, sign=True),
            pairs(one.difference),
        ]
        for one in study.verdicts
    ]
    header = ["the paper's claim", "variant", "our runs", "measured by", "difference to DQN [95 %]", "pairs"]
    return Table(f"{describe(study.groups)} Differences are paired by seed.", header, rows)


def study_tables(study: Study) -> list[Table]:
    """The numbers of figure 3, and their differences to DQN."""
    numbers = []
    for index, group in enumerate(study.groups):
        texts = [with_spread(summaries[index]) for summaries in study.summaries]
        counters = [number(group.mean_count(name), 0) for name in ("step", "frame")]
        numbers.append([linked(group), f"{len(group.finished)} of {len(group.records)}", *texts, *counters])
    about = describe(study.groups)
    exact = f"Exact answer for the Q difference: {study.exact:g}; shortest path: {SHORTEST} steps."
    header = ["variant", "seeds", *(measure.title for measure in MEASURES), "agent steps", "frames"]
    tables = [Table(f"{about} Mean ± standard deviation over seeds. {exact}", header, numbers)]
    compared = [index for index, group in enumerate(study.groups) if group.backbone]
    if compared:
        rows = []
        for measure, summaries in zip(MEASURES, study.summaries, strict=True):
            found = [summaries[index].difference for index in compared]
            texts = [f"{with_interval(one, measure.digits, sign=True)} ({pairs(one)})" for one in found]
            rows.append([measure.title, *texts])
        note = "Differences to DQN, paired by seed, with 95 % bootstrap intervals and (number of pairs)."
        tables.append(Table(f"{about} {note}", ["", *(linked(study.groups[index]) for index in compared)], rows))
    return tables


CAPTION = (
    "(a) The grid world, 4 x 5 cells: max Q of every cell at the end of training, mean over seeds. "
    "(b) Cosine similarity between the features of the Q network and its target, mean over the states. "
    "(c) Difference between the max Q values of S_1 and S_2; dotted: exact. "
    f"(d) Steps of the training episodes, moving mean over {SMOOTHING} episodes; dotted: the shortest path, "
    f"{SHORTEST}. Shaded: half a standard deviation over seeds, as in the paper."
)
