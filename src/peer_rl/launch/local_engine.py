"""The engine for one machine: each run in its own process, as many as its cores and its memory carry."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

from peer_rl.launch import child
from peer_rl.launch.estimate import amount, estimate_memory, resident_memory
from peer_rl.launch.jobs import Ended, Job
from peer_rl.replay.memory import available_memory
from peer_rl.settings import find_agent

_POLL_SECONDS = 0.25


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalEngine:
    """Starts a job when a worker, cores for its threads and memory are free; see ``Engine`` for the methods.

    Without a number of workers, running jobs have no more threads together than there are cores. Memory that running
    jobs have not filled yet is theirs all the same.
    """

    def __init__(self, workers: int | None = None, *, available: Callable[[], int | None] = available_memory) -> None:
        self.workers, self.available = workers, available
        self.cores = cores()
        self.capacity = f"{workers} at a time" if workers else f"on {self.cores} cores"
        self._waiting: list[Job] = []
        self._processes: dict[str, tuple[Job, subprocess.Popen[bytes]]] = {}
        self._news: list[str] = []
        self._memory_reported = False

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(self, *problem: object) -> None:
        self.stop()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue the jobs, in this order."""
        estimate_memory(jobs)
        self._waiting += jobs

    def running(self) -> list[Job]:
        """The jobs that have a process."""
        return [job for job, _ in self._processes.values()]

    def notes(self) -> dict[str, str]:
        """Nothing waits once it runs."""
        return {}

    def news(self) -> list[str]:
        """What there is to say since the last time."""
        news, self._news = self._news, []
        return news

    def poll(self) -> list[Ended]:
        """Start what fits; then see who is through."""
        ended = self._start_what_fits()
        if not ended:
            time.sleep(_POLL_SECONDS)
        for title, (job, process) in list(self._processes.items()):
            if process.poll() is not None:
                del self._processes[title]
                if process.stdin:
                    process.stdin.close()
                ended.append(Ended(job, reason_of(job, process.returncode)))
        return ended

    def stop(self) -> None:
        """Stop all runs."""
        child.stop(process for _, process in self._processes.values())
        self._processes.clear()
        self._waiting.clear()

    def _start_what_fits(self) -> list[Ended]:
        """Jobs that are too large for now are passed over: smaller ones behind them may fit."""
        refused = []
        for job in list(self._waiting):
            if not self._has_worker(job):
                break
            free = self._free_memory()
            if free is not None and job.memory > free:
                if self._processes:
                    self._tell_of_memory(job, free)
                    continue
                reason = f"the run needs about {amount(job.memory)}, but this machine has {amount(free)} available"
                refused.append(Ended(job, f"{reason}; choose a smaller --buffer-size"))
            else:
                try:
                    process = child.start(job.words, job.path, threads=job.config.threads)
                    self._processes[job.title] = (job, process)
                except OSError as error:
                    refused.append(Ended(job, f"cannot write {job.path} ({error.strerror})"))
            self._waiting.remove(job)
        return refused

    def _has_worker(self, job: Job) -> bool:
        if self.workers is not None:
            return len(self._processes) < self.workers
        threads = sum(other.config.threads for other in self.running())
        return not self._processes or threads + job.config.threads <= self.cores

    def _free_memory(self) -> int | None:
        """What is available less what running jobs have yet to take."""
        available = self.available()
        if available is None:
            return None
        still = (max(0, job.memory - resident_memory(process.pid)) for job, process in self._processes.values())
        return max(0, available - sum(still))

    def _tell_of_memory(self, job: Job, free: int) -> None:
        if not self._memory_reported:
            self._memory_reported = True
            self._news.append(
                f"memory limits how many runs train at a time: {len(self._processes)} for now, since {job.title} needs "
                f"about {amount(job.memory)} and {amount(free)} are free"
            )


def reason_of(job: Job, code: int) -> str | None:
    """Why the run ended, from its exit code; None if it is finished."""
    if code < 0:
        name = signal.Signals(-code).name
        guess = ", perhaps because memory ran out" if name == "SIGKILL" else ""
        resumes = find_agent(job.config.agent).resumes
        then = "continues from its last checkpoint" if resumes else "starts it again"
        return f"killed by {name}{guess}; the same command {then}"
    if code:
        return job.complaint()
    return None if job.finished() else "the process ended before the run was finished"
