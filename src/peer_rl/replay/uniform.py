"""Every transition is equally likely."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from peer_rl.replay.batch import Array


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
