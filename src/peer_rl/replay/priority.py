"""Prioritised draws (Schaul et al. 2016, the proportional variant)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from peer_rl.replay.store import Array
from peer_rl.replay.sumtree import SumTree

_LEAST = 1e-8
"""Least priority: a transition of priority 0 would never be drawn again."""


class PrioritisedSampler:
    """P(i) = p_i^exponent / sum_k p_k^exponent, and weights (N P(i))^-b, over the batch's largest, to make up for it.

    A transition that is new gets the largest priority so far. b changes linearly from ``importance_start`` to
    ``importance_final`` over ``importance_steps`` draws. Priorities are kept out of the ring, whose rows never change
    once they are saved.
    """

    def __init__(
        self,
        capacity: int,
        *,
        exponent: float,
        importance_start: float,
        importance_steps: int,
        importance_final: float = 1.0,
    ) -> None:
        self.capacity = capacity
        self.exponent = exponent
        self.importance_start, self.importance_final = importance_start, importance_final
        self.importance_steps = importance_steps
        self._tree = SumTree(capacity)  # transition i has leaf i % capacity, p_i^exponent
        self._largest = 1.0  # leaf so far
        self._draws = 0
        self._first = self._stop = 0  # the transitions that have leaves
        self._drawn: Array = np.empty(0, np.int64)

    def draw(self, first: int, stop: int, count: int, rng: np.random.Generator) -> tuple[Array, Array | None]:
        """``count`` transitions from ``first`` to ``stop``, one from each equal share of the sum, and their weights."""
        self._follow(first, stop)
        shares = (np.arange(count) + rng.random(count)) / count
        self._drawn = slots = self._tree.find(shares * self._tree.total)
        leaves = self._tree.leaves[slots]
        weights = (leaves.min() / leaves) ** self.importance()  # N and the sum cancel out
        self._draws += 1
        return first + (slots - first) % self.capacity, weights.astype(np.float32)

    def importance(self) -> float:
        """The exponent b of the next draw's weights."""
        risen = min(1.0, (self._draws + 1) / self.importance_steps)
        return self.importance_start + (self.importance_final - self.importance_start) * risen

    def _follow(self, first: int, stop: int) -> None:
        """Follow the store: leaves of dropped transitions become 0, those of new ones the largest so far."""
        gone = np.arange(self._first, min(first, self._stop))
        new = np.arange(max(first, self._stop), stop)
        if len(gone) or len(new):
            # new ones last, for one may have the leaf of one that is gone
            values = np.repeat([0.0, self._largest], [len(gone), len(new)])
            self._tree.set(np.concatenate([gone, new]) % self.capacity, values)
        self._first, self._stop = first, stop

    def update(self, priorities: Tensor) -> None:
        """New priorities of the transitions of the last draw, before the exponent."""
        values = priorities.detach().cpu().double().numpy()
        if values.shape != self._drawn.shape:
            raise ValueError(f"{self._drawn.size} transitions were drawn, but priorities have shape {values.shape}")
        wrong = ~(np.isfinite(values) & (values >= 0))
        if wrong.any():
            raise ValueError(f"a transition's priority became {values[wrong][0]}")
        leaves = np.maximum(values, _LEAST) ** self.exponent
        self._largest = max(self._largest, float(leaves.max()))
        self._tree.set(self._drawn, leaves)

    def state_dict(self) -> dict[str, Any]:
        """Leaves and counters."""
        state = {
            "leaves": torch.from_numpy(self._tree.leaves.copy()),
            "largest": self._largest,
            "draws": self._draws,
            "first": self._first,
            "stop": self._stop,
        }
        return {"priorities": state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        saved = state["priorities"]
        if len(saved["leaves"]) != self.capacity:
            raise ValueError(f"{len(saved['leaves'])} priorities were saved for a replay of {self.capacity}")
        self._tree.rebuild(saved["leaves"].numpy())
        self._largest, self._draws = saved["largest"], saved["draws"]
        self._first, self._stop = saved["first"], saved["stop"]
