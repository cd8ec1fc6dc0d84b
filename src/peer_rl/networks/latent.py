"""Actors and critics on convolutions that they share.

One ConvEncoder belongs to an agent. Its critics read encoder(s) and train it; its actor reads encoder(s).detach(), so
that the actor's loss moves no convolution. What each makes of the code, a latent and an MLP, is its own.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from peer_rl.networks.gaussian import GaussianActor
from peer_rl.networks.mlp import CriticOutput, DeterministicActor, EnsembleCritic, EnsembleLinear, Heads, Shape, linear
from peer_rl.settings.networks import ActorConfig, CriticConfig


class Latent(nn.Module):
    """The code, flattened convolutions, in a few numbers: linear, LayerNorm, and tanh or nothing."""

    def __init__(self, inputs: int, units: int, shape: Shape, rng: torch.Generator, *, tanh: bool) -> None:
        super().__init__()
        self.linear = linear(inputs, units, shape, rng)
        self.norm = nn.LayerNorm(units)
        self.tanh = tanh

    def forward(self, code: Tensor) -> Tensor:
        """(B, D) -> (B, units)."""
        latent: Tensor = self.norm(self.linear(code))
        return torch.tanh(latent) if self.tanh else latent


class LatentCritic(nn.Module):
    """N critics on one latent of their own; phi is the last hidden layer of each, after its ReLU if it has one."""

    def __init__(
        self, latent: Latent, actions: int, shape: CriticConfig, rng: torch.Generator, *, linear_phi: bool = False
    ) -> None:
        super().__init__()
        self.latent = latent
        inputs = latent.norm.normalized_shape[0] + actions
        self.heads = EnsembleCritic(2, inputs, shape, rng, linear_phi=linear_phi)

    @property
    def head(self) -> EnsembleLinear:
        """The last layer, which reads phi."""
        return self.heads.head

    def forward(self, code: Tensor, action: Tensor, *, heads: Heads = None) -> CriticOutput:
        """Values of the code's state and the action, q (N, B) and phi (N, B, D)."""
        output: CriticOutput = self.heads(self.latent(code), action, heads=heads)
        return output


class LatentGaussian(nn.Module):
    """SAC's policy on a latent of its own."""

    def __init__(self, latent: Latent, policy: GaussianActor) -> None:
        super().__init__()
        self.latent, self.policy = latent, policy

    def forward(self, code: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log standard deviation before the tanh, (B, A) each."""
        mean, log_std = self.policy(self.latent(code))
        return mean, log_std

    def sample(self, code: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """tanh(mean + std * noise), (B, A), and its log-probability, (B,)."""
        return self.policy.sample(self.latent(code), noise)


class LatentPolicy(nn.Module):
    """A deterministic policy on a latent of its own."""

    def __init__(self, latent: Latent, actions: int, shape: ActorConfig, rng: torch.Generator) -> None:
        super().__init__()
        self.latent = latent
        self.policy = DeterministicActor(latent.norm.normalized_shape[0], actions, shape, rng)

    def forward(self, code: Tensor) -> Tensor:
        """The action, (B, A)."""
        action: Tensor = self.policy(self.latent(code))
        return action
