"""SAC+AE (Yarats et al. 2021): SAC whose encoder also learns to reconstruct the frames it saw."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from peer_rl.agents import Stateful
from peer_rl.agents.pixel_sac import PixelNetworks, PixelSAC, build_networks
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.networks.decoder import ConvDecoder
from peer_rl.networks.optimizer import Adam
from peer_rl.plugin import Regularizer
from peer_rl.rng import Stream
from peer_rl.settings.sac_ae import SACAEConfig

BITS = 5


def dequantised(frames: Tensor, noise: Tensor) -> Tensor:
    """Frames in 5 bits plus ``noise`` in [0, 1) of one level, scaled to [-0.5, 0.5)."""
    bits = torch.bitwise_right_shift(frames, 8 - BITS)
    return bits.float().add_(noise).mul_(2.0**-BITS).sub_(0.5)


class Reconstruction(Stateful):
    """A decoder on the critics' latent; both learn from the same loss."""

    parts = ("decoder", "encoder_optimizer", "decoder_optimizer")

    def __init__(self, settings: SACAEConfig, networks: PixelNetworks, decoder: ConvDecoder) -> None:
        self.settings, self.latent, self.decoder = settings, networks.latent, decoder
        rate, decay = settings.reconstruction_learning_rate, settings.decoder_decay
        self.encoder_optimizer = Adam(self.latent.parameters(), rate)
        self.decoder_optimizer = Adam(decoder.parameters(), rate, weight_decay=decay)

    def loss(self, frames: Tensor, view: Tensor, noise: Tensor) -> Tensor:
        """Mean squared error of the frames, plus a small penalty on half the squared norm of the latent."""
        latent: Tensor = self.latent(view)  # (B, latent)
        error = F.mse_loss(self.decoder(latent), dequantised(frames, noise))
        return error + self.settings.latent_penalty * 0.5 * latent.square().sum(-1).mean()

    def step(self, frames: Tensor, view: Tensor, rng: Stream) -> Tensor:
        """One step of encoder and latent, one of the decoder. The view is the frames themselves, as floats."""
        loss = self.loss(frames, view, torch.rand(view.shape, generator=rng.torch, device=view.device))
        encoding, decoding = self.encoder_optimizer.parameters, self.decoder_optimizer.parameters
        gradients = torch.autograd.grad(loss, [*encoding, *decoding])
        self.encoder_optimizer.descend(gradients[: len(encoding)])
        self.decoder_optimizer.descend(gradients[len(encoding) :])
        return loss.detach()


def build(
    settings: SACAEConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device
) -> PixelSAC:
    """SAC with the reconstruction loss."""
    if settings.encoder.padding == "same":
        raise ConfigError('sac-ae mirrors convolutions without padding; take --encoder.padding "valid"')
    weights = rng.for_weights()
    shape, actions = spec.observation_shape, spec.action_size
    networks = build_networks(settings, shape, actions, weights=weights, device=device)
    decoder = ConvDecoder(shape, settings.latent, settings.encoder, settings.critic, weights).to(device)
    return PixelSAC(
        settings,
        networks,
        actions=actions,
        regularizer=regularizer,
        device=device,
        auxiliary=Reconstruction(settings, networks, decoder),
    )
