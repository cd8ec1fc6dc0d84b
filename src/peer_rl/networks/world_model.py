"""A world model: an encoder, the RSSM, and heads that reconstruct observations and predict rewards and ends.

One window's losses are computed here, for PlaNet, Dreamer and Dreamer-V2 alike; their settings differ.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peer_rl.errors import ConfigError
from peer_rl.networks.encoders import ConvEncoder, as_floats
from peer_rl.networks.mlp import ACTIVATIONS, linear
from peer_rl.networks.rssm import GLOROT, RSSM, State
from peer_rl.replay.sequences import Sequences
from peer_rl.settings.world_model import WorldModelConfig


class ModelLoss(NamedTuple):
    """The loss of a batch of windows, its parts for the log, and what the model made of them."""

    loss: Tensor
    metrics: dict[str, Tensor]
    posteriors: State
    """(L + 1, B, ...)"""
    valid: Tensor
    """(L + 1, B) 1 where there is an observation from which an episode continues"""


class WorldModel(nn.Module):
    """Observations are vectors or frames; actions vectors, or integers as one-hot vectors."""

    def __init__(
        self, observation: tuple[int, ...], actions: int, settings: WorldModelConfig, rng: torch.Generator
    ) -> None:
        super().__init__()
        self.settings, self.actions, self.sees_frames = settings, actions, len(observation) == 3
        units, layers, activation = settings.units, settings.vector_layers, settings.rssm.activation
        if self.sees_frames:
            convolutions = ConvEncoder(observation, settings.encoder, rng, settings.convolution_activation)
            self.encoder: nn.Module = convolutions
            encoded = convolutions.features
        else:
            self.encoder = nn.Sequential(*_hidden(observation[0], units, layers, rng, activation))
            encoded = units if layers else observation[0]
        self.rssm = RSSM(encoded, actions, settings.rssm, rng)
        features = self.rssm.features
        self.decoder: nn.Module = (
            FrameDecoder(features, observation, encoded, settings, rng)
            if self.sees_frames
            else head(features, units, layers, observation[0], rng, activation)
        )
        shape = (features, units, settings.reward_layers, 1, rng, activation)
        self.reward_head = head(*shape)
        self.end_head = head(*shape) if settings.predict_end else None

    def see(self, obs: Tensor, rng: torch.Generator) -> Tensor:
        """Observations as the model sees them, (*rows, ...): vectors as they are, frames in [-0.5, 0.5]."""
        if not self.sees_frames:
            return obs
        bits = self.settings.image_bits
        if bits == 8:
            centred: Tensor = as_floats(obs) - 0.5
            return centred
        levels = obs.div(2 ** (8 - bits), rounding_mode="floor").float()
        noise = torch.rand(levels.shape, generator=rng, device=levels.device)
        noisy: Tensor = (levels + noise) / 2**bits - 0.5
        return noisy

    def reward(self, features: Tensor) -> Tensor:
        """The reward of entering a state, (*rows,)."""
        found: Tensor = self.reward_head(features).squeeze(-1)
        return found

    def continues(self, features: Tensor) -> Tensor:
        """The probability that the episode continues after a state, (*rows,)."""
        if self.end_head is None:
            return torch.ones(features.shape[:-1], device=features.device)
        logits: Tensor = self.end_head(features).squeeze(-1)
        return torch.sigmoid(logits)

    def one_hot(self, action: Tensor) -> Tensor:
        """Integer actions as one-hot vectors; vectors as they are."""
        return F.one_hot(action, self.actions).float() if action.dtype == torch.int64 else action

    def loss(self, batch: Sequences, rng: torch.Generator) -> ModelLoss:
        """-log p(o_t | h_t, s_t) - log p(r_t | h_t, s_t) + KL(q || p), the mean over the windows' observations."""
        settings, steps = self.settings, len(batch.mask) + 1
        target = self.see(batch.obs.flatten(0, 1), rng)
        encoded = self.encoder(target).unflatten(0, (steps, -1))
        led_here = torch.cat([batch.previous_action.unsqueeze(0), batch.action])  # the action before each observation
        first = torch.cat([batch.first.unsqueeze(0), torch.zeros_like(batch.mask)])
        posteriors, priors = self.rssm.observe(encoded, self.one_hot(led_here), first, rng)
        features = posteriors.features
        seen = torch.cat([torch.ones_like(batch.mask[:1]), batch.mask])  # (L + 1, B)

        errors = (self.decoder(features.flatten(0, 1)) - target).square().flatten(1).sum(-1)
        observation = _mean(0.5 * errors.view(seen.shape), seen)
        known = torch.cat([batch.first.unsqueeze(0), batch.mask])  # an episode begins with a reward of 0
        rewards = torch.cat([torch.zeros_like(batch.reward[:1]), batch.reward])
        rewards = rewards.tanh() if settings.tanh_rewards else rewards
        reward = _mean(0.5 * (self.reward(features) - rewards).square(), known)
        alive = torch.cat([torch.ones_like(batch.mask[:1]), (batch.discount > 0).float()])
        kl_loss, kl = self._divergence(posteriors.statistics, priors.statistics, seen)
        metrics = {"observation_loss": observation, "reward_loss": reward, "kl_loss": kl_loss, "kl": kl}
        loss = observation + settings.reward_weight * reward + settings.kl_weight * kl_loss
        if self.end_head is not None:
            logits = self.end_head(features).squeeze(-1)
            metrics["end_loss"] = _mean(F.binary_cross_entropy_with_logits(logits, alive, reduction="none"), known)
            loss = loss + settings.end_weight * metrics["end_loss"]
        return ModelLoss(loss, {name: one.detach() for name, one in metrics.items()}, posteriors, seen * alive)

    def _divergence(self, posterior: Tensor, prior: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        """The KL less the free nats, whose gradient prior and posterior share, and the whole mean KL."""
        share, divergence = self.settings.kl_balance, self.rssm.latent.divergence
        if share == 0.5:
            whole = divergence(posterior, prior)
            return self._beyond_free(whole, seen), _mean(whole, seen)
        to_prior, to_posterior = divergence(posterior.detach(), prior), divergence(posterior, prior.detach())
        loss = share * self._beyond_free(to_prior, seen) + (1 - share) * self._beyond_free(to_posterior, seen)
        return loss, _mean(to_prior, seen)

    def _beyond_free(self, divergence: Tensor, seen: Tensor) -> Tensor:
        free = self.settings.free_nats
        if self.settings.free_nats_per_step:
            return _mean((divergence - free).clamp(min=0), seen)
        return _mean(divergence, seen).clamp(min=free)


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    """The mean over the observations that there are."""
    return (values * weights).sum() / weights.sum().clamp(min=1)


def head(
    inputs: int, units: int, layers: int, outputs: int, rng: torch.Generator, activation: str = "elu"
) -> nn.Sequential:
    """Hidden layers with an activation after each, and a linear one."""
    hidden = _hidden(inputs, units, layers, rng, activation)
    return nn.Sequential(*hidden, linear(units if layers else inputs, outputs, GLOROT, rng))


def _hidden(inputs: int, units: int, layers: int, rng: torch.Generator, activation: str) -> list[nn.Module]:
    sizes = pairwise([inputs, *[units] * layers])
    return [one for size in sizes for one in (linear(*size, GLOROT, rng), ACTIVATIONS[activation]())]


class FrameDecoder(nn.Module):
    """A linear layer as wide as the encoder's output, then transposed convolutions with stride 2; centre-cropped."""

    def __init__(
        self,
        inputs: int,
        observation: tuple[int, ...],
        encoded: int,
        settings: WorldModelConfig,
        rng: torch.Generator,
    ) -> None:
        super().__init__()
        self.sides = observation[1:]
        self.activation = ACTIVATIONS[settings.convolution_activation]()
        largest = max(self.sides)
        self.base = next(base for base in range(1, largest + 2) if _grown(base, settings.decoder_kernels) >= largest)
        if _grown(self.base, settings.decoder_kernels) > 2 * largest:
            raise ConfigError(
                f"frames of {self.sides[0]}x{self.sides[1]} are too small for the decoder, which gives at least "
                f"{_grown(1, settings.decoder_kernels)}; make --decoder-kernels and --decoder-channels fewer"
            )
        channels = (max(1, encoded // self.base**2), *settings.decoder_channels, observation[0])
        self.linear = linear(inputs, channels[0] * self.base**2, GLOROT, rng)
        self.layers = nn.ModuleList()
        for before, after, kernel in zip(channels[:-1], channels[1:], settings.decoder_kernels, strict=True):
            layer = nn.ConvTranspose2d(before, after, kernel, 2, device="meta").to_empty(device="cpu")
            nn.init.xavier_uniform_(layer.weight, generator=rng)
            nn.init.zeros_(layer.get_parameter("bias"))
            self.layers.append(layer)

    def forward(self, features: Tensor) -> Tensor:
        """(rows, D) -> (rows, C, H, W)."""
        x = self.linear(features).view(len(features), -1, self.base, self.base)
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        frames: Tensor = self.layers[-1](x)
        top, left = ((frames.shape[-2 + axis] - side) // 2 for axis, side in enumerate(self.sides))
        return frames[..., top : top + self.sides[0], left : left + self.sides[1]]


def _grown(side: int, kernels: tuple[int, ...]) -> int:
    for kernel in kernels:
        side = 2 * (side - 1) + kernel
    return side
