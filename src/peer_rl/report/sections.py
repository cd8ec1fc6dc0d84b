"""The parts of a report's page."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from peer_rl.envs.gridworld import COLUMNS, GOAL, S1, S2, SHORTEST, START
from peer_rl.report import gridworld, page
from peer_rl.report.aggregates import Aggregate, aggregate_table
from peer_rl.report.charts import curve_chart, grid_chart
from peer_rl.report.findings import Finding, Sentence, sort_findings, verdict
from peer_rl.report.gridworld import Study
from peer_rl.report.page import Section
from peer_rl.report.results import (
    DIAGNOSTICS,
    TaskResult,
    coverage_table,
    further_scores_table,
    hours_of,
    missing_seeds,
    score_table,
    unfinished,
)
from peer_rl.report.runs import Group, RunRecord, seed_list
from peer_rl.report.statistics import FEWEST_PAIRS, LEVEL, SCORE, Summary
from peer_rl.report.tables import Linked, Table, linked, number, with_interval
from peer_rl.settings.tasks import find_task

_FIRST_DIAGNOSTICS = ("drd", "cosine", "feature_norm", "effective_rank", "gradient_ratio")
"""Shown beside the return; the others unfold."""
_CELL_NAMES = {START: "start", S1: "S<sub>1</sub>", S2: "S<sub>2</sub>", GOAL: "S<sub>T</sub>"}
_FILES = ("config.toml", "manifest.json", "eval.jsonl", "diagnostics.jsonl", "metrics.jsonl", "timing.jsonl")
_FEW = (
    "Differences are paired by seed, with 95 % BCa bootstrap intervals over the pairs. Something holds if there are at "
    f"least {FEWEST_PAIRS} pairs, the interval excludes zero, and the sign-flip test has p <= {LEVEL:g}."
)


def score_findings(results: Sequence[TaskResult]) -> list[Finding]:
    """Whether a regularizer's score is above its backbone's, for each task that has both."""
    return [_score_finding(one) for result in results for one in result.scores if one.difference]


def _score_finding(summary: Summary) -> Finding:
    group = summary.group
    return Finding(
        f"{find_task(group.task).suite}, profile {group.profile}: a higher score than the backbone",
        Linked(f"{group.full_label} on {group.task}", group.anchor),
        with_interval(summary.difference, summary.measure.digits, sign=True),
        verdict(summary.difference, +1),
    )


def aggregate_findings(found: Sequence[Aggregate]) -> list[Finding]:
    """Whether a run beats one of its backbone's more often than not, over a suite."""
    return [
        Finding(
            f"{one.suite}, profile {one.profile}, {len(one.tasks)} tasks: more likely than not a better run",
            Linked(one.variant.full_label, one.variant.anchor),
            f"probability {with_interval(one.improvement, 2)}",
            verdict(one.difference, +1),
        )
        for one in found
    ]


def missing(groups: Sequence[Group], problems: Sequence[RunRecord]) -> list[Sentence]:
    """What a report cannot show, one sentence for each variant."""
    sentences: list[Sentence] = []
    finished = {group.key: set(group.seeds) for group in groups}
    for group, seeds in missing_seeds(groups):
        lacks = [f"seeds {', '.join(unfinished(group))}"] if unfinished(group) else []
        lacks += [f"no run with seeds {seed_list(seeds)}"] if seeds else []
        if group.backbone and not finished[group.key] & finished.get(group.backbone, set()):
            lacks.append("no finished seed to compare with its backbone")
        if lacks:
            name = Linked(f"{group.full_label} on {group.task}", group.anchor)
            sentences.append([name, f", profile {group.profile}: {'; '.join(lacks)}."])
    if problems:
        count = f"{len(problems)} run director{'y' if len(problems) == 1 else 'ies'}"
        sentences.append([Linked(f"{count} could not be used", "unusable"), "."])
    return sentences


def summary_section(
    studies: Sequence[Study],
    results: Sequence[TaskResult],
    found: Sequence[Aggregate],
    problems: Sequence[RunRecord],
) -> Section:
    """What holds, what does not, and what is missing."""
    findings = [finding for study in studies for finding in gridworld.findings(study)]
    findings += aggregate_findings(found) + score_findings(results)
    absent = missing([group for result in results for group in result.groups], problems)
    note = _FEW if findings else "Nothing to compare: there is no run with a regularizer and its backbone."
    cards = page.cards_html({**sort_findings(findings), "Missing": absent})
    return page.section("What holds, and what does not", [cards, page.paragraph(note, "soft")])


def aggregate_sections(found: Sequence[Aggregate]) -> list[tuple[Section, Table]]:
    """The tasks of each suite together."""
    sections = []
    for (profile, suite), members in groupby(found, key=lambda one: (one.profile, one.suite)):
        together = list(members)
        table = aggregate_table(together)
        charts = [
            curve_chart(
                f"Performance profile: {one.variant.full_label}",
                one.profiles,
                [one.backbone.full_label, one.variant.full_label],
                x="normalised score",
            )
            for one in together
            if one.profiles
        ]
        note = "Performance profiles: the share of runs whose normalised score is above x; bands: 95 % bootstrap."
        parts = [page.table_html(table), page.charts_html(charts), page.paragraph(note, "soft") if charts else ""]
        sections.append((page.section(f"All tasks of {suite}, profile {profile}", parts), table))
    return sections


def _grid_charts(study: Study) -> list[str]:
    charts = []
    for label, values in study.values.items():
        texts = [number(value, 2) for value in values.tolist()]
        for state, cell in _CELL_NAMES.items():
            texts[state] = cell if state == GOAL else f"{cell}<br>{texts[state]}"
        cells = [texts[start : start + COLUMNS] for start in range(0, len(texts), COLUMNS)]
        title = f"(a) max Q at the end: {label}"
        charts.append(grid_chart(title, values, cells, gridworld.value_limits(study)))
    return charts


def study_heading(study: Study) -> str:
    """Of the section, and of its tables."""
    return f"Grid world (figure 3 of the paper), profile {study.profile}"


def study_section(study: Study) -> Section:
    """Figure 3, by training episode as in the paper."""
    order = [group.label for group in study.groups]
    lines = {"b": None, "c": (study.exact, f"exact: {study.exact:g}"), "d": (SHORTEST, f"shortest path: {SHORTEST}")}
    panels = {
        "b": ("Cosine similarity", study.cosine),
        "c": ("Q value difference of S_1 and S_2", study.difference),
        "d": (f"Steps to reach S_T (moving mean over {gridworld.SMOOTHING} episodes)", study.steps),
    }
    charts = [
        curve_chart(f"({key}) {title}", curves, order, x="training episode", line=lines[key])
        for key, (title, curves) in panels.items()
        if curves
    ]
    parts = [page.table_html(gridworld.verdict_table(study))] if study.verdicts else []
    parts += [page.charts_html(_grid_charts(study)), page.charts_html(charts)]
    parts += [page.paragraph(gridworld.CAPTION, "soft")]
    parts += [page.table_html(table) for table in gridworld.study_tables(study)]
    return page.section(study_heading(study), [*parts, _behind(study.groups)])


def _behind(groups: Sequence[Group]) -> str:
    """Links to the runs that a section's lines come from."""
    names = [piece for group in groups for piece in (", ", linked(group))][1:]
    return page.sentence_html(["Runs behind these numbers and lines: ", *names, "."], "soft")


def task_section(result: TaskResult) -> Section:
    """Scores, learning curves and what the representation did, for one task."""
    order = [group.label for group in result.groups]
    first: list[str] = []
    more: list[str] = []
    if result.evaluation:
        first.append(curve_chart("Evaluation return", result.evaluation, order))
    for name, curves in result.diagnostics.items():
        (first if name in _FIRST_DIAGNOSTICS else more).append(curve_chart(DIAGNOSTICS[name], curves, order))
    note = "No finished run yet."
    if first or more:
        note = "Lines: mean over seeds; bands: 95 % bootstrap interval of the mean, none for a single seed."
    tables = [table for table in (score_table(result), further_scores_table(result)) if table]
    parts = [*map(page.table_html, tables), page.charts_html(first)]
    if more:
        parts.append(page.details_html("More of the representation", page.charts_html(more)))
    return page.section(result.heading, [*parts, page.paragraph(note, "soft"), _behind(result.groups)])


def coverage_section(groups: Sequence[Group], problems: Sequence[RunRecord], out: Path) -> Section:
    """Seeds done of planned, and the run directories that cannot be used, with the reason."""
    items = [
        f"<li>{page.file_link(record.path, out, record.place)}: {html.escape(record.state)}; "
        f"{html.escape(record.problem)}</li>"
        for record in problems
    ]
    unusable = f"<ul>{''.join(items)}</ul>" if items else page.paragraph("None.")
    table = page.table_html(coverage_table(groups)) if groups else ""
    return page.section("Coverage", [table, '<h3 id="unusable">Runs that could not be used</h3>', unusable])


def runs_section(groups: Sequence[Group], out: Path) -> Section:
    """Every run directory behind the page, its own numbers, its files, and the command that makes it again."""
    names = ("seed", "run directory", "state", "score", "agent steps", "frames", "hours", "files", "command")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    bodies = []
    for group in groups:
        about = html.escape(f"{group.full_label} on {group.task}, profile {group.profile}")
        title = f'<tr class="group"><th colspan="{len(names)}" scope="rowgroup">{about}</th></tr>'
        rows = "".join(_run_row(record, out) for record in group.records)
        bodies.append(f'<tbody id="{group.anchor}">{title}{rows}</tbody>')
    table = f"<table><thead><tr>{head}</tr></thead>{''.join(bodies)}</table>"
    note = (
        "Every number above is made of these. A command makes its run again, bit for bit on the same machine and "
        "versions (manifest.json); where the run is whole, it only says so. Numbers of each run: runs.csv."
    )
    return page.section("Runs and commands", [page.paragraph(note, "soft"), page.scroll(table, "Runs and commands")])


def _run_row(record: RunRecord, out: Path) -> str:
    score = number(SCORE.of(record), SCORE.digits) if record.usable else "-"
    counts = [number(math.nan if (count := record.count(name)) is None else count, 0) for name in ("step", "frame")]
    hours = hours_of(record)
    words = [record.state, score, *counts, "no times" if hours is None else number(hours, 3)]
    cells = "".join(f'<td class="short">{html.escape(text)}</td>' for text in words)
    there = [name for name in _FILES if (record.path / name).is_file()]
    links = " ".join(page.file_link(record.path / name, out, name.partition(".")[0]) for name in there) or "-"
    place = page.file_link(record.path, out, record.place) if record.path.is_dir() else html.escape(record.place)
    seed = html.escape(str(record.seed))
    command = f"<code>{html.escape(record.command)}</code>" if record.command else "-"
    head = f'<th scope="row" class="short">{seed}</th>'
    return f"<tr>{head}<td>{place}</td>{cells}<td>{links}</td><td>{command}</td></tr>"
