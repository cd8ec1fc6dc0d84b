"""Critics: an encoder that ends in phi, and a linear head on it (the paper's equation 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from peer_rl.networks.mlp import BiasInit, linear, mlp


class CriticOutput(NamedTuple):
    """What every critic returns. An ensemble has a leading axis: q (N, B), phi (N, B, D)."""

    q: Tensor
    """Values: (B,), or (B, actions) for a head with one output per action."""
    phi: Tensor
    """Input of the last layer: head(phi) equals logits for a distributional critic and q otherwise."""
    logits: Tensor | None = None
    """Outputs of a distributional head."""
    conv: Tensor | None = None
    """Flattened convolutions of a pixel encoder."""


class ActionValues(nn.Module):
    """Q(s, .) from a vector observation: one output per action, so phi depends on the state alone."""

    def __init__(
        self, inputs: int, hidden: Sequence[int], actions: int, rng: torch.Generator, bias: BiasInit = "uniform"
    ) -> None:
        super().__init__()
        self.trunk = mlp(inputs, hidden, rng, bias)
        self.head = linear(hidden[-1], actions, rng, bias)

    def forward(self, obs: Tensor) -> CriticOutput:
        """Values of every action."""
        phi = self.trunk(obs)  # (B, D)
        return CriticOutput(q=self.head(phi), phi=phi)  # (B, actions)
