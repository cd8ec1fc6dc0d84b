"""The appendix's images of the suites, rendered from the environments themselves: one frame of every task."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from peer_rl.envs.make import make_env
from peer_rl.errors import PeerError
from peer_rl.paper.published import SUITE_TABLES, SuiteTable, suite_table
from peer_rl.report import page
from peer_rl.report.figures import STYLE, Drawing, finish, new_figure
from peer_rl.report.page import Picture, Text
from peer_rl.settings.tasks import find_task
from peer_rl.training.video import Frame, draw

_RANDOM_STEPS = 40
"""Enough for a game to have begun, few enough for a robot not to have fallen far."""
_COLUMNS = {8: 4, 16: 8, 100: 7}
"""Frames side by side, by the most tasks that a suite may have for it."""


def frame_of(task: str, steps: int) -> Frame:
    """What the task's environment draws after random actions from seed 0."""
    env = make_env(find_task(task), render_mode="rgb_array")
    try:
        env.reset(seed=0)
        env.action_space.seed(0)
        for _ in range(steps):
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                env.reset(seed=0)
        return draw(env)
    finally:
        env.close()


def draw_suite(table: SuiteTable) -> Drawing:
    """Every task of a suite with its name."""
    steps = _RANDOM_STEPS if table.name == "atari" else _RANDOM_STEPS // 4
    frames = {row.task: frame_of(row.task, steps) for row in table.rows}
    columns = next(count for most, count in _COLUMNS.items() if len(frames) <= most)
    rows = math.ceil(len(frames) / columns)
    tall = float(np.mean([frame.shape[0] / frame.shape[1] for frame in frames.values()]))
    width = 11 / columns
    with mpl.rc_context(STYLE):
        figure = new_figure(11, rows * (width * tall + 0.3))
        grid: Any = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.flat:
            axes.set_axis_off()
        for axes, (task, frame) in zip(grid.flat, frames.items(), strict=False):
            axes.imshow(frame)
            axes.set_title(
                find_task(task).name.partition("/")[2],
                fontsize=9 if columns < 8 else 7,
                fontweight="normal",
                loc="center",
            )
        return finish(figure)


def write_pictures(out: Path, report: Callable[[str], None]) -> Path:
    """Each suite as PNG and SVG, and all of them on one page; ``report`` hears which simulator is missing."""
    sections = []
    for table in map(suite_table, SUITE_TABLES):
        try:
            drawing = draw_suite(table)
        except PeerError as error:
            report(f"{table.name} is left out: {error}")
            sections.append(page.section(table.name, Text(f"Not drawn: {error}")))
            continue
        with page.writing(out):
            drawing.save(out / table.name)
        count = f"{len(table.rows)} tasks, each drawn by its environment after a few random actions from seed 0"
        caption = f"The paper's appendix shows the tasks of {table.name} in such images. Ours: {count}."
        names = ", ".join(row.task for row in table.rows)
        sections.append(page.section(table.name, Picture(table.name, drawing, f"One frame each of {names}", caption)))
    text = page.render("The paper's tasks", "One frame of every task.", sections, switch=False)
    page.write_files(out, {"pictures.html": text})
    return out / "pictures.html"
