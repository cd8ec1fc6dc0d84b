"""Batches of noise, as a run's replay would give them: to time updates without playing first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from peer_rl.envs.spec import EnvSpec
from peer_rl.replay.make import make_replay
from peer_rl.replay.sequences import Sequences
from peer_rl.replay.store import Batch
from peer_rl.settings.replay import SequenceConfig
from peer_rl.settings.run import AnyRunConfig


def random_transitions(spec: EnvSpec, rows: int, device: torch.device) -> Batch:
    """Transitions of noise; s and s' share no frame, as the replay gives them with returns of several steps."""
    rng, shape = np.random.default_rng(0), (2, rows, *spec.observation_shape)
    seen = rng.integers(256, size=shape, dtype=np.uint8) if spec.is_image else rng.normal(size=shape)
    obs, next_obs = seen.astype(spec.observation_dtype)
    chosen = rng.integers(spec.actions, size=rows) if spec.actions else rng.uniform(-1, 1, (rows, spec.action_size))
    columns: dict[str, Any] = {
        "action": chosen.astype(spec.action_column[1]),
        "reward": rng.uniform(0, 1, rows).astype(np.float32),
        "discount": np.full(rows, 0.99, np.float32),
    }
    return Batch.from_numpy(obs=obs, next_obs=next_obs, device=device, **columns)


def random_sequences(spec: EnvSpec, learning: SequenceConfig, device: torch.device) -> Sequences:
    """Whole windows of noise."""
    rng, shape = np.random.default_rng(0), spec.observation_shape
    rows = learning.sequence_length + learning.batch_size
    small = replace(learning, buffer_size=max(rows + spec.stack, learning.batch_size))
    replay = make_replay(small, spec, device)
    frame = shape[0] // spec.stack if spec.is_image else shape[0]
    obs = np.zeros(shape, spec.observation_dtype)
    for _ in range(rows):
        newest = rng.integers(1, 256, (frame, *shape[1:])) if spec.is_image else rng.normal(size=shape)
        following = np.concatenate([obs, newest.astype(obs.dtype)])[-shape[0] :]
        action = rng.uniform(-1, 1, spec.action_size).astype(np.float32)
        replay.add(obs=obs, action=action, reward=rng.uniform(), next_obs=following, discount=1.0, last=False)
        obs = following
    first = replay.store.first
    found: Sequences = replay.gather(np.arange(first, first + learning.batch_size))  # type: ignore[assignment]
    return found


def random_batch(spec: EnvSpec, config: AnyRunConfig, device: torch.device) -> Batch:
    """What the run's replay gives: transitions of noise, or windows of them."""
    if isinstance(config.learning, SequenceConfig):
        return random_sequences(spec, config.learning, device)
    return random_transitions(spec, config.learning.batch_size, device)
