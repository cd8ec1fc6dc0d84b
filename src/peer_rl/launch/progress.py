"""Progress on the terminal: a bar for one run, a board of bars for many; lines now and then where there is none."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from peer_rl.errors import PeerError
from peer_rl.launch.jobs import Job
from peer_rl.training.files import read_json_lines
from peer_rl.training.stopping import StopRequest

if TYPE_CHECKING:
    from peer_rl.training.recorder import Progress as RunProgress

_LINE_SECONDS = 15.0
_RECENT_SECONDS = 30.0
_ALL = "all runs"
_SHORTEST_BAR, _LONGEST_BAR, _SHORTEST_LABEL = 10, 40, 16
_TIME_LEFT, _GAPS = 8, 5
"""Columns of a terminal that the time left takes, and the spaces between the parts of a bar."""


def make_bar(console: Console) -> Progress:
    """A bar with speed, time left (from the recent speed), the count and the last result; ``fit`` gives the texts."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=_bar_width(console.width)),
        TextColumn("{task.fields[speed]}", markup=False),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[rest]}", markup=False),
        console=console,
        speed_estimate_period=_RECENT_SECONDS,
    )


def _bar_width(width: int) -> int:
    return max(_SHORTEST_BAR, min(_LONGEST_BAR, width // 5))


def fit(width: int, label: str, speed: str, count: str, last: str) -> dict[str, str]:
    """The texts of a bar that fit into ``width``: the bar, its speed and the time left stay, the end goes first.

    A label loses its end before its last word, which names the seed.
    """
    room = width - _bar_width(width) - len(speed) - _TIME_LEFT - _GAPS
    if len(label) > max(room, _SHORTEST_LABEL):
        *words, seed = label.split(" ")
        kept = max(room, _SHORTEST_LABEL) - len(seed) - 2
        label = f"{' '.join(words)[:kept]}… {seed}" if words else label
    rest: list[str] = []
    for text in (count, *last.split(", ")):
        if not text:
            continue
        free = room - len(label) - len(", ".join([*rest, ""]))
        if len(text) > free:
            rest += [] if count or rest or free < _SHORTEST_BAR else [f"{text[: free - 1]}…"]  # a note, not a number
            break
        rest.append(text)
    return {"description": label, "speed": speed, "rest": ", ".join(rest)}


class RecentSpeed:
    """A counter's recent speed: random first steps say nothing about the learning after them."""

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

    def __init__(self, label: str, *, quiet: bool = False, stop: StopRequest | None = None) -> None:
        self.label, self.quiet, self.stop = label, quiet, stop
        self.console = Console(stderr=True)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._steps, self._done = RecentSpeed(), RecentSpeed()
        self._line_at = time.monotonic()
        self._shown: set[str] = set()

    def __enter__(self) -> TrainingBar:
        if not self.quiet and self.console.is_terminal:
            self._bar = make_bar(self.console)
            self._bar.start()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._bar:
            self._bar.stop()

    def show(self, run: RunProgress) -> None:
        """Called by the loop a few times a second."""
        now = time.monotonic()
        if run.resumed_at:
            self._tell_once(f"resumes from the checkpoint at step {run.resumed_at}")
        if run.plan:
            self._tell_once(run.plan)
        if self.stop and self.stop.made:
            self._tell_once("stops with a checkpoint at the end of this episode; Ctrl-C again stops at once")
        if not run.note:  # nothing is counted meanwhile, and the speed is what it was before
            self._steps.add(now, run.step)
            self._done.add(now, run.done)
        recent = self._steps.per_second()
        speed = f"{recent:.0f} steps/s" if math.isfinite(recent) else "... steps/s"
        if self._bar:
            count = f"{run.done}/{run.total} {run.unit}"
            texts: dict[str, Any] = fit(self.console.width, self.label, speed, count, _last(run))
            if self._task is None:
                self._task = self._bar.add_task(total=run.total, completed=run.done, **texts)
            self._bar.update(self._task, completed=run.done, **texts)
        elif not self.quiet and now - self._line_at >= _LINE_SECONDS:
            self._line_at = now
            share = f"{run.done}/{run.total} {run.unit}"
            left = _time_left(run.total - run.done, self._done.per_second())
            words = ", ".join(word for word in (share, speed, left, _last(run)) if word)
            print(f"{self.label}: {words}", file=sys.stderr, flush=True)

    def _tell_once(self, sentence: str) -> None:
        """A line that stays, above the bar."""
        if not self.quiet and sentence not in self._shown:
            self._shown.add(sentence)
            self.console.print(f"{self.label}: {sentence}", soft_wrap=True, markup=False, highlight=False)


def _last(run: RunProgress) -> str:
    """What the run is doing, and its last results."""
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
        self._names, self._shared = name_apart(jobs)
        self._shares = {job.path: job.share() for job in jobs}
        self._lines: dict[str, _Line] = {}
        self._bars: Progress | None = make_bar(self.console) if self.console.is_terminal else None
        self._all: TaskID | None = None
        self._began = self._printed_at = time.monotonic()
        self._share_at_start = self._share()

    def __enter__(self) -> Board:
        if self._bars:
            self._bars.start()
        if self._shared:
            self.say(f"all of them: {self._shared}")
        if self._bars:
            self._all = self._bars.add_task(_ALL, total=100, speed="", rest="")
        return self

    def __exit__(self, *problem: object) -> None:
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
        self.say(f"[{self.ended}/{len(self.jobs)}] {self._names[job.title]}: {words}")

    def update(self, running: list[Job], notes: dict[str, str] | None = None) -> None:
        """Read the running jobs' status; ``notes`` name what some of them wait for."""
        for job in running:
            line = self._lines.setdefault(job.title, _Line())
            self._read(job, line, (notes or {}).get(job.title, ""))
        if self._bars and self._all is not None:
            self._bars.update(self._all, completed=100 * self._share(), rest=self._overall())
        now = time.monotonic()
        if not self._bars and now - self._printed_at >= _LINE_SECONDS:
            self._printed_at = now
            self.print_lines()

    def print_lines(self) -> None:
        """The board as lines, where there is no terminal."""
        for title, line in self._lines.items():
            self.say(f"  {self._names[title]}: {line.words}")
        self.say(f"{_ALL}: {self._overall()}, {len(self._lines)} running, {self._left()}")

    def _overall(self) -> str:
        return f"{100 * self._share():.0f} %, {self.ended} of {len(self.jobs)} ended"

    def _read(self, job: Job, line: _Line, note: str) -> None:
        try:
            status = job.status()
        except PeerError:  # a damaged directory, which the run is about to refuse
            status = {}
        if note or not {"done", "total", "unit", "step"} <= status.keys():
            line.words = note or "starting"
            self._draw(job, line, completed=None, total=None, speed="", count="", last=line.words)
            return
        now, counted, total = time.monotonic(), status["done"], status["total"]
        self._shares[job.path] = counted / total
        line.steps.add(now, status["step"])
        line.counted.add(now, counted)
        recent, left = line.steps.per_second(), _time_left(total - counted, line.counted.per_second())
        speed = f"{recent:.0f} steps/s" if math.isfinite(recent) else "... steps/s"
        returned = status.get("last_return")
        last = "" if returned is None else f"return {returned:.1f}"
        count = f"{counted}/{total} {status['unit']}"
        line.words = ", ".join(word for word in (count, speed, left, last) if word)
        self._draw(job, line, completed=counted, total=total, speed=speed, count=count, last=last)

    def _draw(self, job: Job, line: _Line, *, completed: int | None, total: int | None, **words: str) -> None:
        if not self._bars:
            return
        texts: dict[str, Any] = fit(self.console.width, self._names[job.title], **words)
        if line.bar is None:
            line.bar = self._bars.add_task(total=1, **texts)
        self._bars.update(line.bar, completed=completed, total=total, **texts)  # None leaves a count as it is

    def _share(self) -> float:
        return sum(self._shares.values()) / len(self._shares)

    def _left(self) -> str:
        share = self._share()
        gained = share - self._share_at_start
        seconds = time.monotonic() - self._began
        return _time_left(1 - share, gained / seconds if seconds > 0 else 0.0)


def name_apart(jobs: Sequence[Job]) -> tuple[dict[str, str], str]:
    """By title, a name of what differs between the jobs; and what all of them share, to be said once."""
    parts = {job.title: job.parts for job in jobs}
    shared = set.intersection(*map(set, parts.values())) if len(parts) > 1 else set()
    names = {}
    for title, (task, agent, *options, seed) in parts.items():
        variant = "+".join(word for word in (agent, *options) if word not in shared) or agent
        names[title] = " ".join([*(word for word in (task,) if word not in shared), variant, seed])
    first = next(iter(parts.values()), ())
    return names, ", ".join(word for word in first if word in shared)


def _time_left(amount: float, per_second: float) -> str:
    if not per_second > 0:  # NaN included
        return "time left unknown"
    return f"{timedelta(seconds=round(amount / per_second))} left"
