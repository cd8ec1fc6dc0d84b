"""Policies on a world model's features. A draw is differentiable in the policy's weights; noise is passed in."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peer_rl.networks.world_model import head

_SCALE = 5.0
_EDGE = 1 - 1e-6
_SQRT_2PI = math.sqrt(2 * math.pi)


class Policy(Protocol):
    """What imagination asks of a policy."""

    def noise(self, rows: int, rng: torch.Generator) -> Tensor:
        """What a draw for each row needs."""

    def draw(self, features: Tensor, noise: Tensor) -> Tensor:
        """An action for each row."""


class SquashedPolicy(nn.Module):
    """Dreamer's: tanh of a Gaussian with mean 5 tanh(m / 5) and a standard deviation that begins at 5."""

    def __init__(self, inputs: int, actions: int, units: int, layers: int, rng: torch.Generator) -> None:
        super().__init__()
        self.actions = actions
        self.layers = head(inputs, units, layers, 2 * actions, rng)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation before the tanh, (*rows, A) each."""
        mean, std = self.layers(features).chunk(2, -1)
        return _SCALE * torch.tanh(mean / _SCALE), F.softplus(std + math.log(math.expm1(_SCALE))) + 1e-4

    def noise(self, rows: int, rng: torch.Generator) -> Tensor:
        """What a draw for each row needs."""
        return torch.randn(rows, self.actions, generator=rng, device=rng.device)

    def draw(self, features: Tensor, noise: Tensor) -> Tensor:
        """An action for each row, (*rows, A)."""
        mean, std = self(features)
        return torch.tanh(mean + std * noise)

    def mode(self, features: Tensor) -> Tensor:
        """The mean's tanh: without noise, unlike the authors' best of 100 draws."""
        return torch.tanh(self(features)[0])


class TruncatedPolicy(nn.Module):
    """Dreamer-V2's: a Gaussian cut off at -1 and 1, its mean a tanh."""

    def __init__(
        self, inputs: int, actions: int, units: int, layers: int, least_std: float, rng: torch.Generator
    ) -> None:
        super().__init__()
        self.actions, self.least_std = actions, least_std
        self.layers = head(inputs, units, layers, 2 * actions, rng)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation before the cut, (*rows, A) each."""
        mean, std = self.layers(features).chunk(2, -1)
        return torch.tanh(mean), 2 * torch.sigmoid(std / 2) + self.least_std

    def noise(self, rows: int, rng: torch.Generator) -> Tensor:
        """A uniform number for each unit of an action."""
        return torch.rand(rows, self.actions, generator=rng, device=rng.device)

    def draw(self, features: Tensor, noise: Tensor) -> Tensor:
        """The inverse of the distribution function at the noise."""
        mean, std = self(features)
        low, high = _cdf((-1 - mean) / std), _cdf((1 - mean) / std)
        inside = (low + noise * (high - low)).clamp(1e-6, _EDGE)
        action: Tensor = (mean + std * torch.special.ndtri(inside)).clamp(-_EDGE, _EDGE)
        return action

    def mode(self, features: Tensor) -> Tensor:
        """The mean before the cut, which is the most likely action."""
        mean: Tensor = self(features)[0]
        return mean

    def log_prob(self, features: Tensor, action: Tensor) -> Tensor:
        """The logarithm of an action's density or probability, (*rows,)."""
        mean, std = self(features)
        mass = _cdf((1 - mean) / std) - _cdf((-1 - mean) / std)
        logs: Tensor = -0.5 * ((action - mean) / std).square() - (std * _SQRT_2PI * mass).log()
        return logs.sum(-1)

    def entropy(self, features: Tensor) -> Tensor:
        """The distribution's entropy, (*rows,)."""
        mean, std = self(features)
        low, high = (-1 - mean) / std, (1 - mean) / std
        mass = _cdf(high) - _cdf(low)
        skew = (low * _pdf(low) - high * _pdf(high)) / (2 * mass)
        parts: Tensor = (std * mass * _SQRT_2PI).log() + 0.5 + skew
        return parts.sum(-1)


class DiscretePolicy(nn.Module):
    """One-hot actions; a draw's gradient is that of its probabilities."""

    def __init__(self, inputs: int, actions: int, units: int, layers: int, rng: torch.Generator) -> None:
        super().__init__()
        self.actions = actions
        self.layers = head(inputs, units, layers, actions, rng)

    def forward(self, features: Tensor) -> Tensor:
        """Log-probabilities, (*rows, A)."""
        logits: Tensor = self.layers(features)
        return logits.log_softmax(-1)

    def noise(self, rows: int, rng: torch.Generator) -> Tensor:
        """A uniform number for each row."""
        return torch.rand(rows, 1, generator=rng, device=rng.device)

    def draw(self, features: Tensor, noise: Tensor) -> Tensor:
        """The action whose cumulated probability first exceeds the noise."""
        shares: Tensor = self(features).exp()
        index = (shares.detach().cumsum(-1) <= noise).sum(-1).clamp(max=self.actions - 1)
        return F.one_hot(index, self.actions).to(shares.dtype) + shares - shares.detach()

    def mode(self, features: Tensor) -> Tensor:
        """The most likely action."""
        log_shares = self(features)
        return F.one_hot(log_shares.argmax(-1), self.actions).to(log_shares.dtype)

    def log_prob(self, features: Tensor, action: Tensor) -> Tensor:
        """The logarithm of an action's density or probability, (*rows,)."""
        found: Tensor = (self(features) * action).sum(-1)
        return found

    def entropy(self, features: Tensor) -> Tensor:
        """The distribution's entropy, (*rows,)."""
        log_shares: Tensor = self(features)
        return -(log_shares.exp() * log_shares).sum(-1)


def _cdf(x: Tensor) -> Tensor:
    shares: Tensor = torch.special.ndtr(x)
    return shares


def _pdf(x: Tensor) -> Tensor:
    return (-0.5 * x.square()).exp() / _SQRT_2PI
