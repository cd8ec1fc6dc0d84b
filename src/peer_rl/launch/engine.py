"""Trains many runs, on this machine or on a Ray cluster; finished ones are left alone."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, Protocol

from peer_rl.errors import RunError
from peer_rl.launch.jobs import Ended, Job, merge
from peer_rl.launch.progress import Board
from peer_rl.training.files import read_json_lines

EngineName = Literal["local", "ray"]


class Engine(Protocol):
    """Something that trains jobs. ``with`` it: leaving the block stops whatever still runs."""

    capacity: str
    """How much it does at a time, to print."""

    def submit(self, jobs: Sequence[Job]) -> None:
        """Take these jobs, none of which is finished."""

    def poll(self) -> list[Ended]:
        """Start what can be started, wait a moment, and return what has ended since the last call."""

    def running(self) -> list[Job]:
        """The jobs that train right now."""

    def notes(self) -> dict[str, str]:
        """By title, what running jobs wait for, if anything."""

    def news(self) -> list[str]:
        """Messages to print, each returned once."""

    def stop(self) -> None:
        """Stop all runs; they can be resumed later."""


def make_engine(
    name: EngineName = "local",
    *,
    workers: int | None = None,
    address: str | None = None,
    gpu_share: float | None = None,
) -> AbstractContextManager[Engine]:
    """The engine of that name; ``workers`` is how many runs it trains at a time, as many as fit if None."""
    if name == "ray":
        from peer_rl.launch.ray_engine import RayEngine

        return RayEngine(workers=workers, address=address, gpu_share=gpu_share)
    from peer_rl.launch.local_engine import LocalEngine

    return LocalEngine(workers)


def run_jobs(
    jobs: Sequence[Job],
    *,
    engine: EngineName = "local",
    workers: int | None = None,
    address: str | None = None,
    gpu_share: float | None = None,
    alike: bool = False,
) -> None:
    """Run what is missing; raises RunError at the end if any run failed.

    alike: all jobs run the same code, so one that fails before its first step stops the others.
    """
    with make_engine(engine, workers=workers, address=address, gpu_share=gpu_share) as made:
        conduct(jobs, made, alike=alike)


def conduct(jobs: Sequence[Job], engine: Engine, *, alike: bool = False) -> None:
    """Run what is missing on an engine that is there, as `run_jobs` does."""
    jobs = merge(list(jobs))
    waiting = [job for job in jobs if not job.finished()]
    failed: list[Ended] = []
    with _stopping_on_sigterm(), Board(jobs) as board:
        board.ended = len(jobs) - len(waiting)
        board.say(f"{len(jobs)} runs: {board.ended} done, {len(waiting)} to do, {engine.capacity}")
        try:
            engine.submit(waiting)
            left = len(waiting)
            while left:
                for ended in engine.poll():
                    left -= 1
                    failed += [ended] if ended.reason else []
                    board.end(ended.job, _verdict(ended))
                    if alike and ended.reason and not ended.job.begun():
                        raise RunError(
                            f"{_failure([ended])}; the other runs were stopped, since they run the same code"
                        )
                for sentence in engine.news():
                    board.say(sentence)
                board.update(engine.running(), engine.notes())
        except KeyboardInterrupt:
            board.say("stopping the runs ...")
            raise
        finally:
            engine.stop()
    if failed:
        together: dict[str | None, list[Ended]] = {}
        for ended in failed:
            together.setdefault(ended.reason, []).append(ended)
        raise RunError(f"{len(failed)} of {len(jobs)} runs failed. {'; '.join(map(_failure, together.values()))}")


def _verdict(ended: Ended) -> str:
    if ended.reason:
        return f"FAILED: {ended.reason} (log: {ended.job.log})"
    evaluations = read_json_lines(ended.job.path / "eval.jsonl")
    return f"finished, last evaluation {evaluations[-1]['mean']:.1f}" if evaluations else "finished"


def _failure(alike: Sequence[Ended]) -> str:
    """Runs that failed for the same reason."""
    first = alike[0].job
    labels = ", ".join(ended.job.label for ended in alike[:2])
    more = f" and {len(alike) - 2} more" if len(alike) > 2 else ""
    return f"{labels}{more}: {alike[0].reason} (log: {first.log})"


@contextmanager
def _stopping_on_sigterm() -> Iterator[None]:
    """SIGTERM, which schedulers send, stops all runs as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
