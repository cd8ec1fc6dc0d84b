"""A batch of transitions, as every agent's update receives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Batch:
    """Transitions (s, a, R, s'), n steps apart."""

    obs: Tensor
    """(B, *observation)"""
    action: Tensor
    """(B,) for discrete actions, (B, A) for continuous ones"""
    reward: Tensor
    """(B,) the n-step return: sum of gamma^k r_k"""
    discount: Tensor
    """(B,) gamma^n, or 0 where the episode terminated: what multiplies the value of next_obs"""
    next_obs: Tensor
    """(B, *observation)"""
    weight: Tensor | None = None
    """(B,) importance weights of a prioritised draw, the largest is 1; None for a uniform one"""

    @classmethod
    def from_numpy(cls, *, device: torch.device, **columns: Array) -> Batch:
        """Columns on ``device``, without a copy on the CPU."""
        return cls(**to_tensors(columns, device))


def to_tensors(columns: dict[str, Array], device: torch.device) -> dict[str, Tensor]:
    """Arrays as tensors on ``device``, without a copy on the CPU."""
    return {name: torch.from_numpy(array).to(device, non_blocking=True) for name, array in columns.items()}
