"""What a run leaves behind that law 3 covers: bytes that a killed run, once resumed, shares with an undisturbed one."""

from __future__ import annotations

from pathlib import Path

import torch

from peer_rl.training.checkpoint import Checkpoints, read_checkpoint
from peer_rl.training.rundir import LOGS
from peer_rl.training.trees import unpack


def weights(path: Path) -> bytes:
    """The newest checkpoint's agent."""
    return (newest(path) / "agent.safetensors").read_bytes()


def newest(path: Path) -> Path:
    """The newest checkpoint's folder."""
    return path / "checkpoint" / f"{Checkpoints(path / 'checkpoint').steps()[-1]:012d}"


def leavings(path: Path) -> dict[str, bytes]:
    """Logs, weights, the loop's state, and the newest rows of the replay."""
    logs = {name: (path / f"{name}.jsonl").read_bytes() for name in LOGS}
    last = newest(path)
    segments = read_checkpoint(last).segments  # cut at other places in a resumed run, so only their rows compare
    rows = [unpack((path / "checkpoint" / "replay" / segment["file"]).read_bytes()) for segment in segments]
    names = rows[0] if rows else ()
    replay = {name: torch.cat([part[name] for part in rows])[-150:].numpy().tobytes() for name in names}
    return {**logs, **replay, "agent": weights(path), "loop": (last / "loop.safetensors").read_bytes()}
