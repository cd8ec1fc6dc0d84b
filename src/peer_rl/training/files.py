"""Files that survive a crash: atomic writes, and JSON lines that can be cut back to a committed length."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from peer_rl.errors import RunError


def clean(value: Any) -> Any:
    """``value`` as strict JSON: NaN and infinities become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clean(inner) for inner in value]
    return value


def sync_directory(path: Path) -> None:
    """Make a rename inside ``path`` durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_durably(path: Path, content: bytes) -> None:
    """Write and fsync; the caller publishes the file with a rename."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Exchange a whole file; a reader sees the old one or the new one, never half of it."""
    beside = path.with_name(f".{path.name}.new")
    if durable:
        write_durably(beside, content)
    else:
        beside.write_bytes(content)
    beside.replace(path)
    if durable:
        sync_directory(path.parent)


def check_length(path: Path, committed: int) -> None:
    """Refuse a log that is shorter than its checkpoint says."""
    size = path.stat().st_size if path.exists() else 0
    if size < committed:
        raise RunError(
            f"{path} has {size} bytes, but the checkpoint was taken at {committed}: lines are missing; "
            "put the file back, or delete the run directory to start again"
        )


class JsonLines:
    """An append-only file of JSON objects, one a line."""

    def __init__(self, path: Path, committed: int) -> None:
        """Open ``path``, dropping whatever came after the ``committed`` bytes that a checkpoint knows of."""
        check_length(path, committed)
        self._file = path.open("ab")
        self._file.truncate(committed)
        self._file.seek(committed)  # truncating does not move the position, which commit() reports

    def write(self, row: dict[str, Any]) -> None:
        """Append one object."""
        self._file.write(json.dumps(clean(row), allow_nan=False).encode() + b"\n")

    def flush(self) -> None:
        """Let readers see what was written."""
        self._file.flush()

    def commit(self) -> int:
        """Make every line durable; returns the length to remember."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """All complete lines; a last line that is still being written is left out."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]
    try:
        return [json.loads(line) for line in lines]
    except ValueError as error:
        raise RunError(f"{path} is damaged: {error}") from error
