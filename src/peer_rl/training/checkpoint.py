"""Checkpoints: written to a draft folder, fsynced, checksummed, published with a rename; the last two are kept.

``checkpoint/STEP/`` holds one safetensors file per component, ``checkpoint.json`` and ``SHA256SUMS`` (in the form
that ``sha256sum -c`` reads). ``checkpoint/replay/`` holds append-only segments of the replay, shared by checkpoints.
By hand, because torch.save pickles and no library writes a replay in segments.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from peer_rl.errors import CheckpointError, RunError
from peer_rl.replay.store import Ring
from peer_rl.training.files import Committed, check_folder, read_bytes, sync_directory, write_durably
from peer_rl.training.trees import Tree, pack, unpack

SCHEMA = 1
KEPT = 2
_SMALL_SEGMENT = 1 << 20
_SUMS = "SHA256SUMS"
_META = "checkpoint.json"
_COMPONENTS = ("agent", "loop", "replay")
_CONTENT = {*(f"{name}.safetensors" for name in _COMPONENTS), _META, _SUMS}
_STEP, _SEGMENT = re.compile(r"[0-9]{1,18}"), re.compile(r"[0-9]+-[0-9]+\.safetensors")


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint, read into memory."""

    step: int
    components: dict[str, Tree]
    logs: dict[str, Committed]
    segments: list[dict[str, Any]]
    folder: Path

    def restore_replay(self, ring: Ring | None) -> None:
        """Read the segments, oldest first, each once: checked, then put into ``ring`` if there is one."""
        folder = self.folder.parent / "replay"
        for segment in self.segments:
            content = _read(folder / segment["file"], segment["sha256"], self.folder)
            if ring is None:
                continue
            try:
                rows = {name: tensor.numpy() for name, tensor in unpack(content).items()}
                ring.restore(segment["start"], rows)
            except (KeyError, ValueError, TypeError, AttributeError) as error:
                reason = " ".join(str(error).split())
                raise CheckpointError(f"{self.folder} does not fit this version of the replay: {reason}") from error


class Checkpoints:
    """The checkpoints of one run. Only the process that holds the run's lock may save."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._segments: list[dict[str, Any]] = []

    def steps(self) -> list[int]:
        """Steps of the published checkpoints, oldest first."""
        check_folder(self.folder)
        return _steps(self.folder) if self.folder.exists() else []

    def load(self, ring: Ring | None = None) -> Checkpoint | None:
        """The newest checkpoint, every byte of it checked, its replay rows put into ``ring``; None if there is none."""
        steps = self.steps()
        if not steps:
            return None
        checkpoint = read_checkpoint(self._path(steps[-1]))
        checkpoint.restore_replay(ring)
        self._segments = list(checkpoint.segments)
        return checkpoint

    def save(self, step: int, components: dict[str, Tree], ring: Ring | None, logs: dict[str, Committed]) -> None:
        """Publish a checkpoint, then drop what no kept one needs; ``ring`` is None for an agent without a replay."""
        check_folder(self.folder)
        if not self.folder.exists():
            self.folder.mkdir()
            sync_directory(self.folder.parent)
        if ring is not None:
            self._add_segment(ring)
        lengths = {name: log.length for name, log in logs.items()}
        sums = {name: log.sha256 for name, log in logs.items()}
        meta = {"schema": SCHEMA, "step": step, "lengths": lengths, "log_sums": sums, "segments": self._segments}
        files = {f"{name}.safetensors": pack(components[name]) for name in _COMPONENTS}
        files[_META] = json.dumps(meta, indent=1).encode()
        files[_SUMS] = "".join(f"{sha256(data).hexdigest()}  {name}\n" for name, data in files.items()).encode()
        unpublished = self.folder / f".{step:012d}.new"
        shutil.rmtree(unpublished, ignore_errors=True)
        unpublished.mkdir()
        try:
            for name, data in files.items():
                write_durably(unpublished / name, data)
            sync_directory(unpublished)
        except OSError:
            shutil.rmtree(unpublished, ignore_errors=True)
            raise
        unpublished.rename(self._path(step))
        sync_directory(self.folder)
        self.clean()

    def _add_segment(self, ring: Ring) -> None:
        """Write the rows added since the last segment; forget segments that the ring has overwritten.

        A last segment that is small is written again with the new rows, so that a run with many checkpoints does not
        end up with as many files; the checkpoint before this one keeps its own until it is dropped.
        """
        kept = list(self._segments)
        saved = kept[-1]["stop"] if kept else 0
        if saved < ring.total:
            if kept and ring.row_bytes * (saved - kept[-1]["start"]) < _SMALL_SEGMENT:
                saved = kept.pop()["start"]
            start = max(saved, ring.oldest)
            folder = self.folder / "replay"
            check_folder(folder)
            folder.mkdir(exist_ok=True)
            name = f"{start:012d}-{ring.total:012d}.safetensors"
            content = pack(dict(ring.rows(start, ring.total)))
            write_durably(folder / name, content)
            sync_directory(folder)
            digest = sha256(content).hexdigest()
            kept.append({"file": name, "start": start, "stop": ring.total, "sha256": digest})
        self._segments = [segment for segment in kept if segment["stop"] > ring.oldest]

    def clean(self) -> None:
        """Delete checkpoints beyond the last two, unpublished leftovers, and segments that none of them names."""
        for step in self.steps()[:-KEPT]:
            _delete(self._path(step))
        for leftover in self.folder.glob(".*.new"):
            _delete(leftover)
        needed = {segment["file"] for segment in self._segments}
        for step in self.steps():
            try:
                meta = json.loads(read_bytes(self._path(step) / _META))
                needed |= {segment["file"] for segment in meta["segments"]}
            except (OSError, ValueError, KeyError, TypeError, RecursionError, RunError):
                return  # an older checkpoint that cannot be read may need any segment: keep them all
        check_folder(self.folder / "replay")
        for segment in (self.folder / "replay").glob("*.safetensors"):
            if _SEGMENT.fullmatch(segment.name) and segment.name not in needed:
                segment.unlink()

    def _path(self, step: int) -> Path:
        return self.folder / f"{step:012d}"


def _steps(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in folder.iterdir() if _STEP.fullmatch(path.name))


def _delete(folder: Path) -> None:
    """Delete a checkpoint; one that holds anything else, or is a link, stays."""
    if folder.is_dir() and not folder.is_symlink() and {path.name for path in folder.iterdir()} <= _CONTENT:
        shutil.rmtree(folder, ignore_errors=True)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Verify and read one published checkpoint (its replay segments are read by ``restore_replay``)."""
    check_folder(folder)
    sums = _read_sums(folder)
    present = {path.name for path in folder.iterdir()}
    if set(sums) | {_SUMS} != _CONTENT or present != _CONTENT:
        odd = ", ".join(sorted((present ^ _CONTENT) | ((set(sums) | {_SUMS}) ^ _CONTENT)))
        raise _damaged(folder, f"it should hold exactly {len(_CONTENT)} files; look at: {odd}")
    contents = {name: _read(folder / name, digest, folder) for name, digest in sums.items()}
    try:
        meta = json.loads(contents[_META])
        if meta["schema"] != SCHEMA:
            raise CheckpointError(f"{folder} has schema {meta['schema']}, this version of peer-rl reads {SCHEMA}")
        components = {name: unpack(contents[f"{name}.safetensors"]) for name in _COMPONENTS}
        log_sums = meta.get("log_sums", {})  # peer-rl 0.1 wrote none
        logs = {str(name): Committed(int(n), str(log_sums.get(name, ""))) for name, n in meta["lengths"].items()}
        segments = [{**one, "file": Path(one["file"]).name} for one in meta["segments"]]
        return Checkpoint(int(meta["step"]), components, logs, segments, folder)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise _damaged(folder, f"{_META} or a component is not what peer-rl writes ({error})") from error


def _read_sums(folder: Path) -> dict[str, str]:
    try:
        *lines, end = (
            read_bytes(folder / _SUMS).decode().split("\n")
        )  # splitlines() would take a damaged newline for one
        if end:
            raise ValueError("the last line has no end")
        return {name: digest for digest, name in (line.split("  ") for line in lines)}
    except (OSError, ValueError, RunError) as error:
        raise _damaged(folder, f"{_SUMS} cannot be read") from error


def _read(path: Path, digest: str, checkpoint: Path) -> bytes:
    """A file's bytes, if they are those that were saved."""
    try:
        content = read_bytes(path, largest=None)
    except (OSError, RunError) as error:
        raise _damaged(checkpoint, f"{path.name} cannot be read") from error
    if content[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"PK"):
        raise _damaged(checkpoint, f"{path.name} holds a pickle, which is never loaded because it could run code")
    if sha256(content).hexdigest() != digest:
        raise _damaged(checkpoint, f"{path.name} does not match its checksum")
    return content


def _damaged(folder: Path, reason: str) -> CheckpointError:
    older = [step for step in _steps(folder.parent) if f"{step:012d}" < folder.name]
    back = f"step {max(older)}" if older else "the beginning"
    return CheckpointError(
        f"the checkpoint {folder} is refused: {reason}; nothing was changed. Delete that folder to continue from {back}"
    )
