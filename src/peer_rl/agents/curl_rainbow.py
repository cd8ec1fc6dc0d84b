"""CURL on Rainbow (Laskin et al. 2020): two views of a state are each other's nearest among those of the batch."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peer_rl.agents.checks import check_pixels
from peer_rl.agents.rainbow import Rainbow, check_head
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.networks.augment import random_crop_and_pad
from peer_rl.networks.distributional import DistributionalValues
from peer_rl.networks.encoders import ConvEncoder
from peer_rl.networks.optimizer import SoftUpdate, target_of
from peer_rl.plugin import Regularizer
from peer_rl.rng import Stream
from peer_rl.settings.curl_rainbow import CURLRainbowConfig


class Projection(nn.Module):
    """The code that is compared: linear, LayerNorm, ReLU, linear, LayerNorm; no norm has weights of its own.

    Weights begin uniform in [0, 1), as in the authors' code: the norms undo their scale.
    """

    def __init__(self, inputs: int, settings: CURLRainbowConfig, rng: torch.Generator) -> None:
        super().__init__()
        sizes = (inputs, settings.contrastive_hidden, settings.contrastive_units)
        self.weights = nn.ParameterList(torch.rand(after, before, generator=rng) for before, after in pairwise(sizes))
        self.biases = nn.ParameterList(torch.zeros(units) for units in sizes[1:])

    def forward(self, x: Tensor) -> Tensor:
        """(B, D) -> (B, units)."""
        hidden, code = zip(self.weights, self.biases, strict=True)
        x = F.relu(F.layer_norm(F.linear(x, *hidden), hidden[1].shape))
        return F.layer_norm(F.linear(x, *code), code[1].shape)


class Contrastive:
    """Picks each state's other view out of the batch. The keys come from slow copies of encoder and projection."""

    def __init__(self, settings: CURLRainbowConfig, encoder: ConvEncoder, rng: torch.Generator) -> None:
        device = next(encoder.parameters()).device
        self.settings = settings
        self.projection = Projection(encoder.features, settings, rng).to(device)
        units = settings.contrastive_units
        self.bilinear = nn.Parameter(torch.rand(units, units, generator=rng).to(device))
        self.slow_encoder, self.slow_projection = target_of(encoder), target_of(self.projection)
        pairs = ((encoder, self.slow_encoder), (self.projection, self.slow_projection))
        self._follow = [SoftUpdate(quick, slow, settings.momentum) for quick, slow in pairs]

    def parameters(self) -> list[Tensor]:
        """Projection and bilinear form; the encoder is the critic's."""
        return [*self.projection.parameters(), self.bilinear]

    def loss(self, critic: DistributionalValues, obs: Tensor, rng: Stream) -> Tensor:
        """Cross entropy of the logits q_i W k_j with the diagonal: row i's key is the other view of state i."""
        anchors, positives = (random_crop_and_pad(obs, self.settings.crop_margin, rng.torch) for _ in range(2))
        assert critic.encoder is not None
        queries = self.projection(critic.encoder(anchors))  # (B, units)
        with torch.no_grad():
            keys = self.slow_projection(self.slow_encoder(positives))  # (B, units)
        logits = queries @ self.bilinear @ keys.T  # (B, B)
        logits = (logits - logits.amax(1, keepdim=True).detach()) * self.settings.sharpness
        return self.settings.contrastive * F.cross_entropy(logits, torch.arange(len(obs), device=obs.device))

    def after_update(self) -> None:
        """The slow copies follow by a small step."""
        for follow in self._follow:
            follow()

    def state_dict(self) -> dict[str, Any]:
        """Projection, bilinear form and both slow copies."""
        parts = {name: getattr(self, name).state_dict() for name in ("projection", "slow_encoder", "slow_projection")}
        return {**parts, "bilinear": self.bilinear.detach()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        for name in ("projection", "slow_encoder", "slow_projection"):
            getattr(self, name).load_state_dict(state[name])
        self.bilinear.data.copy_(state["bilinear"])


def build(
    settings: CURLRainbowConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device
) -> Rainbow:
    """A Rainbow whose encoder also learns to tell states apart."""
    check_pixels("curl-rainbow", settings.encoder, spec)
    check_head(settings, spec, regularizer)
    height, width = spec.observation_shape[1:]
    if height != width or settings.crop_margin >= height:
        raise ConfigError(
            f"curl-rainbow crops square frames by crop_margin, {settings.crop_margin}, but frames are {height}x{width}"
        )
    weights = torch.Generator().manual_seed(int(rng.numpy.integers(2**63)))
    critic = DistributionalValues(spec.observation_shape, spec.actions, settings, weights).to(device)
    assert critic.encoder is not None
    contrastive = Contrastive(settings, critic.encoder, weights)
    return Rainbow(settings, critic, regularizer=regularizer, device=device, auxiliary=contrastive)
