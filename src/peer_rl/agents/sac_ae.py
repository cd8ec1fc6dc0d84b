"""SAC+AE (Yarats et al. 2021): the critics' encoder also learns to reconstruct the frames it saw."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from peer_rl.agents.checks import check_pixels
from peer_rl.agents.pixel_sac import PixelSAC, build_sac
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.networks.decoder import ConvDecoder
from peer_rl.networks.optimizer import Adam
from peer_rl.plugin import Regularizer
from peer_rl.rng import Stream
from peer_rl.settings.sac_ae import SACAEConfig

BITS = 5


def dequantised(frames: Tensor, noise: Tensor) -> Tensor:
    """Frames in 5 bits, each filled up with its share of ``noise`` in [0, 1), moved to [-0.5, 0.5)."""
    bits = torch.bitwise_right_shift(frames, 8 - BITS)
    return bits.float().add_(noise).mul_(2.0**-BITS).sub_(0.5)


class Reconstruction:
    """A decoder on the critics' latent, which both learn from the same loss."""

    def __init__(self, settings: SACAEConfig, agent: PixelSAC, decoder: ConvDecoder) -> None:
        self.settings, self.agent, self.decoder = settings, agent, decoder
        critic, _ = agent.latent_critics()
        encoding = [*agent.encoder.parameters(), *critic.latent.parameters()]
        rate = settings.reconstruction_learning_rate
        self.encoder_optimizer = Adam(encoding, rate)
        self.decoder_optimizer = Adam(decoder.parameters(), rate, weight_decay=settings.decoder_decay)

    def loss(self, frames: Tensor, view: Tensor, noise: Tensor) -> Tensor:
        """Mean squared error of the frames, and half the squared norm of the latent, lightly."""
        critic, _ = self.agent.latent_critics()
        latent: Tensor = critic.latent(self.agent.encoder(view))  # (B, latent)
        error = F.mse_loss(self.decoder(latent), dequantised(frames, noise))
        return error + self.settings.latent_penalty * 0.5 * latent.square().sum(-1).mean()

    def step(self, frames: Tensor, view: Tensor, rng: Stream) -> Tensor:
        """One step of encoder and latent, one of the decoder. A view is the frames themselves, as floats."""
        loss = self.loss(frames, view, torch.rand(view.shape, generator=rng.torch, device=view.device))
        encoding, decoding = self.encoder_optimizer.parameters, self.decoder_optimizer.parameters
        gradients = torch.autograd.grad(loss, [*encoding, *decoding])
        self.encoder_optimizer.descend(gradients[: len(encoding)])
        self.decoder_optimizer.descend(gradients[len(encoding) :])
        return loss.detach()

    def state_dict(self) -> dict[str, Any]:
        """The decoder and both optimizers."""
        return {name: getattr(self, name).state_dict() for name in self._names}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        for name in self._names:
            getattr(self, name).load_state_dict(state[name])

    _names = ("decoder", "encoder_optimizer", "decoder_optimizer")


def build(
    settings: SACAEConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device
) -> PixelSAC:
    """A SAC whose encoder also learns to reconstruct."""
    check_pixels("sac-ae", settings.encoder, spec)
    if settings.encoder.padding == "same":
        raise ConfigError('sac-ae mirrors convolutions without padding; take --encoder.padding "valid"')
    weights = torch.Generator().manual_seed(int(rng.numpy.integers(2**63)))
    shape = spec.observation_shape
    sac, encoder = build_sac(settings, shape, spec.action_size, regularizer=regularizer, weights=weights, device=device)
    agent = PixelSAC(settings, sac, encoder, look=lambda frames, rng: frames)
    decoder = ConvDecoder(shape, settings.latent, settings.encoder, settings.critic, weights).to(device)
    agent.auxiliary = Reconstruction(settings, agent, decoder)
    return agent
