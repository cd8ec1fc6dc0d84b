"""The replay that a run's settings ask for, and the memory it takes."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.replay.frames import FrameStore, frame_columns
from peer_rl.replay.memory import available_memory
from peer_rl.replay.priority import PrioritisedSampler
from peer_rl.replay.replay import Replay, Sampler, Store, UniformSampler
from peer_rl.replay.sequences import FrameSequences, VectorSequences
from peer_rl.replay.store import Columns, Ring, VectorStore, Windows, row_bytes, vector_columns
from peer_rl.replay.sumtree import SumTree
from peer_rl.settings.replay import PrioritisedConfig, SequenceConfig
from peer_rl.settings.run import LearningConfig

_LARGE = 100_000_000
_INDEX_BYTES = 8
"""What a store of frames keeps in addition to each row."""


@dataclass(frozen=True)
class ReplaySize:
    """What a replay grows to: ``rows`` of ``what``."""

    rows: int
    what: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.rows} {self.what}, {_amount(self.bytes)}"

    @property
    def large(self) -> bool:
        """Whether it is worth reporting before the run fills it."""
        return self.bytes >= _LARGE


def replay_size(learning: LearningConfig, spec: EnvSpec, steps: int | None = None) -> ReplaySize:
    """The replay's size when it is full, or after ``steps`` agent steps if those do not fill it."""
    frames = _keeps_frames(learning, spec)
    rows = learning.buffer_size
    if steps is not None:
        rows = min(rows, 2 * steps if frames else steps)  # an episode of one step has two frames
    each = row_bytes(_columns(spec, frames=frames)) + (_INDEX_BYTES if frames else 0)
    what = f"{'frames' if frames else 'transitions with observations'} of {'x'.join(map(str, _frame_shape(spec)))}"
    tree = SumTree.bytes_for(learning.buffer_size) if _prioritised(learning) else 0
    return ReplaySize(rows, what, rows * each + tree)


def make_replay(learning: LearningConfig, spec: EnvSpec, device: torch.device, *, steps: int | None = None) -> Replay:
    """A replay, if the machine can hold it: frames where observations are stacks, priorities where they have weight."""
    check_memory(replay_size(learning, spec, steps), available_memory())
    store = _make_store(learning, spec)
    return Replay(store, _make_sampler(learning), batch_size=learning.batch_size, device=device)


def _make_store(learning: LearningConfig, spec: EnvSpec) -> Store:
    frames = _keeps_frames(learning, spec)
    ring = Ring(learning.buffer_size, _columns(spec, frames=frames))
    flat = learning.flat_returns
    windows = Windows(ring, gamma=learning.gamma, n_step=learning.n_step, flat_returns=flat)
    if isinstance(learning, SequenceConfig):
        length = learning.sequence_length
        if frames:
            return FrameSequences(windows, stack=spec.stack, length=length)
        return VectorSequences(windows, length=length)
    return FrameStore(windows, stack=spec.stack) if frames else VectorStore(windows)


def _keeps_frames(learning: LearningConfig, spec: EnvSpec) -> bool:
    """Whether each frame is kept once. Sequences share frames even where an observation is a single one."""
    return spec.stack > 1 or (isinstance(learning, SequenceConfig) and spec.is_image)


def check_memory(size: ReplaySize, available: int | None) -> None:
    """Refuse a replay that the machine cannot hold, before hours are spent on filling it."""
    if available is not None and size.bytes > available:
        raise ConfigError(
            f"the replay of {size.rows} {size.what} needs {_amount(size.bytes)}, but this machine has "
            f"{_amount(available)} available; choose a smaller --buffer-size"
        )


def _columns(spec: EnvSpec, *, frames: bool) -> Columns:
    columns = frame_columns if frames else vector_columns
    return columns((_frame_shape(spec), spec.observation_dtype), spec.action_column)


def _frame_shape(spec: EnvSpec) -> tuple[int, ...]:
    """Of what a row holds: one frame of a stack, or the whole observation."""
    shape = spec.observation_shape
    return (shape[0] // spec.stack, *shape[1:]) if spec.stack > 1 else shape


def _make_sampler(learning: LearningConfig) -> Sampler:
    prioritised = _prioritised(learning)
    if prioritised is None:
        return UniformSampler()
    rounds = (prioritised.importance_steps - learning.start_steps) // learning.update_every
    return PrioritisedSampler(
        learning.buffer_size,
        exponent=prioritised.priority_exponent,
        importance_start=prioritised.importance_start,
        importance_steps=max(1, rounds * learning.updates),
        importance_final=prioritised.importance_final,
    )


def _prioritised(learning: LearningConfig) -> PrioritisedConfig | None:
    """The settings, if they give priorities a weight."""
    return learning if isinstance(learning, PrioritisedConfig) and learning.priority_exponent > 0 else None


def _amount(size: int) -> str:
    return f"{size / 1e9:.2f} GB" if size >= _LARGE else f"{size / 1e6:.1f} MB"
