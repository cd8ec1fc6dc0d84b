"""Progress for people: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from peer_rl.training.files import read_json_lines

if TYPE_CHECKING:
    from peer_rl.training.observers import Progress as RunProgress

_LINE_SECONDS = 15.0
_RECENT_SECONDS = 30.0


def make_bar(console: Console) -> Progress:
    """A bar with speed, time left (from the recent speed) and the last result."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} {task.fields[unit]}"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[last]}"),
        console=console,
        speed_estimate_period=_RECENT_SECONDS,
    )


class RecentSpeed:
    """How quickly a counter has grown of late: random first steps say nothing about the learning after them."""

    def __init__(self, seconds: float = _RECENT_SECONDS) -> None:
        self.seconds = seconds
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, now: float, count: int) -> None:
        """The counter stands at ``count``."""
        self._seen.append((now, count))
        # at least two stay, so that an evaluation which takes minutes does not leave the speed unknown
        while len(self._seen) > 2 and self._seen[1][0] <= now - self.seconds:
            self._seen.popleft()

    def per_second(self) -> float:
        """NaN in the first half second, when a figure would mean nothing."""
        if not self._seen:
            return math.nan
        (began, first), (now, last) = self._seen[0], self._seen[-1]
        return (last - first) / (now - began) if now - began > 0.5 else math.nan


class TrainingBar:
    """Shows one run's progress; a context manager."""

    def __init__(self, label: str, *, quiet: bool = False) -> None:
        self.label, self.quiet = label, quiet
        self.console = Console(stderr=True)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._steps, self._done = RecentSpeed(), RecentSpeed()
        self._line_at = time.monotonic()
        self._told_plan = False

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
        if run.plan and not self._told_plan and not self.quiet:
            self._told_plan = True
            self.console.print(f"{self.label}: {run.plan}", soft_wrap=True, markup=False, highlight=False)
        if not run.note:  # nothing is counted meanwhile, and the speed is what it was before
            self._steps.add(now, run.step)
            self._done.add(now, run.done)
        recent = self._steps.per_second()
        speed = f"{recent:.0f} steps/s" if math.isfinite(recent) else "... steps/s"
        if self._bar:
            if self._task is None:
                self._task = self._bar.add_task(
                    self.label, total=run.total, completed=run.done, unit=run.unit, speed=speed, last=""
                )
            self._bar.update(self._task, completed=run.done, speed=speed, last=_last(run))
        elif not self.quiet and now - self._line_at >= _LINE_SECONDS:
            self._line_at = now
            share = f"{run.done}/{run.total} {run.unit}"
            left = _time_left(run, self._done.per_second())
            words = ", ".join(word for word in (share, speed, left, _last(run)) if word)
            print(f"{self.label}: {words}", file=sys.stderr, flush=True)


def _time_left(run: RunProgress, per_second: float) -> str:
    if not per_second > 0:  # NaN included
        return "time left unknown"
    return f"{timedelta(seconds=round((run.total - run.done) / per_second))} left"


def _last(run: RunProgress) -> str:
    """What goes on, and the last results, those that there are."""
    known = {
        "return": f"{run.last_return:.1f}",
        "eval": f"{run.evaluation:.1f}",
        "cos": f"{run.cosine:.3f}",
        "DRD": f"{run.drd:+.3f}",
    }
    results = [f"{name} {value}" for name, value in known.items() if "nan" not in value]
    return ", ".join([run.note] * bool(run.note) + results)


def summary(path: Path) -> str:
    """What a finished run has to say."""
    evaluations = read_json_lines(path / "eval.jsonl")
    last = evaluations[-1] if evaluations else None
    result = "no evaluation was asked for"
    if last:
        result = f"last evaluation {last['mean']:.1f} at step {last['step']} (frame {last['frame']})"
    return f"finished: {result}\nrun: {path}"
