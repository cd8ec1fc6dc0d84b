"""A store and a sampler: what the loop adds transitions to and learns from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from peer_rl.replay.store import Array, Batch, Ring


class Store(Protocol):
    """Keeps transitions, numbered 0, 1, 2, ... as they are played."""

    ring: Ring

    @property
    def first(self) -> int:
        """Number of the oldest transition that may be drawn."""

    @property
    def stop(self) -> int:
        """Number of the transition to come; all from ``first`` on may be drawn."""

    def add(self, *, obs: Array, action: Any, reward: float, next_obs: Array, discount: float, last: bool) -> None:
        """Store one step."""

    def gather(self, transitions: Array, device: torch.device) -> Batch:
        """The n-step transitions of these numbers."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs besides the ring's rows."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``; the ring has its rows already."""


class Sampler(Protocol):
    """Chooses transitions by their numbers."""

    def draw(self, first: int, stop: int, count: int, rng: np.random.Generator) -> tuple[Array, Array | None]:
        """Numbers of ``count`` transitions from ``first`` to ``stop``, and importance weights if they need any."""

    def update(self, priorities: Tensor) -> None:
        """New priorities of the transitions of the last draw."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""


class UniformSampler:
    """Draws with replacement, and remembers nothing."""

    def draw(self, first: int, stop: int, count: int, rng: np.random.Generator) -> tuple[Array, Array | None]:
        """Numbers of ``count`` transitions from ``first`` to ``stop``; no weights."""
        return rng.integers(first, stop, count), None

    def update(self, priorities: Tensor) -> None:
        """An agent's priorities make no difference here."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing."""


class Replay:
    """Any store with any sampler."""

    def __init__(self, store: Store, sampler: Sampler, *, batch_size: int, device: torch.device) -> None:
        self.store, self.sampler = store, sampler
        self.batch_size, self.device = batch_size, device

    def __len__(self) -> int:
        return self.store.stop - self.store.first

    @property
    def ring(self) -> Ring:
        """The rows, for checkpoints."""
        return self.store.ring

    def add(self, *, obs: Array, action: Any, reward: float, next_obs: Array, discount: float, last: bool) -> None:
        """Store one step.

        ``discount`` is 0 if bootstrapping stops there (the episode terminated, or a life was lost), else 1; ``last``
        marks the end of the episode, terminated or truncated.
        """
        self.store.add(obs=obs, action=action, reward=reward, next_obs=next_obs, discount=discount, last=last)

    def sample(self, rng: np.random.Generator) -> Batch:
        """A batch to learn from."""
        transitions, weight = self.sampler.draw(self.store.first, self.store.stop, self.batch_size, rng)
        batch = self.gather(transitions)
        return batch if weight is None else replace(batch, weight=torch.from_numpy(weight).to(self.device))

    def update_priorities(self, priorities: Tensor) -> None:
        """New priorities, (B,) and before the exponent, of the batch that ``sample`` gave last."""
        self.sampler.update(priorities)

    def peek(self, rng: np.random.Generator) -> Batch:
        """A uniformly drawn batch for diagnostics, which changes no state of the sampler (law 2)."""
        transitions, _ = UniformSampler().draw(self.store.first, self.store.stop, self.batch_size, rng)
        return self.gather(transitions)

    def gather(self, transitions: Array) -> Batch:
        """The n-step transitions of these numbers."""
        return self.store.gather(transitions, self.device)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs besides the ring's rows."""
        return {**self.store.state_dict(), **self.sampler.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``; the ring has its rows already."""
        self.store.load_state_dict(state)
        self.sampler.load_state_dict(state)
