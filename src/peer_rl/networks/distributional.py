"""Distributions of returns: the network behind Rainbow, and the projection of its target."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peer_rl.networks.encoders import ConvEncoder
from peer_rl.networks.mlp import CriticOutput, linear
from peer_rl.networks.noisy import Noise, NoisyLinear
from peer_rl.settings.networks import CriticConfig
from peer_rl.settings.rainbow import RainbowConfig

Noises = tuple[Noise, ...] | None


class DistributionalValues(nn.Module):
    """For each action the probabilities of ``atoms`` returns, from two noisy dueling streams.

    phi holds the hidden layers of both streams, so ``head(phi)`` equals ``logits``. The settings may leave out the
    noise, and the stream of the state's value.
    """

    support: Tensor

    def __init__(
        self, observation: tuple[int, ...], actions: int, settings: RainbowConfig, rng: torch.Generator
    ) -> None:
        super().__init__()
        self.encoder = ConvEncoder(observation, settings.encoder, rng) if len(observation) == 3 else None
        inputs = self.encoder.features if self.encoder else observation[0]
        units, atoms, self.noisy = settings.hidden, settings.atoms, settings.noisy

        def layer(inputs: int, outputs: int) -> nn.Module:
            return (
                NoisyLinear(inputs, outputs, settings.noise, rng) if self.noisy else QuietLinear(inputs, outputs, rng)
            )

        self.shape = (actions, atoms)
        self.hidden = nn.ModuleList(layer(inputs, units) for _ in range(2 if settings.dueling else 1))
        self.value = layer(units, atoms) if settings.dueling else None
        self.advantage = layer(units, actions * atoms)
        support = torch.linspace(settings.lowest_return, settings.highest_return, atoms)
        self.register_buffer("support", support, persistent=False)

    def draw(self, rng: torch.Generator) -> Noises:
        """Fresh noise for every noisy layer, the hidden ones first; None without any."""
        layers = [layer for layer in (*self.hidden, self.value, self.advantage) if isinstance(layer, NoisyLinear)]
        return tuple(layer.draw(rng) for layer in layers) or None

    def forward(self, obs: Tensor, noises: Noises = None) -> CriticOutput:
        """Values, phi (B, 2 D), logits (B, actions, atoms) and flattened convolutions."""
        conv = self.encoder(obs) if self.encoder else None
        x = obs if conv is None else conv
        of_hidden = noises[: len(self.hidden)] if noises else [None] * len(self.hidden)
        phi = torch.cat([F.relu(layer(x, noise)) for layer, noise in zip(self.hidden, of_hidden, strict=True)], -1)
        logits = self.head(phi, noises)
        q = logits.softmax(-1) @ self.support  # (B, actions)
        return CriticOutput(q=q, phi=phi, logits=logits, conv=conv)

    def head(self, phi: Tensor, noises: Noises = None) -> Tensor:
        """V + A - mean A, atom by atom; A alone without the stream of the value."""
        if self.value is None:
            alone: Tensor = self.advantage(phi, noises[1] if noises else None).unflatten(-1, self.shape)
            return alone
        of_value, of_advantage = noises[2:] if noises else (None, None)
        for_value, for_advantage = phi.chunk(2, -1)
        value = self.value(for_value, of_value).unsqueeze(-2)  # (B, 1, atoms)
        advantage = self.advantage(for_advantage, of_advantage).unflatten(-1, self.shape)  # (B, actions, atoms)
        logits: Tensor = value + advantage - advantage.mean(-2, keepdim=True)
        return logits


class QuietLinear(nn.Module):
    """A linear layer that is called as a noisy one is; Xavier weights, zero biases, as in Dopamine."""

    def __init__(self, inputs: int, outputs: int, rng: torch.Generator) -> None:
        super().__init__()
        self.linear = linear(inputs, outputs, CriticConfig(weight_init="xavier", bias_init="zero"), rng)

    def forward(self, x: Tensor, noise: Noise | None) -> Tensor:
        """(B, inputs) -> (B, outputs)."""
        del noise
        outputs: Tensor = self.linear(x)
        return outputs


def logits_of(output: CriticOutput, action: Tensor) -> Tensor:
    """The head's outputs for each row's action, (B, atoms)."""
    assert output.logits is not None
    return output.logits[torch.arange(len(action), device=action.device), action]


def project(probabilities: Tensor, support: Tensor, reward: Tensor, discount: Tensor) -> Tensor:
    """The distribution of R + discount * Z on the support's atoms (Bellemare et al. 2017, equation 7), (B, atoms).

    Each moved atom gives its probability to its two neighbours in proportion to their nearness.
    """
    low, high = support[0], support[-1]
    gap = (high - low) / (len(support) - 1)
    moved = (reward.unsqueeze(-1) + discount.unsqueeze(-1) * support).clamp(low, high)  # (B, atoms)
    near = 1 - (moved.unsqueeze(-2) - support.unsqueeze(-1)).abs() / gap  # (B, to, from)
    return torch.bmm(near.clamp_(min=0), probabilities.unsqueeze(-1)).squeeze(-1)
