"""A report on run directories: one HTML page, and the same as images, Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from peer_rl.report import gridworld, gridworld_tables, page, sections
from peer_rl.report.aggregates import Aggregate, aggregates
from peer_rl.report.charts import group_styles
from peer_rl.report.figures import draw_controls, draw_figure3, draw_learning_curves, draw_profiles, draw_representation
from peer_rl.report.gridworld import Study
from peer_rl.report.page import Section
from peer_rl.report.results import (
    TaskResult,
    coverage_table,
    further_scores_table,
    runs_csv,
    score_table,
    task_results,
    variants_csv,
)
from peer_rl.report.runs import RunRecord, group_runs, shared_settings
from peer_rl.report.tables import Table, latex, markdown
from peer_rl.settings.tasks import find_task
from peer_rl.version import __version__

Tables = list[tuple[str, Table]]
"""Each with its heading."""
Parts = tuple[list[Section], Tables]
"""Sections of the page, and the tables that go into the other files too."""


def write_report(
    records: Sequence[RunRecord],
    out: Path,
    *,
    title: str,
    answers: Parts | None = None,
    comparisons: Sequence[Parts] = (),
    pictures: bool = True,
) -> Path:
    """Write the page, the tables and, if wanted, PNG and SVG ``pictures`` into ``out``; returns the page's path.

    ``answers`` stand in for the summary at the top; ``comparisons`` follow it.
    """
    groups = group_runs(records)
    studies, results, found = gridworld.studies(groups), task_results(groups), aggregates(groups)
    problems = [record for record in records if record.problem]
    parts, tables = answers or ([sections.summary_section(studies, results, found, problems)], [])
    tables += [("Coverage", coverage_table(groups))] if groups else []
    for more_parts, more_tables in (*comparisons, _aggregate_parts(found), _study_parts(studies), _task_parts(results)):
        parts += more_parts
        tables += more_tables
    if pictures:
        with page.writing(out):
            _draw(studies, results, found, out)
            for picture in page.pictures_of(parts):
                picture.drawing.save(out / picture.name)
    parts.append(sections.coverage_section(groups, problems, out))
    if groups:
        parts.append(sections.runs_section(groups, out))
    curves = any(result.evaluation or result.diagnostics for result in results)
    texts = {
        "table.md": markdown(title, tables, problems),
        "table.tex": latex(tables),
        "table.csv": variants_csv(results, studies),
        "runs.csv": runs_csv(records, studies),
        "report.html": page.render(title, _lead(records), parts, switch=curves),
    }
    page.write_files(out, texts)
    return out / "report.html"


def _lead(records: Sequence[RunRecord]) -> str:
    """How much there is, in one line."""
    finished = sum(record.usable for record in records)
    absent = sum(record.state == "missing" for record in records)
    found = (
        f"{finished} of {len(records)} planned runs finished"
        if absent
        else f"{len(records)} runs found, {finished} finished"
    )
    return f"{found}, {sum(bool(record.problem) for record in records)} not usable. Made by peer-rl {__version__}."


def _aggregate_parts(found: Sequence[Aggregate]) -> tuple[list[Section], Tables]:
    shown = sections.aggregate_sections(found)
    return [part for part, _ in shown], [(part.heading, table) for part, table in shown]


def _study_parts(studies: Sequence[Study]) -> tuple[list[Section], Tables]:
    tables: Tables = []
    for study in studies:
        tables += gridworld_tables.all_tables(study)
    return [sections.study_section(study) for study in studies], tables


def _task_parts(results: Sequence[TaskResult]) -> tuple[list[Section], Tables]:
    tables: Tables = []
    for result in results:
        tables.append((result.heading, score_table(result)))
        further = further_scores_table(result)
        if further:
            tables.append((f"{result.heading}, further scores", further))
    return [sections.task_section(result) for result in results], tables


def _draw(studies: Sequence[Study], results: Sequence[TaskResult], found: Sequence[Aggregate], out: Path) -> None:
    """Every figure as PNG and SVG, for papers and slides."""
    names: set[str] = set()
    for study in studies:
        apart = [
            getattr(study, part)
            for part in ("encoding", "profile")
            if getattr(study, part) != getattr(studies[0], part)
        ]
        draw_figure3(study, out / unused("-".join(["figure3", *apart]), names))
        if gridworld_tables.controls(study):
            draw_controls(study, out / unused("-".join(["controls", *apart]), names))
    for index, one in enumerate(one for one in found if one.profiles):
        draw_profiles(one, out / f"profiles-{one.profile}-{one.suite}-{index}")
    for result in results:
        styles, note = group_styles(result.groups), shared_settings(result.groups)
        name = unused(f"{result.groups[0].profile}-{find_task(result.groups[0].task).slug}", names)
        if result.evaluation:
            draw_learning_curves(result.heading, result.evaluation, styles, out / f"learning-{name}", note=note)
        if result.diagnostics:
            draw_representation(result.heading, result.diagnostics, styles, out / f"representation-{name}", note=note)


def unused(name: str, taken: set[str]) -> str:
    """A file name of its own, for tasks whose names differ in signs that file names leave out."""
    choices = [name, *(f"{name}-{count}" for count in range(2, len(taken) + 2))]
    chosen = next(choice for choice in choices if choice not in taken)
    taken.add(chosen)
    return chosen
