"""One run among many: its command, its progress, and why it failed."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from pathlib import Path
from typing import Any

from peer_rl.errors import ConfigError, PeerError, RunError
from peer_rl.launch.child import STARTED
from peer_rl.settings import as_dict
from peer_rl.settings.run import AnyRunConfig
from peer_rl.training.rundir import command_of, read_config, read_status, run_path

_LOG_TAIL = 16384
_LONGEST_COMPLAINT = 500


@dataclass
class Job:
    """One run, as the command line that starts it."""

    config: AnyRunConfig
    arguments: list[str]
    """What follows ``peer-rl train``, but for --runs and ``extra``."""
    runs: Path
    extra: tuple[str, ...] = ()
    """Options of ``peer-rl train`` that are no settings of the run, such as --checkpoint-seconds."""
    memory: int = 0
    """Bytes that the run grows to; 0 before ``estimate_memory``."""
    path: Path = field(init=False)

    def __post_init__(self) -> None:
        self.path = run_path(self.config, self.runs)

    @classmethod
    def of(cls, config: AnyRunConfig, runs: Path, *, extra: tuple[str, ...] = ()) -> Job:
        """The job of a config."""
        arguments = command_of(config)[2:]
        if config.preset:
            arguments += ["--preset", config.preset]
        if config.device != "auto":
            arguments += ["--device", config.device]
        return cls(config, arguments, runs, extra)

    @property
    def label(self) -> str:
        """Short name: variant and seed."""
        return f"{self.path.parent.name} {self.path.name}"

    @property
    def title(self) -> str:
        """Task, variant and seed."""
        return f"{self.path.parents[1].name} {self.label}"

    @property
    def parts(self) -> tuple[str, ...]:
        """Task, agent, options and seed, of which the board shows what differs between jobs."""
        return self.path.parents[1].name, *self.path.parent.name.split("+"), self.path.name

    @property
    def log(self) -> Path:
        """The run's output."""
        return self.path / "log.txt"

    @property
    def command(self) -> str:
        """The command that trains this run by hand."""
        return shlex.join(["peer-rl", *self.words])

    @property
    def words(self) -> list[str]:
        """The command, word by word, after the program's name."""
        return ["train", *self.arguments, *self.extra, "--runs", str(self.runs)]

    def status(self) -> dict[str, Any]:
        """The run's own status.json; empty before its first second."""
        return read_status(self.path)

    def begun(self) -> bool:
        """Whether the run has taken a step."""
        try:
            return bool(self.status().get("step"))
        except PeerError:
            return False

    def finished(self) -> bool:
        """Whether the run is complete. One with other settings is started, and then reports the differences."""
        try:
            if self.status().get("state") != "finished":
                return False
            theirs = as_dict(read_config(self.path))
        except PeerError:  # a damaged directory: the run itself reports what is wrong
            return False
        return theirs == as_dict(replace(self.config, device=theirs["device"]))

    def share(self) -> float:
        """How much of the run is done, 0 to 1."""
        try:
            status = self.status()
        except PeerError:
            return 0.0
        done, total = status.get("done"), status.get("total")
        return done / total if isinstance(done, int) and isinstance(total, int) and total else 0.0

    def last_words(self) -> str:
        """The last line of the log: what a failed run printed, or what a run that does not move waits for."""
        lines = self._tail()
        return lines[-1].strip() if lines and not lines[-1].startswith(STARTED) else ""

    def complaint(self) -> str:
        """Why a failed run stopped: the last thing that it printed, an exception with all lines of its message."""
        words, lines = self.last_words().removeprefix("peer-rl: "), self._tail()
        traces = [number for number, line in enumerate(lines) if line.startswith("Traceback (")]
        if traces and not lines[-1].startswith("peer-rl: "):
            message = dropwhile(lambda line: line.startswith(" "), lines[traces[-1] + 1 :])
            words = " ".join(" ".join(message).split())
        shown = words if len(words) <= _LONGEST_COMPLAINT else f"{words[:_LONGEST_COMPLAINT]} ..."
        return shown or "it printed nothing"

    def _tail(self) -> list[str]:
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_TAIL))
                return log.read().decode(errors="replace").strip().splitlines()
        except OSError:
            return []


def merge(jobs: list[Job]) -> list[Job]:
    """Each run once, in the order of their first appearance; two that share a directory must be the same run."""
    kept: dict[Path, Job] = {}
    for job in jobs:
        other = kept.setdefault(job.path, job)
        mine, theirs = as_dict(job.config), as_dict(other.config)
        differing = [name for name in {**theirs, **mine} if theirs.get(name) != mine.get(name)]
        if differing:
            words = ", ".join(f"{name} {theirs.get(name)} and {mine.get(name)}" for name in differing)
            raise ConfigError(f"two runs would share {job.path}, but differ: {words}; give them different --runs")
    return list(kept.values())


@dataclass(frozen=True)
class Ended:
    """A job that needs no more care; ``reason`` says why it failed, None if it is finished."""

    job: Job
    reason: str | None = None


def make_folder(folder: Path, option: str = "--runs") -> None:
    """The folder for run directories or a report, or an error that says what to do."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot write {folder} ({error.strerror}); choose another place with {option}") from error
