"""The runs in a folder: state, step, score, size and age of each, and how to delete some safely."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from peer_rl.errors import PeerError, RunError
from peer_rl.report.runs import run_folders, state_of
from peer_rl.training.files import open_regular, read_object
from peer_rl.training.rundir import DRAFTS, FILES, check_files, read_config, read_status

_TAIL = 1 << 16
"""Bytes at the end of a log in which its last line is looked for."""
_WRITTEN_HERE = {*FILES, *DRAFTS, "checkpoint", "videos", "export", "log.txt", "tensorboard", "wandb"}


@dataclass(frozen=True)
class Entry:
    """A summary of one run directory."""

    path: Path
    name: str
    """Its path below the folder of runs."""
    state: str
    """finished, running, stopped or damaged."""
    step: int | None
    total: str
    """The budget, in its own counter."""
    score: float | None
    """Mean of the last evaluation."""
    bytes: int
    changed: datetime
    """When its newest file was written."""


def find_entries(runs: Path) -> list[Entry]:
    """Every run below ``runs``, in the order of their paths."""
    if not runs.is_dir():
        raise RunError(f"there is no folder {runs}; name the one that holds your runs with --runs")
    return [_read(folder, runs) for folder in run_folders(runs)]


def _read(path: Path, runs: Path) -> Entry:
    status: dict[str, Any] = {}
    budget, score = "", None
    try:
        status = read_status(path)
        check_files(path, status)
        config = read_config(path)
        budget = f"{config.steps}" if config.steps is not None else f"{config.episodes} episodes"
        score = _last_score(path / "eval.jsonl")
        state = state_of(path, status)
    except (PeerError, OSError, ValueError):
        state = "damaged"
    step = status.get("step")
    size, changed = _measure(path)
    name = str(path.relative_to(runs))
    return Entry(path, name, state, step if isinstance(step, int) else None, budget, score, size, changed)


def _last_score(path: Path) -> float | None:
    """The mean in the last whole line; None if there is no evaluation yet."""
    try:
        handle = open_regular(path)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        file.seek(max(0, os.fstat(handle).st_size - _TAIL))
        lines = file.read().split(b"\n")[:-1]
    score = read_object(lines[-1]).get("mean") if lines else None
    return float(score) if isinstance(score, int | float) else None


def _measure(path: Path) -> tuple[int, datetime]:
    """Bytes of all files, and when the newest was written; links are counted, not followed."""
    files = [Path(folder) / name for folder, _, names in os.walk(path) for name in names]
    found = [file.lstat() for file in files] or [path.lstat()]
    return sum(one.st_size for one in found), datetime.fromtimestamp(max(one.st_mtime for one in found))


def delete(entry: Entry, runs: Path) -> None:
    """Delete a run that no process is writing, and the folders above it that become empty."""
    foreign = sorted(set(os.listdir(entry.path)) - _WRITTEN_HERE)
    if foreign:
        raise RunError(f"{entry.path} holds what peer-rl did not write ({', '.join(foreign)}); delete it by hand")
    try:
        with FileLock(entry.path / ".lock", timeout=0):
            shutil.rmtree(entry.path)
    except Timeout as error:
        raise RunError(f"{entry.path} is being written by another process; stop it first") from error
    for folder in entry.path.parents:
        if folder == runs or any(folder.iterdir()):
            return
        folder.rmdir()


def select(
    entries: Iterable[Entry], words: Iterable[str], *, state: str | None, before: datetime | None
) -> list[Entry]:
    """The runs whose name has all ``words``, in this state, and not written since ``before``."""
    wanted = [word.lower() for word in words]
    return [
        entry
        for entry in entries
        if all(word in entry.name.lower() for word in wanted)
        and state in (None, entry.state)
        and (before is None or entry.changed < before)
    ]
