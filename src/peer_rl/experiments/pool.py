"""Runs several trainings at once, each in a process of its own, and shows how far they are."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, TaskID

from peer_rl.configs import as_dict
from peer_rl.configs.run import AnyRunConfig
from peer_rl.errors import RunError
from peer_rl.progress import make_bar
from peer_rl.training.rundir import read_config, read_json, run_path

_POLL_SECONDS = 0.5
_LINE_SECONDS = 15.0


@dataclass
class Job:
    """One training, as the command line that a person would type."""

    config: AnyRunConfig
    arguments: list[str]
    runs: Path
    process: subprocess.Popen[bytes] | None = None
    bar: TaskID | None = None
    began: tuple[float, int] | None = None
    """Clock and step when the run was first seen moving, for its speed."""
    path: Path = field(init=False)

    def __post_init__(self) -> None:
        self.path = run_path(self.config, self.runs)

    @property
    def label(self) -> str:
        """Short name for progress bars."""
        return f"{self.path.parent.name} {self.path.name}"

    def status(self) -> dict[str, Any]:
        """The run's own status.json; empty before its first second."""
        return read_json(self.path / "status.json") if (self.path / "status.json").exists() else {}

    def finished(self) -> bool:
        """Whether the run needs nothing more. One with other settings is started, which then tells the differences."""
        if self.status().get("state") != "finished":
            return False
        theirs = as_dict(read_config(self.path))
        return theirs == as_dict(replace(self.config, device=theirs["device"]))

    def share(self) -> float:
        """How much of the run is done, 0 to 1."""
        status = self.status()
        return status["done"] / status["total"] if status else 0.0

    def speed(self, step: int) -> str:
        """Steps per second since this process saw the run for the first time."""
        now = time.monotonic()
        if self.began is None:
            self.began = (now, step)
        seconds, steps = now - self.began[0], step - self.began[1]
        return f"{steps / seconds:.0f} steps/s" if steps else ""

    def start(self) -> None:
        """Start training; what it prints goes to log.txt in the run directory."""
        self.path.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "peer_rl", "train", *self.arguments, "--runs", str(self.runs), "--quiet"]
        with (self.path / "log.txt").open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def complaint(self) -> str:
        """The last thing that a failed run said."""
        lines = (self.path / "log.txt").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


class Pool:
    """At most ``workers`` jobs at a time. Ctrl-C stops all of them; a second start runs only what is missing."""

    def __init__(self, jobs: list[Job], workers: int) -> None:
        self.jobs, self.workers = jobs, workers
        self.waiting = [job for job in jobs if not job.finished()]
        self.running: list[Job] = []
        self.failed: list[Job] = []
        self.console = Console(stderr=True)
        self._began = self._line_at = time.monotonic()
        self._share_at_start = self._share()

    def _share(self) -> float:
        return sum(job.share() for job in self.jobs) / len(self.jobs)

    def run(self) -> None:
        """Run what is missing; raises RunError at the end if any run failed."""
        done = len(self.jobs) - len(self.waiting)
        print(
            f"{len(self.jobs)} runs: {done} done, {len(self.waiting)} to do, {self.workers} at a time", file=sys.stderr
        )
        if not self.waiting:
            return
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a scheduler's stop takes the trainings along
        with make_bar(self.console) as bars:
            overall = bars.add_task("all runs", total=100, unit="%", speed="", last="")
            try:
                while self.waiting or self.running:
                    self._start_more(bars)
                    time.sleep(_POLL_SECONDS)
                    self._collect(bars)
                    bars.update(overall, completed=100 * self._share())
                    self._line()
            finally:
                self._stop()
        if self.failed:
            reasons = "; ".join(f"{job.label}: {job.complaint()}" for job in self.failed)
            raise RunError(f"{len(self.failed)} of {len(self.jobs)} runs failed. {reasons}")

    def _start_more(self, bars: Progress) -> None:
        while self.waiting and len(self.running) < self.workers:
            job = self.waiting.pop(0)
            job.start()
            job.bar = bars.add_task(job.label, total=1, unit="", speed="", last="")
            self.running.append(job)

    def _collect(self, bars: Progress) -> None:
        for job in list(self.running):
            status = job.status()
            if job.bar is not None and status:
                returned = status.get("last_return")
                last = "" if returned is None else f"return {returned:.1f}"
                counts = {"completed": status["done"], "total": status["total"], "unit": status["unit"]}
                bars.update(job.bar, **counts, speed=job.speed(status["step"]), last=last)
            if job.process is not None and job.process.poll() is not None:
                self.running.remove(job)
                if job.bar is not None:
                    bars.remove_task(job.bar)
                if job.process.returncode != 0:
                    self.failed.append(job)

    def _line(self) -> None:
        """Where there is no terminal, a line now and then."""
        now = time.monotonic()
        if self.console.is_terminal or now - self._line_at < _LINE_SECONDS:
            return
        self._line_at = now
        share = self._share()
        gained = share - self._share_at_start
        left = f"about {(now - self._began) * (1 - share) / gained:.0f} s left" if gained > 0 else "time left unknown"
        names = ", ".join(job.label for job in self.running)
        print(f"{100 * share:.0f} % done, {left}; running: {names}", file=sys.stderr, flush=True)

    def _stop(self) -> None:
        for job in self.running:
            if job.process is not None and job.process.poll() is None:
                job.process.terminate()
        for job in self.running:
            if job.process is not None:
                job.process.wait()
