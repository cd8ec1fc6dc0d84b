"""CURL on SAC (Laskin et al. 2020), the paper's backbone on DMControl: a state's other crop is told from the others'.

The slow encoder of the keys is the target critics' own, convolutions and latent: there is no third network.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peer_rl.agents.checks import check_pixels
from peer_rl.agents.pixel_sac import PixelSAC, build_sac
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.networks.augment import centre_crop, random_crop
from peer_rl.networks.optimizer import Adam
from peer_rl.plugin import Regularizer
from peer_rl.rng import Stream
from peer_rl.settings.curl_sac import CURLSACConfig


class Contrastive:
    """Picks the other view of each state out of the batch's."""

    def __init__(self, settings: CURLSACConfig, agent: PixelSAC, weights: torch.Generator) -> None:
        self.agent, self.crop_at_random = agent, agent.look
        self.bilinear = nn.Parameter(torch.rand(settings.latent, settings.latent, generator=weights).to(agent.device))
        critic, _ = agent.latent_critics()
        encoding = [*agent.encoder.parameters(), *critic.latent.parameters()]
        self.optimizer = Adam([*encoding, self.bilinear], settings.contrastive_learning_rate)
        # as published: the same gradient, a second step
        self.second = Adam(encoding, settings.contrastive_learning_rate) if settings.step_encoder_twice else None

    def loss(self, anchors: Tensor, positives: Tensor) -> Tensor:
        """Cross entropy of the logits z_i W k_j with the diagonal: row i's key is the other view of state i."""
        critic, target = self.agent.latent_critics()
        queries = critic.latent(self.agent.encoder(anchors))  # (B, latent)
        with torch.no_grad():
            keys = target.latent(self.agent.target_encoder(positives))  # (B, latent)
        logits = queries @ self.bilinear @ keys.T  # (B, B)
        logits = logits - logits.amax(1, keepdim=True).detach()
        return F.cross_entropy(logits, torch.arange(len(logits), device=logits.device))

    def step(self, frames: Tensor, view: Tensor, rng: Stream) -> Tensor:
        """The critics' own crop is the anchor; its positive is a third one."""
        loss = self.loss(view, self.crop_at_random(frames, rng))
        self.optimizer.minimise(loss)
        if self.second is not None:
            self.second.descend([parameter.grad for parameter in self.second.parameters if parameter.grad is not None])
        return loss.detach()

    def state_dict(self) -> dict[str, Any]:
        """The bilinear form and the optimizers."""
        parts = {name: part.state_dict() for name, part in self._optimizers().items()}
        return {**parts, "bilinear": self.bilinear.detach()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        for name, part in self._optimizers().items():
            part.load_state_dict(state[name])
        self.bilinear.data.copy_(state["bilinear"])

    def _optimizers(self) -> dict[str, Adam]:
        return {"optimizer": self.optimizer} | ({} if self.second is None else {"second": self.second})


def build(
    settings: CURLSACConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device
) -> PixelSAC:
    """A SAC that sees random crops, and whose encoder also learns to tell states apart."""
    check_pixels("curl-sac", settings.encoder, spec)
    channels, *sides = spec.observation_shape
    if settings.crop > min(sides) - settings.omit_last_offset:
        omitted = ", and --omit-last-offset leaves out their last row and column" * settings.omit_last_offset
        raise ConfigError(
            f"curl-sac crops frames to {settings.crop}x{settings.crop}, but they are {sides[0]}x{sides[1]}{omitted}; "
            "make --crop smaller"
        )
    cropped = (channels, settings.crop, settings.crop)
    check_pixels("curl-sac", settings.encoder, replace(spec, observation_shape=cropped))

    def look(frames: Tensor, rng: Stream) -> Tensor:
        inside = frames[..., :-1, :-1].contiguous() if settings.omit_last_offset else frames
        return random_crop(inside, settings.crop, rng.torch)

    weights = torch.Generator().manual_seed(int(rng.numpy.integers(2**63)))
    sac, encoder = build_sac(
        settings, cropped, spec.action_size, regularizer=regularizer, weights=weights, device=device
    )
    agent = PixelSAC(settings, sac, encoder, look=look, glance=lambda frames: centre_crop(frames, settings.crop))
    agent.auxiliary = Contrastive(settings, agent, weights)
    return agent
