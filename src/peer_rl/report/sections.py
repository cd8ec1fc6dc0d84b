"""The parts of a report's page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from peer_rl.envs.gridworld import COLUMNS, GOAL, S1, S2, SHORTEST, START
from peer_rl.report import gridworld, gridworld_tables, page
from peer_rl.report.aggregates import Aggregate, aggregate_table
from peer_rl.report.charts import Chart, curve_chart, grid_chart, group_styles, styles_of
from peer_rl.report.findings import Finding, Sentence, sort_findings, verdict
from peer_rl.report.gridworld import Study
from peer_rl.report.page import Bullets, Cards, Details, Heading, RunGroup, RunRow, RunTable, Section, Still, Text
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
from peer_rl.report.runs import Group, RunRecord, seed_list, terms
from peer_rl.report.scores import FEWEST_PAIRS, LEVEL, SCORE, Summary
from peer_rl.report.tables import Linked, Table, file_link, full_linked, linked, number, with_interval
from peer_rl.settings.tasks import find_task

_FIRST_DIAGNOSTICS = ("drd", "cosine", "feature_norm", "effective_rank", "gradient_ratio")
"""Shown with the return; the others unfold."""
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
        f"{find_task(group.task).suite}, {terms([group])}: a higher score than the backbone",
        full_linked(group, task=True),
        with_interval(summary.difference, summary.measure.digits, sign=True),
        verdict(summary.difference, +1),
    )


def aggregate_findings(found: Sequence[Aggregate]) -> list[Finding]:
    """Whether a run beats one of its backbone's more often than not, over a suite."""
    return [
        Finding(
            f"{one.suite}, {one.terms}, {len(one.tasks)} tasks: more likely than not a better run",
            full_linked(one.variant),
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
            sentences.append([full_linked(group, task=True), f", {terms([group])}: {'; '.join(lacks)}."])
    if problems:
        count = f"{len(problems)} run director{'y' if len(problems) == 1 else 'ies'}"
        sentences.append([Linked(f"{count} could not be used", "#unusable"), "."])
    return sentences


def summary_section(
    studies: Sequence[Study], results: Sequence[TaskResult], found: Sequence[Aggregate], problems: Sequence[RunRecord]
) -> Section:
    """What holds, what does not, and what is missing."""
    findings = [finding for study in studies for finding in gridworld_tables.findings(study)]
    findings += aggregate_findings(found) + score_findings(results)
    absent = missing([group for result in results for group in result.groups], problems)
    note = _FEW if findings else "Nothing to compare: there is no run with a regularizer and its backbone."
    cards = Cards({**sort_findings(findings), "Missing": absent})
    return page.section("What holds, and what does not", cards, Text(note, "soft"))


def aggregate_sections(found: Sequence[Aggregate]) -> list[tuple[Section, Table]]:
    """The tasks of each suite together."""
    sections = []
    for (_, suite), members in groupby(found, key=lambda one: (one.profile, one.suite)):
        together = list(members)
        table = aggregate_table(together)
        charts = [
            curve_chart(
                f"Performance profile: {one.variant.full_label}",
                one.profiles,
                styles_of(one.lines),
                x="normalised score",
            )
            for one in together
            if one.profiles
        ]
        note = "Performance profiles: the fraction of runs whose normalised score is above x; bands: 95 % bootstrap."
        both = [group for one in together for group in (one.variant, one.backbone)]
        heading = f"All tasks of {suite}, {terms(both)}"
        sections.append((page.section(heading, table, charts, Text(note, "soft") if charts else None), table))
    return sections


def _grid_charts(study: Study) -> list[Chart]:
    charts = []
    for label in study.paper:
        if label not in study.values:
            continue
        values = study.values[label]
        texts = [number(value, 2) for value in values.tolist()]
        for state, cell in _CELL_NAMES.items():
            texts[state] = cell if state == GOAL else f"{cell}<br>{texts[state]}"
        cells = [texts[start : start + COLUMNS] for start in range(0, len(texts), COLUMNS)]
        title = f"(a) max Q at the end: {label}"
        charts.append(grid_chart(title, values, cells, gridworld.value_limits(study)))
    return charts


def _panel_charts(study: Study) -> tuple[list[Chart], list[Chart]]:
    """Panels (b) to (d) with the paper's variants, and curves of every control."""
    lines = {"b": None, "c": (study.exact, f"exact: {study.exact:g}"), "d": (SHORTEST, f"shortest path: {SHORTEST}")}
    steps = f"Steps to reach S_T (moving mean over {gridworld.SMOOTHING} episodes)"
    panels = {
        "b": ("Cosine similarity", study.cosine),
        "c": ("Q value difference of S_1 and S_2", study.difference),
        "d": (steps, study.steps),
    }
    x = "training episode" if study.axis == "episode" else "agent step"
    charts = [
        curve_chart(f"({key}) {title}", shown, group_styles(study.groups), x=x, line=lines[key])
        for key, (title, curves) in panels.items()
        if (shown := [curve for curve in curves if curve.label in study.paper])
    ]
    styles = group_styles(study.groups)
    if not gridworld_tables.controls(study):
        return charts, []
    every = ((steps, study.steps), ("Cosine similarity", study.cosine), ("Norm of phi", study.norm))
    return charts, [curve_chart(f"Controls: {title}", curves, styles, x=x) for title, curves in every if curves]


def study_section(study: Study) -> Section:
    """Figure 3, by training episode as in the paper, or by agent step where those are the budget."""
    charts, controls = _panel_charts(study)
    verdicts = gridworld_tables.verdict_table(study) if study.verdicts else None
    caption, tables = Text(gridworld.CAPTION, "soft"), gridworld_tables.study_tables(study)
    mechanism = gridworld_tables.mechanism_table(study)
    parts = [verdicts, _grid_charts(study), charts, caption, *tables, mechanism, controls, _behind(study.groups)]
    return page.section(gridworld_tables.heading(study), *parts)


def _behind(groups: Sequence[Group]) -> Text:
    """Links to the runs that a section's lines come from."""
    names = [piece for group in groups for piece in (", ", linked(group))][1:]
    return Text(["Runs behind these numbers and lines: ", *names, "."], "soft")


def imagined(groups: Sequence[Group]) -> list[Still]:
    """What ``peer-rl watch RUN --imagine`` wrote last for each run: a world model's predictions below reality."""
    shown = []
    for record in (record for group in groups for record in group.records):
        newest = max(record.path.glob("videos/imagine-step-*.png"), key=_step_of, default=None)
        if newest is not None:
            what = f"{record.variant}, seed {record.seed}, step {_step_of(newest)}"
            caption = (
                f"World model of {what}. Top: real frames; middle: their reconstruction; bottom: the prediction from "
                f"actions alone after the frames marked green. Video: videos/{newest.stem}.mp4 in the run directory."
            )
            shown.append(Still(newest.read_bytes(), f"Imagination of {what}", caption))
    return shown


def _step_of(picture: Path) -> int:
    number = picture.stem.removeprefix("imagine-step-")
    return int(number) if number.isdecimal() else -1


def task_section(result: TaskResult) -> Section:
    """Scores, learning curves and what the representation did, for one task."""
    styles = group_styles(result.groups)
    first: list[Chart] = []
    more: list[Chart] = []
    if result.evaluation:
        first.append(curve_chart("Evaluation return", result.evaluation, styles))
    for name, curves in result.diagnostics.items():
        (first if name in _FIRST_DIAGNOSTICS else more).append(curve_chart(DIAGNOSTICS[name], curves, styles))
    note = "No finished run yet."
    if first or more:
        note = "Lines: mean over seeds; bands: 95 % bootstrap interval of the mean, none for a single seed."
    unfold = Details("More of the representation", [more]) if more else None
    tables = score_table(result), further_scores_table(result)
    shown = imagined(result.groups)
    return page.section(result.heading, *tables, first, unfold, Text(note, "soft"), *shown, _behind(result.groups))


def coverage_section(groups: Sequence[Group], problems: Sequence[RunRecord], out: Path) -> Section:
    """Seeds done of planned, and the run directories that cannot be used, with the reason."""
    lines = [[file_link(one.path, out, one.place), f": {one.state}; {one.problem}"] for one in problems]
    unusable = Bullets(lines) if lines else Text("None.")
    table = coverage_table(groups) if groups else None
    return page.section("Coverage", table, Heading("Runs that could not be used", "unusable"), unusable)


def runs_section(groups: Sequence[Group], out: Path) -> Section:
    """Every run directory behind the page, its own numbers, its files, and the command that makes it again."""
    header = ("seed", "run directory", "state", "score", "agent steps", "frames", "hours", "files", "command")
    shown = [
        RunGroup(
            group.anchor,
            f"{group.full_label} on {group.task}, {terms([group])}",
            [_run_row(record, out) for record in group.records],
        )
        for group in groups
    ]
    note = (
        "Every number above comes from these runs. Each command repeats its run, bit for bit on the same machine and "
        "versions (manifest.json); a finished run is left as it is. The numbers of each run are in runs.csv."
    )
    return page.section("Runs and commands", Text(note, "soft"), RunTable(header, shown))


def _run_row(record: RunRecord, out: Path) -> RunRow:
    score = number(SCORE.of(record), SCORE.digits) if record.usable else "-"
    counts = [number(math.nan if (count := record.count(name)) is None else count, 0) for name in ("step", "frame")]
    hours = hours_of(record)
    numbers = [record.state, score, *counts, "no times" if hours is None else number(hours, 3)]
    there = [record.path / name for name in _FILES if (record.path / name).is_file()]
    links = [file_link(path, out, path.stem) for path in there]
    place = file_link(record.path, out, record.place) if record.path.is_dir() else record.place
    return RunRow(str(record.seed), place, numbers, links, record.command)
