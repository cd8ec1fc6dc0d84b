"""Shows people how many trainings get on: a bar for each on a terminal, lines now and then elsewhere."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import Progress, TaskID

from peer_rl.errors import PeerError
from peer_rl.launch.jobs import Job
from peer_rl.launch.progress import RecentSpeed, make_bar

_LINE_SECONDS = 15.0
_ALL = "all runs"


@dataclass
class _Line:
    """What is shown of one running job."""

    steps: RecentSpeed = field(default_factory=RecentSpeed)
    counted: RecentSpeed = field(default_factory=RecentSpeed)
    bar: TaskID | None = None
    words: str = "starting"


class Board:
    """A context manager. Everything goes to stderr."""

    def __init__(self, jobs: list[Job], console: Console | None = None) -> None:
        self.jobs = jobs
        self.console = console or Console(stderr=True)
        self.ended = 0
        self._shares = {job.path: job.share() for job in jobs}
        self._lines: dict[str, _Line] = {}
        self._bars: Progress | None = make_bar(self.console) if self.console.is_terminal else None
        self._all: TaskID | None = None
        self._began = self._told_at = time.monotonic()
        self._share_at_start = self._share()

    def __enter__(self) -> Board:
        if self._bars:
            self._bars.start()
            self._all = self._bars.add_task(_ALL, total=100, unit="%", speed="", last="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars:
            self._bars.stop()

    def say(self, sentence: str) -> None:
        """A line that stays, above the bars."""
        self.console.print(sentence, soft_wrap=True, markup=False, highlight=False)

    def end(self, job: Job, words: str) -> None:
        """A run has ended, well or not."""
        self.ended += 1
        line = self._lines.pop(job.title, None)
        if self._bars and line and line.bar is not None:
            self._bars.remove_task(line.bar)
        self._shares[job.path] = 1.0  # a failed one is no work that is left, either
        self.say(f"[{self.ended}/{len(self.jobs)}] {job.title}: {words}")

    def update(self, running: list[Job], notes: dict[str, str] | None = None) -> None:
        """Look at the running jobs again; ``notes`` tell of those that wait for something."""
        for job in running:
            line = self._lines.setdefault(job.title, _Line())
            self._look(job, line, (notes or {}).get(job.title, ""))
        if self._bars and self._all is not None:
            self._bars.update(self._all, completed=100 * self._share(), last=f"{self.ended} of {len(self.jobs)} ended")
        now = time.monotonic()
        if not self._bars and now - self._told_at >= _LINE_SECONDS:
            self._told_at = now
            self.tell()

    def tell(self) -> None:
        """The board as lines, where there is no terminal."""
        for title, line in self._lines.items():
            self.say(f"  {title}: {line.words}")
        share, count = f"{100 * self._share():.0f} %", f"{self.ended} of {len(self.jobs)} ended"
        self.say(f"{_ALL}: {share}, {count}, {len(self._lines)} running, {self._time_left()}")

    def _look(self, job: Job, line: _Line, note: str) -> None:
        try:
            status = job.status()
        except PeerError:  # a damaged directory, which the training is about to refuse
            status = {}
        if note or not {"done", "total", "unit", "step"} <= status.keys():
            line.words = note or "starting"
            self._draw(job, line, completed=None, total=None, unit="", speed="", last=line.words)
            return
        now, counted, total = time.monotonic(), status["done"], status["total"]
        self._shares[job.path] = counted / total
        line.steps.add(now, status["step"])
        line.counted.add(now, counted)
        recent, left = line.steps.per_second(), _seconds_left(total - counted, line.counted.per_second())
        speed = f"{recent:.0f} steps/s" if math.isfinite(recent) else "... steps/s"
        returned = status.get("last_return")
        last = "" if returned is None else f"return {returned:.1f}"
        line.words = ", ".join(word for word in (f"{counted}/{total} {status['unit']}", speed, left, last) if word)
        self._draw(job, line, completed=counted, total=total, unit=status["unit"], speed=speed, last=last)

    def _draw(self, job: Job, line: _Line, *, completed: int | None, total: int | None, **texts: Any) -> None:
        if not self._bars:
            return
        if line.bar is None:
            line.bar = self._bars.add_task(_shorten(job, self.console.width // 3), total=1, unit="", speed="", last="")
        self._bars.update(line.bar, completed=completed, total=total, **texts)  # None leaves a count as it is

    def _share(self) -> float:
        return sum(self._shares.values()) / len(self._shares)

    def _time_left(self) -> str:
        share = self._share()
        gained = share - self._share_at_start
        seconds = time.monotonic() - self._began
        return _seconds_left(1 - share, gained / seconds if seconds > 0 else 0.0)


def _shorten(job: Job, width: int) -> str:
    """A title that leaves room for the numbers beside it; the seed stays, and the variant loses its end."""
    room = width - len(job.path.name) - 1
    words = job.title.removesuffix(f" {job.path.name}")
    return f"{words if len(words) <= room else words[: room - 1] + '…'} {job.path.name}"


def _seconds_left(amount: float, per_second: float) -> str:
    if not per_second > 0:  # NaN included
        return "time left unknown"
    return f"{timedelta(seconds=round(amount / per_second))} left"
