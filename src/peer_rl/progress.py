"""Progress for people: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from peer_rl.training.files import read_json_lines

if TYPE_CHECKING:
    from peer_rl.training.runner import Progress as RunProgress

_LINE_SECONDS = 15.0


def make_bar(console: Console) -> Progress:
    """A bar with speed, time left and the last result."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} {task.fields[unit]}"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[last]}"),
        console=console,
    )


class TrainingBar:
    """Shows one run's progress; a context manager."""

    def __init__(self, label: str, *, quiet: bool = False) -> None:
        self.label, self.quiet = label, quiet
        self.console = Console(stderr=True)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._began: tuple[float, int] | None = None
        self._line_at = time.monotonic()

    def __enter__(self) -> TrainingBar:
        if not self.quiet and self.console.is_terminal:
            self._bar = make_bar(self.console)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def show(self, run: RunProgress) -> None:
        """Called by the loop a few times a second."""
        now = time.monotonic()
        if self._began is None:
            self._began = (now, run.step)
        elapsed = now - self._began[0]
        speed = f"{(run.step - self._began[1]) / elapsed:.0f} steps/s" if elapsed > 0.5 else "... steps/s"
        if self._bar:
            if self._task is None:
                self._task = self._bar.add_task(
                    self.label, total=run.total, completed=run.done, unit=run.unit, speed=speed, last=""
                )
            self._bar.update(self._task, completed=run.done, speed=speed, last=_last(run))
        elif not self.quiet and now - self._line_at >= _LINE_SECONDS:
            self._line_at = now
            share = f"{run.done}/{run.total} {run.unit}"
            print(f"{self.label}: {share}, {speed}, {_last(run)}", file=sys.stderr, flush=True)


def _last(run: RunProgress) -> str:
    parts = [f"return {run.last_return:.1f}"]
    if math.isfinite(run.evaluation):
        parts.append(f"eval {run.evaluation:.1f}")
    if math.isfinite(run.cosine):
        parts.append(f"cos {run.cosine:.3f}")
    return ", ".join(parts)


def summary(path: Path) -> str:
    """What a finished run has to say."""
    evaluations = read_json_lines(path / "eval.jsonl")
    last = evaluations[-1] if evaluations else None
    result = "no evaluation was asked for"
    if last:
        result = f"last evaluation {last['mean']:.1f} at step {last['step']} (frame {last['frame']})"
    return f"finished: {result}\nrun: {path}"
