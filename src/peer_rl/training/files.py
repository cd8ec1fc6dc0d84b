"""Files that survive a crash and never lead outside the run: atomic writes, and JSON lines with a running checksum.

A run directory may come from an untrusted source: a symbolic link, pipe or device in it is refused before it is opened.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from peer_rl.errors import RunError

LARGEST_FILE = 64 << 20
"""Bytes of the largest config, manifest, status or checkpoint index that is read."""
_CHUNK = 1 << 20
_HUGE = re.compile(rb"(?<![\d.\w])-?\d{19,}(?![\d.eE])")
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """A descriptor of a regular file. Anything else under that name is refused; nothing is truncated."""
    try:
        handle = os.open(path, flags | _SAFE, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR):
            raise _not_regular(path) from error
        raise
    found = os.fstat(handle)
    writes = flags & (os.O_WRONLY | os.O_RDWR)
    if not stat.S_ISREG(found.st_mode) or (writes and found.st_nlink > 1):
        os.close(handle)
        raise _not_regular(path)
    return handle


def _not_regular(path: Path) -> RunError:
    return RunError(
        f"{path} is a link, a folder, a pipe or a device; a run directory holds plain files only: remove it"
    )


def check_folder(path: Path) -> None:
    """Refuse a folder of a run that is a link or no folder at all; one that does not exist is fine."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(mode):
        raise RunError(f"{path} is not a folder of its own; a run directory holds no links: remove it")


def read_bytes(path: Path, *, largest: int | None = LARGEST_FILE) -> bytes:
    """A regular file's content."""
    with os.fdopen(open_regular(path), "rb") as file:
        if largest is not None and os.fstat(file.fileno()).st_size > largest:
            raise RunError(f"{path} is larger than the {largest >> 20} MB that such a file may have")
        return file.read()


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


def _write(path: Path, content: bytes, *, durable: bool) -> None:
    with os.fdopen(open_regular(path, os.O_WRONLY | os.O_CREAT), "wb") as file:
        file.truncate()
        file.write(content)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def write_durably(path: Path, content: bytes) -> None:
    """Write and fsync; the caller publishes the file with a rename."""
    _write(path, content, durable=True)


def replace_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Replace a whole file; a reader sees the old one or the new one, never half of it."""
    draft = path.with_name(f".{path.name}.new")
    _write(draft, content, durable=durable)
    draft.replace(path)
    if durable:
        sync_directory(path.parent)


@dataclass(frozen=True)
class Committed:
    """A log's length, and the SHA-256 of its content up to there; empty if an older version wrote no checksum."""

    length: int = 0
    sha256: str = ""

    def check(self, path: Path) -> Any:
        """Refuse a log that is shorter than this, or whose lines are not those that were written; its running hash."""
        size = path.stat().st_size if path.exists() else 0
        if size < self.length:
            raise RunError(
                f"{path} has {size} bytes, but the run wrote {self.length}: lines are missing; "
                "put the file back, or delete the run directory to start again"
            )
        digest = _digest(path, self.length)
        if self.sha256 and digest.hexdigest() != self.sha256:
            raise RunError(
                f"{path} was changed after the run wrote it: its first {self.length} bytes do not match their "
                "checksum; put the original back, or delete the run directory to start again"
            )
        return digest


def _digest(path: Path, length: int) -> Any:
    digest = sha256()
    if length:
        with os.fdopen(open_regular(path), "rb") as file:
            while length > 0 and (chunk := file.read(min(_CHUNK, length))):
                digest.update(chunk)
                length -= len(chunk)
    return digest


class JsonLines:
    """An append-only file of JSON objects, one a line."""

    def __init__(self, path: Path, committed: int, digest: Any) -> None:
        """Open ``path`` and drop whatever follows the ``committed`` bytes, whose running hash is ``digest``."""
        handle = open_regular(path, os.O_RDWR | os.O_CREAT)  # not O_APPEND: tell() would not be the length
        self._file = os.fdopen(handle, "r+b")
        self._digest = digest
        self._file.truncate(committed)
        self._file.seek(committed)

    def write(self, row: dict[str, Any]) -> None:
        """Append one object."""
        line = json.dumps(clean(row), allow_nan=False).encode() + b"\n"
        self._digest.update(line)
        self._file.write(line)

    def flush(self) -> None:
        """Let readers see what was written."""
        self._file.flush()

    def commit(self) -> Committed:
        """Make every line durable; returns what a checkpoint remembers of them."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return Committed(self._file.tell(), self._digest.hexdigest())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def iterate_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Every complete line, one at a time; a last line that is still being written is left out."""
    if not path.exists():
        return
    with os.fdopen(open_regular(path), "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield _row(path, line)


def _row(path: Path, line: bytes) -> dict[str, Any]:
    try:
        row = read_object(line)
    except ValueError as error:
        raise RunError(f"{path} is damaged: {error}") from error
    return row


def read_object(content: bytes) -> dict[str, Any]:
    """A JSON object; ValueError for anything else, for one nested without end, and for numbers no float can hold."""
    if _HUGE.search(content):
        raise ValueError("it holds a whole number of more than 18 digits")
    try:
        found = json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("it holds no JSON object")
    return found


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """All complete lines."""
    return list(iterate_json_lines(path))
