"""The ledger's part of a report: first the answers, then plots of the pairs, then the tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from peer_rl.paper.ledger import REPRESENTATION, Answer, Ledger, TaskAnswer, answers
from peer_rl.report import page
from peer_rl.report.charts import Chart, pair_chart
from peer_rl.report.error_rates import error_rate_table
from peer_rl.report.findings import UNDECIDED
from peer_rl.report.page import Bullets, Part, Section, Text
from peer_rl.report.runs import Group, label
from peer_rl.report.scores import FEWEST_PAIRS, Floats, mean_difference
from peer_rl.report.tables import Linked, Table, number, with_interval


def name(answer: Answer, side: str) -> str:
    """The treatment's or the baseline's label, with its agent where the two have different ones."""
    configs = answer.block.configs
    variant, other = answer.treatment, answer.baseline
    if side == "baseline":
        variant, other = other, variant
    return label(configs[variant], several=configs[variant].agent != configs[other].agent)


def sentence(answer: Answer) -> str:
    """The comparison's verdict in one sentence."""
    about = f"{name(answer, 'treatment')} against {name(answer, 'baseline')}"
    pairs = f"{answer.finished} of {answer.planned} pairs on {len(answer.tasks)} task{'s' * (len(answer.tasks) > 1)}"
    if answer.suite is None:
        return f"{about}: no pair is finished yet ({pairs})."
    effect = f"standardised difference {with_interval(answer.suite, 2, sign=True)}, p = {answer.suite.p:.2g}"
    if answer.level is None:
        return f"{about}: {UNDECIDED} yet, {pairs} ({effect})."
    return f"{about}: {answer.verdict} ({effect}; {pairs}, level {answer.level:g})."


def overview(found: Sequence[Answer]) -> Table:
    """One row for each comparison of the plan, whether it has runs or not."""
    rows = [
        [
            answer.block.name,
            f"{name(answer, 'treatment')} against {name(answer, 'baseline')}",
            f"{answer.finished} of {answer.planned}",
            with_interval(answer.suite, 2, sign=True),
            _p(answer.suite.p if answer.suite else np.nan),
            "no pair yet" if answer.suite is None else answer.verdict,
        ]
        for answer in found
    ]
    caption = (
        "Difference: mean over the pairs of all tasks, each task's differences divided by their root mean square, with "
        "a 95 % BCa interval; p: exact sign-flip test. A verdict other than 'not decided' needs a complete look."
    )
    return Table(caption, ["block", "comparison", "pairs", "difference [95 %]", "p", "verdict"], rows)


def answer_table(answer: Answer) -> Table:
    """One row for each task and one for all of them."""
    rows = [_task_row(task) for task in answer.tasks]
    if len(answer.tasks) > 1:
        ours, theirs = answer.iqms or (None, None)
        rows.append(
            [
                "all tasks, standardised",
                f"{answer.finished} of {answer.planned}",
                f"IQM {with_interval(theirs, 2)}",
                f"IQM {with_interval(ours, 2)}",
                with_interval(answer.suite, 2, sign=True),
                _p(answer.suite.p if answer.suite else np.nan),
                with_interval(answer.better, 2),
                answer.verdict,
            ]
        )
    header = ["task", "pairs", name(answer, "baseline"), name(answer, "treatment")]
    score = {"last-ten": "mean of the last ten evaluations", "final": "evaluation at the budget"}[answer.block.score]
    caption = (
        f"Profile {answer.block.profile}; score: {score}; mean ± standard deviation over the seeds of finished pairs. "
        "Difference: paired by seed, 95 % BCa interval; p: exact sign-flip test. All tasks: differences in units of "
        "each task's root mean square, and the IQM of scores divided by the baseline's mean."
    )
    return Table(caption, [*header, "difference [95 %]", "p", "P(better) [95 %]", "verdict"], rows)


def _task_row(task: TaskAnswer) -> list[str]:
    sides = np.array(list(task.scores.values())).reshape(-1, 2)
    spread = [_spread(sides[:, side]) for side in (1, 0)]
    shown = Linked(task.task, f"#{task.treatment.anchor}") if task.treatment else task.task
    return [
        shown,
        f"{len(task.scores)} of {task.planned}",
        *spread,
        with_interval(task.difference, 0, sign=True),
        _p(task.difference.p if task.difference else np.nan),
        with_interval(task.better, 2),
        task.verdict if task.scores else "no pair yet",
    ]


def _spread(values: Floats) -> str:
    if not values.size:
        return "-"
    deviation = f" ± {number(values.std(ddof=1), 0)}" if values.size > 1 else ""
    return number(values.mean(), 0) + deviation


def _p(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else "-"


def representation_table(answer: Answer) -> Table:
    """What the treatment does to the representation, and whether that goes with what it does to the return."""
    rows = []
    for task in answer.tasks:
        if task.scores:
            values = [task.representation[key] for key in REPRESENTATION]
            moved = [mean_difference(one.tolist()) if np.isfinite(one).all() else None for one in values]
            rows.append([task.task, str(len(task.scores)), *(with_interval(one, 3, sign=True) for one in moved)])
    cells = []
    for key in REPRESENTATION:
        found = answer.correlations.get(key)
        cells.append(f"{number(found[0], 2, sign=True)} (p = {found[1]:.2g})" if found else "-")
    rows.append(["correlation with the return", str(answer.finished), *cells])
    caption = (
        "Paired differences of the diagnostics at the end of training (mean of the last ten values) with 95 % BCa "
        "intervals. Correlation: Spearman's, over the pairs of all tasks, between the difference of the diagnostic and "
        f"that of the score, both in units of the task's root mean square; at least {FEWEST_PAIRS} pairs."
    )
    return Table(caption, ["task", "pairs", *REPRESENTATION.values()], rows)


def pair_charts(answer: Answer) -> list[Chart]:
    """For each task a line from the baseline's score to the treatment's, seed by seed."""
    return [
        pair_chart(task.task, (name(answer, "baseline"), name(answer, "treatment")), task.scores)
        for task in answer.tasks
        if task.scores
    ]


def ledger_sections(ledger: Ledger, groups: Sequence[Group]) -> tuple[list[Section], list[tuple[str, Table]]]:
    """The answers so far, each block in detail, and how often such answers are wrong."""
    found = answers(ledger, groups)
    rates, summary = error_rate_table(), overview(found)
    sections = [page.section("The answers so far", Text(_progress(ledger, groups)), summary)]
    tables: list[tuple[str, Table]] = [("The answers so far", summary)]
    for _, members in groupby(found, key=lambda answer: answer.block.name):
        together = list(members)
        block = together[0].block
        parts: list[Part] = [Bullets([sentence(answer) for answer in together])]
        if block.hold:
            parts.append(Text(f"On hold: {block.hold}.", "soft"))
        for answer in together:
            if not answer.finished:
                continue
            shown = [answer_table(answer), representation_table(answer)]
            parts += [pair_charts(answer), *shown]
            title = f"{block.question} {name(answer, 'treatment')}"
            tables += zip((title, f"{title}: representation"), shown, strict=True)
        sections.append(page.section(block.question, *parts))
    tables.append(("False-positive rates", rates))
    sections.append(page.section("How often are such verdicts wrong?", rates))
    return sections, tables


def _progress(ledger: Ledger, groups: Sequence[Group]) -> str:
    done, planned = ledger.progress(groups)
    looks = " and ".join(f"{look.seeds} seeds (level {look.level:g})" for look in ledger.looks)
    return f"{done} of {planned} planned runs are finished. The plan gives its verdicts at {looks}."
