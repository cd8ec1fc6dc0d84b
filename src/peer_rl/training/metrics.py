"""Training metrics, summed on the device and read out once per window."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Window:
    """Means over the updates since the last readout. An unfinished window is part of every checkpoint."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._count = 0

    def add(self, metrics: dict[str, Tensor]) -> None:
        """Add one update's metrics; no value leaves the device."""
        if self._count == 0:
            self._sums = {name: value.clone() for name, value in metrics.items()}
        else:
            for name, value in metrics.items():
                self._sums[name] += value
        self._count += 1

    def means(self) -> dict[str, float]:
        """Means so far by sorted name, in one readout."""
        if self._count == 0:
            return {}
        names = sorted(self._sums)
        values = (torch.stack([self._sums[name] for name in names]) / self._count).tolist()
        return dict(zip(names, values, strict=True))

    def clear(self) -> None:
        """Begin the next window."""
        self._sums, self._count = {}, 0

    def state_dict(self) -> dict[str, Any]:
        """Sums and count."""
        return {"sums": dict(self._sums), "count": self._count}

    def load_state_dict(self, state: dict[str, Any], device: torch.device) -> None:
        """The inverse of ``state_dict``."""
        self._sums = {name: value.to(device) for name, value in state["sums"].items()}
        self._count = state["count"]
