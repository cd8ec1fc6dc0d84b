"""Policies without exploration as one module of tensors: what TorchScript and ONNX can hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from peer_rl.networks.mlp import CriticOutput


class Chain(nn.Module):
    """Modules and functions, each called with what the one before returned."""

    def __init__(self, *steps: Callable[..., Any]) -> None:
        super().__init__()
        self.steps = steps
        self.learned = nn.ModuleList(step for step in steps if isinstance(step, nn.Module))

    def forward(self, x: Tensor) -> Tensor:
        """The last step's output."""
        for step in self.steps:
            x = step(x)
        return x


def squashed_mean(output: tuple[Tensor, Tensor]) -> Tensor:
    """Tanh of a Gaussian policy's mean, (B, A)."""
    return torch.tanh(output[0])


def greedy(output: CriticOutput) -> Tensor:
    """The action of the highest value, (B,)."""
    return output.q.argmax(-1)
