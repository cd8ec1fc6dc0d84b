"""Training metrics, summed on the device and read out once per window."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Window:
    """Means over the updates since the last readout; a delayed actor's metrics over the updates that gave them.

    An unfinished window is part of every checkpoint.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, int] = {}

    def add(self, metrics: dict[str, Tensor]) -> None:
        """Add one update's metrics; no value leaves the device."""
        for name, value in metrics.items():
            if name in self._sums:
                self._sums[name] += value
            else:
                self._sums[name] = value.clone()
            self._counts[name] = self._counts.get(name, 0) + 1

    def means(self) -> dict[str, float]:
        """Means so far by sorted name, in one readout."""
        if not self._sums:
            return {}
        names = sorted(self._sums)
        sums = torch.stack([self._sums[name] for name in names]).tolist()
        return {name: total / self._counts[name] for name, total in zip(names, sums, strict=True)}

    def clear(self) -> None:
        """Begin the next window."""
        self._sums, self._counts = {}, {}

    def state_dict(self) -> dict[str, Any]:
        """Sums and counts."""
        return {"sums": dict(self._sums), "counts": dict(self._counts)}

    def load_state_dict(self, state: dict[str, Any], device: torch.device) -> None:
        """The inverse of ``state_dict``."""
        self._sums = {name: value.to(device) for name, value in state["sums"].items()}
        self._counts = dict(state["counts"])
