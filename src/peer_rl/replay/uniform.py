"""Uniform replay with n-step returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from peer_rl.replay.batch import Array, Batch
from peer_rl.replay.ring import Ring


class UniformReplay:
    """Every stored transition is equally likely.

    A window of n steps ends early at the end of an episode and at the newest row. It then is a return of fewer
    steps, bootstrapped from the last state in it unless the episode *terminated* there: a truncated episode, and
    the ring's edge, bootstrap (law 5).
    """

    def __init__(
        self,
        capacity: int,
        observation: tuple[tuple[int, ...], str],
        action: tuple[tuple[int, ...], str],
        *,
        gamma: float,
        n_step: int,
        batch_size: int,
        device: torch.device,
        flat_returns: bool = False,
    ) -> None:
        self.ring = Ring(
            capacity,
            {
                "obs": observation,
                "action": action,
                "reward": ((), np.float32),
                "discount": ((), np.float32),
                "last": ((), np.bool_),
                "next_obs": observation,
            },
        )
        self.gamma = np.float32(gamma)
        self.n_step = n_step
        self.flat = self.gamma**n_step if flat_returns else None  # weight of every reward, see LearningConfig
        self.batch_size = batch_size
        self.device = device

    def __len__(self) -> int:
        return self.ring.total - self.ring.oldest

    def add(
        self, *, obs: Array, action: Any, reward: float, next_obs: Array, terminated: bool, truncated: bool
    ) -> None:
        """Store one step. ``discount`` is 0 only if the episode terminated; ``last`` marks its end either way."""
        self.ring.append(
            {
                "obs": obs,
                "action": action,
                "reward": reward,
                "discount": 0.0 if terminated else 1.0,
                "last": terminated or truncated,
                "next_obs": next_obs,
            }
        )

    def sample(self, rng: np.random.Generator) -> Batch:
        """A batch drawn uniformly, with replacement."""
        rows = rng.integers(self.ring.oldest, self.ring.total, self.batch_size)
        return self.gather(rows)

    def gather(self, rows: Array) -> Batch:
        """The n-step transitions that start at these rows."""
        columns, capacity = self.ring.columns, self.ring.capacity
        reward, discount, end = self._returns(rows)
        slots = rows % capacity
        return Batch.from_numpy(
            obs=columns["obs"].take(slots, 0),  # quicker than columns["obs"][slots]
            action=columns["action"].take(slots, 0),
            reward=reward,
            discount=discount,
            next_obs=columns["next_obs"].take(end % capacity, 0),
            device=self.device,
        )

    def _returns(self, rows: Array) -> tuple[Array, Array, Array]:
        """Return, discount and last row of each window: R = sum_k gamma^k r_k, gamma^n (1 - terminated)."""
        columns, capacity = self.ring.columns, self.ring.capacity
        slots = rows % capacity
        reward = columns["reward"][slots] * (1 if self.flat is None else self.flat)
        discount = self.gamma * columns["discount"][slots]
        end, going = rows, ~columns["last"][slots]
        for step in range(1, self.n_step):
            here = rows + step
            going = going & (here < self.ring.total)
            if not going.any():
                break
            slots = here % capacity
            weight = discount if self.flat is None else self.flat * (discount > 0)
            reward = np.where(going, reward + weight * columns["reward"][slots], reward)
            discount = np.where(going, discount * self.gamma * columns["discount"][slots], discount)
            end = np.where(going, here, end)
            going = going & ~columns["last"][slots]
        return reward, discount, end

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs beside the ring's rows."""
        return {"rows": self.ring.total}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Check that the rows restored are those that were saved."""
        if state["rows"] != self.ring.total:
            raise ValueError(f"{self.ring.total} replay rows were restored, but {state['rows']} were saved")
