"""What a report shows of each task: scores, differences to the backbone, curves, and who is still missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np

from peer_rl.report.curves import Curve, bootstrap_band, clock, log_curves
from peer_rl.report.gridworld import Study
from peer_rl.report.runs import Group, RunRecord, describe, group_runs, seed_list, terms
from peer_rl.report.scores import (
    BEST,
    SCORE,
    WITHIN,
    Estimate,
    Measure,
    Summary,
    improvement,
    iqm,
    last_finite,
    summarise,
)
from peer_rl.report.tables import Table, csv_text, linked, number, pairs, with_interval, with_spread
from peer_rl.settings.beta import describe_beta

DIAGNOSTICS = {
    "drd": "Distinguishable representation discrepancy (DRD)",
    "cosine": "Cosine of the features and the target's next features",
    "feature_norm": "Norm of the features",
    "effective_rank": "Effective rank of the features",
    "dormant_fraction": "Fraction of dormant units",
    "gradient_ratio": "Gradient norm: regularizer over TD loss",
    "drd_head0": "DRD of the first head, as in figure 1",
    "bellman_gap": "Bellman gap: cosine minus BEER's bound",
    "inner_product": "Inner product of the features",
    "next_feature_norm": "Norm of the target's next features",
    "head_norm": "Norm of the last layer",
}
"""The curves of a report, in addition to the evaluation return."""


@dataclass(frozen=True)
class TaskResult:
    """What a report shows about one task under one profile."""

    groups: list[Group]
    scores: list[Summary]
    iqms: list[Estimate | None]
    """For each group; None where no run has a score."""
    improvements: list[Estimate | None]
    """For each group: the probability that one of its runs beats one of the backbone's."""
    evaluation: list[Curve]
    diagnostics: dict[str, list[Curve]]

    @property
    def heading(self) -> str:
        """Task and profile."""
        return f"{self.groups[0].task}, {terms(self.groups)}"


def task_results(groups: Sequence[Group]) -> list[TaskResult]:
    """One for each task and profile."""
    return [task_result(list(members)) for _, members in groupby(groups, key=lambda group: group.key[:2])]


def task_result(groups: Sequence[Group]) -> TaskResult:
    """Scores and curves of the groups of one task and profile."""
    scores = summarise(groups, SCORE)
    found = {summary.group.key: np.array(list(summary.values.values()))[:, None] for summary in scores}

    def against_backbone(group: Group) -> Estimate | None:
        plain = found.get(group.backbone) if group.backbone else None
        return (
            improvement(found[group.key], plain) if plain is not None and plain.size and found[group.key].size else None
        )

    curves = partial(log_curves, groups, spread=bootstrap_band)
    return TaskResult(
        list(groups),
        scores,
        [iqm(values) if values.size else None for values in found.values()],
        [against_backbone(group) for group in groups],
        curves("eval", "mean"),
        {name: shown for name in DIAGNOSTICS if (shown := curves("diagnostics", name))},
    )


def score_table(result: TaskResult) -> Table:
    """One row for each variant of a task."""
    rows = []
    for summary, middle, better in zip(result.scores, result.iqms, result.improvements, strict=True):
        group, digits = summary.group, summary.measure.digits
        rows.append(
            [
                linked(group),
                f"{len(summary.values)} of {len(group.records)}",
                with_spread(summary),
                with_interval(middle, digits),
                with_interval(summary.difference, digits, sign=True),
                pairs(summary.difference),
                with_interval(better, 2),
                *(number(group.mean_count(name), 0) for name in ("step", "frame")),
            ]
        )
    header = ["variant", "seeds", "score", "IQM [95 %]", "difference to backbone [95 %]", "pairs", "P(better) [95 %]"]
    caption = (
        f"{describe(result.groups)} Score: {score_rule(result.groups)}; ± standard deviation over seeds. "
        "Difference: paired by seed. P(better): that a run beats one of the backbone's."
    )
    return Table(caption, [*header, "agent steps", "frames"], rows)


def score_rule(groups: Sequence[Group]) -> str:
    """How a task's score is computed."""
    episodes = sorted({group.config.protocol.final_episodes for group in groups})
    rules = [
        f"the final policy over {count} episodes" if count else "mean of the last ten evaluations" for count in episodes
    ]
    return ", or ".join(rules)


def further_scores_table(result: TaskResult) -> Table | None:
    """Scores of the same runs by other rules, where the protocol ends with an evaluation of its own (Atari)."""
    groups = [group for group in result.groups if group.config.protocol.final_episodes]
    if not groups:
        return None
    columns = [[with_spread(summary) for summary in summarise(groups, measure)] for measure in (SCORE, WITHIN, BEST)]
    rows = [[linked(group), *cells] for group, *cells in zip(groups, *columns, strict=True)]
    steps = sorted({group.config.protocol.final_steps for group in groups})
    within = f"episodes within its first {' or '.join(f'{count:,}' for count in steps)} steps"
    header = ["variant", "final evaluation (the score)", within, "best evaluation of the run"]
    return Table(
        "The same runs by other rules; the best of many evaluations is above what can be expected.", header, rows
    )


def missing_seeds(groups: Sequence[Group]) -> list[tuple[Group, list[int]]]:
    """For each group the seeds that only other variants of its task have."""
    missing = []
    for _, members in groupby(groups, key=lambda group: group.key[:2]):
        together = list(members)
        wanted = {record.seed for group in together for record in group.records if record.seed is not None}
        for group in together:
            missing.append((group, sorted(wanted - {record.seed for record in group.records})))
    return missing


def unfinished(group: Group) -> list[str]:
    """``3 running`` for each run that gives no number."""
    return [f"{record.seed} {record.state}" for record in group.records if not record.usable]


def coverage_table(groups: Sequence[Group]) -> Table:
    """Which seeds are finished, which are not, and which only other variants of the task have."""
    rows = []
    for group, missing in missing_seeds(groups):
        finished = f"{len(group.finished)} of {len(group.records) + len(missing)}"
        row = [linked(group), group.task, group.profile, group.budget, finished, seed_list(group.seeds)]
        rows.append([*row, ", ".join(unfinished(group)) or "-", seed_list(missing)])
    header = [
        "variant",
        "task",
        "profile",
        "budget",
        "finished",
        "seeds",
        "not finished",
        "seeds of other variants only",
    ]
    caption = (
        "Finished, of all seeds that were planned or that another variant of the task has. "
        "Numbers and curves come from finished runs only."
    )
    return Table(caption, header, rows)


def variants_csv(results: Sequence[TaskResult], found: Sequence[Study]) -> str:
    """Every measure of every variant, one a line, in full precision."""
    ends = [f"{name}{end}" for name in ("iqm", "difference", "p_better") for end in ("", "_low", "_high")]
    header = ["profile", "task", "variant", "beta", "measure", "seeds", "mean", "std", *ends]
    lines = [line for result in results for line in zip(result.scores, result.iqms, result.improvements, strict=True)]
    lines += [(summary, None, None) for study in found for summaries in study.summaries for summary in summaries]
    rows = []
    for summary, middle, better in lines:
        group, difference = summary.group, summary.difference
        numbers: list[float | None] = []
        for estimate in (middle, difference, better):
            numbers += [estimate.value, estimate.low, estimate.high] if estimate else [None] * 3
        seeds = " ".join(str(seed) for seed in sorted(summary.values))
        counts = [difference.count if difference else 0, group.mean_count("step"), group.mean_count("frame")]
        about = [*group.key, describe_beta(group.config), summary.measure.name, seeds]
        rows.append([*about, summary.mean, summary.std, *numbers, *counts])
    return csv_text([*header, "pairs", "agent_steps", "frames"], rows)


def last_diagnostic(name: str) -> Measure:
    """The last finite value of a diagnostic."""
    return Measure(f"last_{name}", DIAGNOSTICS[name], lambda record: last_finite(record, "diagnostics", name))


def hours_of(record: RunRecord) -> float | None:
    """How long the run trained, if it says so."""
    _, hours = clock(record.rows.get("timing", []))
    return float(hours[-1]) if hours.size else None


def runs_csv(records: Sequence[RunRecord], found: Sequence[Study]) -> str:
    """One line for each run and measure, with the path; a run without numbers has one line that says why."""
    studied = {
        (group.key, measure): measure
        for study in found
        for group in study.groups
        for measure in (summaries[0].measure for summaries in study.summaries)
    }
    keys = {record.path: group.key for group in group_runs(records) for record in group.records}
    rows = []
    for record in records:
        config, key = record.config, keys.get(record.path)
        about = [config.profile, config.task, config.agent] if config else ["", "", ""]
        beta, regularizer = (config.beta, config.regularizer) if config else (None, "")
        first = [record.place, *about, record.variant, regularizer, beta, record.seed, record.state]
        last = [record.count("step"), record.count("frame"), hours_of(record), record.problem]
        measures = [
            SCORE,
            BEST,
            *map(last_diagnostic, DIAGNOSTICS),
            *(one for (group, _), one in studied.items() if group == key),
        ]
        values = [(one.name, one.of(record)) for one in measures] if record.usable else []
        known: list[tuple[str, float | None]] = [(name, value) for name, value in values if np.isfinite(value)]
        rows += [[*first, name, value, *last] for name, value in known or [("", None)]]
    header = ["run", "profile", "task", "agent", "variant", "regularizer", "beta", "seed", "state"]
    return csv_text([*header, "measure", "value", "agent_steps", "frames", "hours", "problem"], rows)
