"""CURL on Rainbow (Laskin et al. 2020), the paper's backbone on Atari: the encoder also learns to recognise states."""

from __future__ import annotations

import torch
from torch import Tensor

from peer_rl.agents import Stateful
from peer_rl.agents.rainbow import Rainbow
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.networks.augment import random_crop_and_pad
from peer_rl.networks.contrastive import Projection, bilinear_form, contrastive_loss
from peer_rl.networks.distributional import DistributionalValues
from peer_rl.networks.encoders import ConvEncoder
from peer_rl.networks.optimizer import SoftUpdate, target_of
from peer_rl.plugin import Regularizer
from peer_rl.rng import Stream
from peer_rl.settings.curl_rainbow import CURLRainbowConfig


class Contrastive(Stateful):
    """The contrastive loss on the critic's encoder. The keys come from slow copies of encoder and projection."""

    parts = ("projection", "slow_encoder", "slow_projection", "bilinear")

    def __init__(self, settings: CURLRainbowConfig, encoder: ConvEncoder, rng: torch.Generator) -> None:
        device = next(encoder.parameters()).device
        self.settings, self.encoder = settings, encoder
        hidden, units = settings.contrastive_hidden, settings.contrastive_units
        self.projection = Projection(encoder.features, hidden, units, rng).to(device)
        self.bilinear = bilinear_form(units, rng, device)
        self.slow_encoder, self.slow_projection = target_of(encoder), target_of(self.projection)
        pairs = ((encoder, self.slow_encoder), (self.projection, self.slow_projection))
        self._follow = [SoftUpdate(online, slow, settings.momentum) for online, slow in pairs]

    def parameters(self) -> list[Tensor]:
        """Projection and bilinear form; the encoder is the critic's."""
        return [*self.projection.parameters(), self.bilinear]

    def loss(self, obs: Tensor, rng: Stream) -> Tensor:
        """The loss of two random views of each state, times its weight."""
        anchors, positives = (random_crop_and_pad(obs, self.settings.crop_margin, rng.torch) for _ in range(2))
        queries = self.projection(self.encoder(anchors))  # (B, units)
        with torch.no_grad():
            keys = self.slow_projection(self.slow_encoder(positives))  # (B, units)
        return self.settings.contrastive * contrastive_loss(queries, keys, self.bilinear, self.settings.sharpness)

    def after_update(self) -> None:
        """The slow copies follow by a small step."""
        for follow in self._follow:
            follow()


def build(
    settings: CURLRainbowConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device
) -> Rainbow:
    """A Rainbow with the contrastive loss."""
    height, width = spec.observation_shape[1:]
    if height != width or settings.crop_margin >= height:
        raise ConfigError(
            f"curl-rainbow crops square frames by crop_margin, {settings.crop_margin}, but frames are {height}x{width}"
        )
    weights = rng.for_weights()
    critic = DistributionalValues(spec.observation_shape, spec.actions, settings, weights).to(device)
    assert critic.encoder is not None
    contrastive = Contrastive(settings, critic.encoder, weights)
    return Rainbow(settings, critic, regularizer=regularizer, device=device, auxiliary=contrastive)
