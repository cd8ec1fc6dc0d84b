"""A report on run directories: one HTML page, figures, and the same tables as Markdown and CSV."""

from __future__ import annotations

import csv
import html
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from peer_rl.configs.beta import describe_beta
from peer_rl.envs.gridworld import COLUMNS, GOAL, S1, S2, SHORTEST, START
from peer_rl.envs.tasks import find_task
from peer_rl.errors import PeerError
from peer_rl.experiments import gridworld, page
from peer_rl.experiments.figures import FIGURE3_ALT, draw_figure3, draw_learning_curves
from peer_rl.experiments.gridworld import Study
from peer_rl.experiments.page import Table, number, pairs, with_interval, with_spread
from peer_rl.experiments.runs import Group, RunRecord, describe, group_runs, seed_list
from peer_rl.experiments.statistics import (
    BEST,
    SCORE,
    WITHIN,
    Curve,
    Estimate,
    Summary,
    bootstrap_band,
    iqm,
    log_curve,
    summarise,
)
from peer_rl.version import __version__

DIAGNOSTICS = {
    "cosine": "Cosine similarity of the features and the target's next features",
    "drd": "Distinguishable representation discrepancy (DRD)",
    "bellman_gap": "Bellman gap: cosine minus BEER's bound",
    "inner_product": "Inner product of the features",
    "feature_norm": "Norm of the features",
    "next_feature_norm": "Norm of the target's next features",
    "head_norm": "Norm of the last layer",
    "effective_rank": "Effective rank of the features",
    "dormant_fraction": "Share of dormant units",
    "gradient_ratio": "Gradient norm: regularizer over TD loss",
}
"""The curves of a report, beside the evaluation return."""
_CELL_NAMES = {START: "start", S1: "S<sub>1</sub>", S2: "S<sub>2</sub>", GOAL: "S<sub>T</sub>"}


@dataclass(frozen=True)
class TaskResult:
    """What a report shows about one task under one profile."""

    groups: list[Group]
    scores: list[Summary]
    iqms: list[Estimate | None]
    """For each group; None where no run has a score."""
    evaluation: list[Curve]
    diagnostics: dict[str, list[Curve]]

    @property
    def heading(self) -> str:
        """Task and profile."""
        return f"{self.groups[0].task}, profile {self.groups[0].profile}"


def task_result(groups: Sequence[Group]) -> TaskResult:
    """Scores and curves of the groups of one task and profile."""
    scores = summarise(groups, SCORE)
    iqms = [iqm(np.array(list(summary.values.values()))[:, None]) if summary.values else None for summary in scores]

    def curves(log: str, name: str) -> list[Curve]:
        found = [log_curve(group, log, name, bootstrap_band) for group in groups]
        return [curve for curve in found if curve]

    diagnostics = {name: found for name in DIAGNOSTICS if (found := curves("diagnostics", name))}
    return TaskResult(list(groups), scores, iqms, curves("eval", "mean"), diagnostics)


def score_table(result: TaskResult) -> Table:
    """One row for each variant of a task."""
    rows = []
    for summary, middle in zip(result.scores, result.iqms, strict=True):
        group, digits = summary.group, summary.measure.digits
        rows.append(
            [
                group.label,
                f"{len(summary.values)} of {len(group.records)}",
                with_spread(summary),
                with_interval(middle, digits),
                with_interval(summary.difference, digits, sign=True),
                pairs(summary.difference),
                *(number(group.mean_count(name), 0) for name in ("step", "frame")),
            ]
        )
    header = ["variant", "seeds", "score", "IQM [95 %]", "difference to backbone [95 %]", "pairs"]
    caption = f"{describe(result.groups)} Score: {score_rule(result.groups)}; ± standard deviation over seeds."
    return Table(caption, [*header, "agent steps", "frames"], rows)


def score_rule(groups: Sequence[Group]) -> str:
    """What a task's score is, in words."""
    episodes = sorted({group.config.protocol.final_episodes for group in groups})
    rules = [
        f"the final policy over {count} episodes" if count else "mean of the last ten evaluations" for count in episodes
    ]
    return ", or ".join(rules)


def further_scores_table(result: TaskResult) -> Table | None:
    """Other people's scores of the same runs, where the protocol ends with an evaluation of its own (Atari)."""
    groups = [group for group in result.groups if group.config.protocol.final_episodes]
    if not groups:
        return None
    columns = [[with_spread(summary) for summary in summarise(groups, measure)] for measure in (SCORE, WITHIN, BEST)]
    rows = [[group.label, *cells] for group, *cells in zip(groups, *columns, strict=True)]
    steps = sorted({group.config.protocol.final_steps for group in groups})
    within = f"episodes within its first {' or '.join(f'{count:,}' for count in steps)} steps"
    header = ["variant", "final evaluation (the score)", within, "best evaluation of the training"]
    return Table(
        "The same runs by other rules; the best of many evaluations is above what can be expected.", header, rows
    )


def coverage_table(groups: Sequence[Group]) -> Table:
    """Which seeds are finished, which are not, and which only other variants of the task have."""
    rows = []
    for _, members in groupby(groups, key=lambda group: group.key[:2]):
        together = list(members)
        wanted = {record.seed for group in together for record in group.records if record.seed is not None}
        for group in together:
            states = [f"{record.seed} {record.state}" for record in group.records if not record.usable]
            missing = sorted(wanted - {record.seed for record in group.records})
            finished = f"{len(group.finished)} of {len(group.records)}"
            row = [group.label, group.task, group.profile, group.budget, finished, seed_list(group.seeds)]
            rows.append([*row, ", ".join(states) or "-", seed_list(missing)])
    header = ["variant", "task", "profile", "budget", "finished", "seeds", "unfinished or damaged", "missing seeds"]
    return Table("Numbers and curves come from finished runs only.", header, rows)


def outcome(summary: Summary) -> str:
    """One sentence about a variant's score against its backbone's."""
    group, difference = summary.group, summary.difference
    about = f"{group.label} on {group.task}, profile {group.profile}"
    if difference is None:
        return f"{about}: no finished seed to compare with its backbone."
    words = "no clear difference in score"
    if difference.excludes_zero:
        words = "a higher score" if difference.value > 0 else "a lower score"
    count = f"{difference.count} paired seed{'s' if difference.count > 1 else ''}"
    return f"{about}: {words}, {with_interval(difference, summary.measure.digits, sign=True)} over {count}."


def _runs_html(records: Sequence[RunRecord]) -> str:
    """The run directories behind a table, each with the command that began it."""
    rows = []
    for record in records:
        counts = [number(record.count(name) or math.nan, 0) for name in ("step", "frame")]
        words = "".join(f"<td>{html.escape(text)}</td>" for text in (record.state, *counts))
        place, command = (f"<td><code>{html.escape(text)}</code></td>" for text in (record.place, record.command))
        rows.append(f"<tr>{place}{words}{command}</tr>")
    head = "".join(f'<th scope="col">{name}</th>' for name in ("run", "state", "agent steps", "frames", "command"))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return page.details_html("Runs behind these numbers, and their commands", f'<div class="scroll">{table}</div>')


def _behind(groups: Sequence[Group]) -> str:
    return _runs_html([record for group in groups for record in group.records])


def _grid_charts(study: Study) -> list[str]:
    charts = []
    for label, values in study.values.items():
        texts = [number(value, 2) for value in values.tolist()]
        for state, cell in _CELL_NAMES.items():
            texts[state] = cell if state == GOAL else f"{cell}<br>{texts[state]}"
        cells = [texts[start : start + COLUMNS] for start in range(0, len(texts), COLUMNS)]
        title = f"(a) max Q at the end: {label}"
        charts.append(page.grid_chart(title, values, cells, gridworld.value_limits(study)))
    return charts


def _study_section(study: Study, picture: Path) -> str:
    order = [group.label for group in study.groups]
    lines = {"b": None, "c": (study.exact, f"exact: {study.exact:g}"), "d": (SHORTEST, f"shortest path: {SHORTEST}")}
    panels = {
        "b": ("Cosine similarity", study.cosine),
        "c": ("Q value difference of S_1 and S_2", study.difference),
        "d": (f"Steps to reach S_T (moving mean over {gridworld.SMOOTHING} episodes)", study.steps),
    }
    charts = [
        page.curve_chart(f"({key}) {title}", curves, order, x="training episode", line=lines[key])
        for key, (title, curves) in panels.items()
        if curves
    ]
    parts = [page.table_html(gridworld.verdict_table(study))] if study.verdicts else []
    parts += [page.charts_html(_grid_charts(study)), page.charts_html(charts)]
    parts += [page.paragraph(gridworld.CAPTION, "soft")]
    parts += [page.table_html(table) for table in gridworld.study_tables(study)]
    parts.append(page.details_html(f"Figure 3 as one picture ({picture.name})", page.image_html(picture, FIGURE3_ALT)))
    return page.section(_study_heading(study), [*parts, _behind(study.groups)])


def _study_heading(study: Study) -> str:
    return f"Grid world (figure 3 of the paper), profile {study.profile}"


def _task_section(result: TaskResult) -> str:
    order = [group.label for group in result.groups]
    shown = [("Evaluation return", result.evaluation)]
    shown += [(DIAGNOSTICS[key], curves) for key, curves in result.diagnostics.items()]
    charts = [page.curve_chart(title, curves, order, x="agent steps") for title, curves in shown if curves]
    note = "Lines: mean over seeds; bands: 95 % bootstrap interval of the mean." if charts else "No finished run yet."
    tables = [table for table in (score_table(result), further_scores_table(result)) if table]
    parts = [*map(page.table_html, tables), page.charts_html(charts), page.paragraph(note, "soft")]
    return page.section(result.heading, [*parts, _behind(result.groups)])


def _summary_section(found: Sequence[Study], results: Sequence[TaskResult]) -> str:
    parts = []
    for study in found:
        for heading, lines in gridworld.sort_verdicts(study).items():
            about = f"{heading}: figure 3, profile {study.profile}"
            parts.append(f"<h3>{html.escape(about)}</h3>{page.bullets(lines)}" if lines else "")
    lines = [outcome(summary) for result in results for summary in result.scores if summary.group.backbone]
    parts.append(f"<h3>Scores</h3>{page.bullets(lines)}" if lines else "")
    note = (
        "Differences are paired by seed, with 95 % percentile bootstrap intervals over the pairs. "
        "With five seeds or fewer such intervals are too narrow: read them as a hint, not as a proof."
    )
    if not any(parts):
        note = "Nothing to compare: there is no run with a regularizer."
    return page.section("What holds, and what does not", [*parts, page.paragraph(note, "soft")])


def markdown(title: str, tables: Sequence[tuple[str, Table]], problems: Sequence[RunRecord]) -> str:
    """The tables for a README."""

    def cell(text: str) -> str:
        return html.escape(" ".join(text.split()), quote=False).replace("|", r"\|")

    lines = [f"# {cell(title)}", ""]
    for heading, table in tables:
        rows = [table.header, ["---"] * len(table.header), *table.rows]
        lines += [f"## {cell(heading)}", "", cell(table.caption), ""]
        lines += [f"| {' | '.join(cell(text) for text in row)} |" for row in rows]
        lines.append("")
    if problems:
        lines += ["## Runs that could not be used", ""]
        lines += [f"- `{cell(record.place)}`: {cell(record.problem)}" for record in problems]
        lines.append("")
    return "\n".join(lines)


def table_csv(results: Sequence[TaskResult], found: Sequence[Study]) -> str:
    """Every measure of every variant, one a line, in full precision."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    ends = [f"{name}{end}" for name in ("iqm", "difference") for end in ("", "_low", "_high")]
    header = ["profile", "task", "variant", "beta", "measure", "seeds", "mean", "std"]
    writer.writerow([*header, *ends, "pairs", "agent_steps", "frames"])
    lines = [pair for result in results for pair in zip(result.scores, result.iqms, strict=True)]
    lines += [(summary, None) for study in found for summaries in study.summaries for summary in summaries]
    for summary, middle in lines:
        group, difference = summary.group, summary.difference
        numbers = [summary.mean, summary.std]
        for estimate in (middle, difference):
            numbers += [estimate.value, estimate.low, estimate.high] if estimate else [math.nan] * 3
        seeds = " ".join(str(seed) for seed in sorted(summary.values))
        counts = [difference.count if difference else 0, group.mean_count("step"), group.mean_count("frame")]
        exact = [repr(value) if math.isfinite(value) else "" for value in (*numbers, *counts)]
        writer.writerow([*group.key, describe_beta(group.config), summary.measure.name, seeds, *exact])
    return file.getvalue()


def write_report(records: Sequence[RunRecord], out: Path, *, title: str) -> Path:
    """Write report.html, table.md, table.csv and the figures into ``out``; returns the page's path."""
    groups = group_runs(records)
    found = gridworld.studies(groups)
    results = [task_result(list(members)) for _, members in groupby(groups, key=lambda group: group.key[:2])]
    try:
        out.mkdir(parents=True, exist_ok=True)
        return _write_files(records, groups, found, results, out, title)
    except OSError as error:
        raise PeerError(f"cannot write the report into {out} ({error.strerror}); choose another --out") from error


def _write_files(
    records: Sequence[RunRecord],
    groups: list[Group],
    found: list[Study],
    results: list[TaskResult],
    out: Path,
    title: str,
) -> Path:
    problems = [record for record in records if record.problem]
    tables = [("Coverage", coverage_table(groups))] if groups else []
    sections = [_summary_section(found, results)]
    for index, study in enumerate(found):
        picture = out / ("figure3.png" if index == 0 else f"figure3-{study.profile}.png")
        draw_figure3(study, picture)
        sections.append(_study_section(study, picture))
        heading = _study_heading(study)
        tables.append((f"{heading}: the paper's claims", gridworld.verdict_table(study)))
        kinds = [f"{heading}: numbers", f"{heading}: differences"]
        tables += zip(kinds, gridworld.study_tables(study), strict=False)
    for result in results:
        if result.evaluation:
            slug = find_task(result.groups[0].task).slug
            picture = out / f"learning-{result.groups[0].profile}-{slug}.png"
            order = [group.label for group in result.groups]
            draw_learning_curves(result.heading, result.evaluation, order, picture)
        sections.append(_task_section(result))
        tables.append((result.heading, score_table(result)))
        further = further_scores_table(result)
        if further:
            tables.append((f"{result.heading}, further scores", further))
    unread = page.bullets([f"{record.place}: {record.problem}" for record in problems] or ["None."])
    coverage = page.table_html(coverage_table(groups)) if groups else ""
    sections.insert(1, page.section("Coverage", [coverage, "<h3>Runs that could not be used</h3>", unread]))
    finished = sum(record.usable for record in records)
    lead = f"{len(records)} runs found, {finished} finished, {len(problems)} not usable. Made by peer-rl {__version__}."
    (out / "table.md").write_text(markdown(title, tables, problems), encoding="utf-8")
    (out / "table.csv").write_text(table_csv(results, found), encoding="utf-8")
    path = out / "report.html"
    path.write_text(page.render(title, lead, sections), encoding="utf-8")
    return path
