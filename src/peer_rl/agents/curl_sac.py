"""CURL on SAC (Laskin et al. 2020), the paper's backbone on DMControl: the encoder also learns to recognise states.

The slow encoder of the keys is the target critics' own, convolutions and latent: there is no third network.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from peer_rl.agents import Stateful
from peer_rl.agents.checks import check_pixels
from peer_rl.agents.pixel_sac import Augment, PixelNetworks, PixelSAC, build_networks
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.networks.augment import centre_crop, random_crop
from peer_rl.networks.contrastive import bilinear_form, contrastive_loss
from peer_rl.networks.optimizer import Adam
from peer_rl.plugin import Regularizer
from peer_rl.rng import Stream
from peer_rl.settings.curl_sac import CURLSACConfig


class Contrastive(Stateful):
    """The contrastive loss on the critics' latent. The anchor is the critics' own crop, its positive another one."""

    parts = ("optimizer", "second", "bilinear")

    def __init__(
        self,
        settings: CURLSACConfig,
        networks: PixelNetworks,
        augment: Augment,
        *,
        weights: torch.Generator,
        device: torch.device,
    ) -> None:
        self.query, self.key, self.augment = networks.latent, networks.target_latent, augment
        self.bilinear = bilinear_form(settings.latent, weights, device)
        encoding, rate = list(self.query.parameters()), settings.contrastive_learning_rate
        self.optimizer = Adam([*encoding, self.bilinear], rate)
        # as published: the same gradient, a second step
        self.second = Adam(encoding, rate) if settings.step_encoder_twice else None

    def step(self, frames: Tensor, view: Tensor, rng: Stream) -> Tensor:
        """One step of encoder, latent and bilinear form; returns the loss."""
        positives = self.augment(frames, rng)
        queries = self.query(view)  # (B, latent)
        with torch.no_grad():
            keys = self.key(positives)  # (B, latent)
        loss = contrastive_loss(queries, keys, self.bilinear)
        self.optimizer.minimise(loss)
        if self.second is not None:
            self.second.descend([parameter.grad for parameter in self.second.parameters if parameter.grad is not None])
        return loss.detach()


def build(
    settings: CURLSACConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device
) -> PixelSAC:
    """SAC on random crops, with the contrastive loss."""
    cropped = _cropped(settings, spec)

    def augment(frames: Tensor, rng: Stream) -> Tensor:
        inside = frames[..., :-1, :-1].contiguous() if settings.omit_last_offset else frames
        return random_crop(inside, settings.crop, rng.torch)

    weights = rng.for_weights()
    networks = build_networks(settings, cropped, spec.action_size, weights=weights, device=device)
    return PixelSAC(
        settings,
        networks,
        actions=spec.action_size,
        regularizer=regularizer,
        device=device,
        augment=augment,
        preprocess=lambda frames: centre_crop(frames, settings.crop),
        auxiliary=Contrastive(settings, networks, augment, weights=weights, device=device),
    )


def _cropped(settings: CURLSACConfig, spec: EnvSpec) -> tuple[int, ...]:
    """The shape of a crop, if there is room for one."""
    channels, *sides = spec.observation_shape
    if settings.crop > min(sides) - settings.omit_last_offset:
        omitted = ", and --omit-last-offset leaves out their last row and column" * settings.omit_last_offset
        raise ConfigError(
            f"curl-sac crops frames to {settings.crop}x{settings.crop}, but they are {sides[0]}x{sides[1]}{omitted}; "
            "make --crop smaller"
        )
    cropped = (channels, settings.crop, settings.crop)
    check_pixels("curl-sac", settings.encoder, replace(spec, observation_shape=cropped))
    return cropped
