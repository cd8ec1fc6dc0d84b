"""SAC's policy: a diagonal Gaussian through tanh."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peer_rl.networks.mlp import linear, mlp
from peer_rl.settings.networks import ActorConfig


class GaussianActor(nn.Module):
    """pi(. | s) = tanh of a diagonal Gaussian (SAC, appendix C)."""

    def __init__(
        self,
        inputs: int,
        actions: int,
        shape: ActorConfig,
        rng: torch.Generator,
        *,
        log_std: tuple[float, float],
        log_std_by: Literal["clip", "tanh"],
    ) -> None:
        super().__init__()
        self.trunk = mlp(inputs, shape, rng)
        self.head = linear(shape.hidden[-1], 2 * actions, shape, rng)
        self.log_std, self.log_std_by = log_std, log_std_by

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log standard deviation before the tanh, (B, A) each."""
        mean, log_std = self.head(self.trunk(obs)).chunk(2, -1)
        low, high = self.log_std
        if self.log_std_by == "tanh":
            return mean, low + (high - low) * (torch.tanh(log_std) + 1) / 2
        return mean, log_std.clamp(low, high)

    def sample(self, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """tanh(mean + std * noise), (B, A), and its log-probability, (B,)."""
        mean, log_std = self(obs)
        before = mean + log_std.exp() * noise
        gaussian = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
        # log(1 - tanh(u)^2) written so that it loses nothing where tanh saturates
        squashed = 2 * (math.log(2) - before - F.softplus(-2 * before))
        return torch.tanh(before), (gaussian - squashed).sum(-1)
