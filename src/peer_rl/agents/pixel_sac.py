"""SAC on frames: what curl-sac, drq-sac and sac-ae have in common.

One encoder reads frames. The critics' loss trains it; the actor reads its code without a gradient. Each code is
computed once an update: the actor learns from the code of s that the critics learned from, and at s' reads the online
encoder's while the target critics read the target encoder's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor

from peer_rl.agents import TD, Array, Update
from peer_rl.agents.sac import SAC
from peer_rl.networks.encoders import ConvEncoder, as_floats
from peer_rl.networks.latent import Latent, LatentCritic, LatentGaussian
from peer_rl.networks.mlp import GaussianActor
from peer_rl.networks.optimizer import SoftUpdate, target_of
from peer_rl.plugin import Features, Regularizer
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings.pixel_sac import PixelSACConfig

Look = Callable[[Tensor, Stream], Tensor]
"""Frames (B, C, H, W) as an update sees them: one view after the other, (views * B, C, h, w)."""
Glance = Callable[[Tensor], Tensor]
"""Frames as acting sees them."""


class Auxiliary(Protocol):
    """A further loss on the encoder and the critics' latent, with weights and optimizers of its own."""

    def step(self, frames: Tensor, view: Tensor, rng: Stream) -> Tensor:
        """Learn from the batch's s in uint8, and from the view of it that the critics saw, in floats; the loss."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Its weights and optimizers."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        ...


class PixelSAC:
    """A SAC behind an encoder. With several views of each state, their targets are averaged and their losses added."""

    def __init__(
        self,
        settings: PixelSACConfig,
        sac: SAC,
        encoder: ConvEncoder,
        *,
        look: Look,
        glance: Glance = lambda frames: frames,
        views: int = 1,
    ) -> None:
        self.settings, self.sac, self.regularizer, self.device = settings, sac, sac.regularizer, sac.device
        self.encoder, self.target_encoder = encoder, target_of(encoder)
        self.look, self.glance, self.views = look, glance, views
        self.auxiliary: Auxiliary | None = None
        critic, target = self.latent_critics()
        self.update_targets = [
            SoftUpdate(encoder, self.target_encoder, settings.encoder_tau),
            SoftUpdate(critic.latent, target.latent, settings.encoder_tau),
            SoftUpdate(critic.heads, target.heads, settings.tau),
        ]

    def latent_critics(self) -> tuple[LatentCritic, LatentCritic]:
        """The critics and their targets."""
        critic, target = self.sac.critic, self.sac.target_critic
        assert isinstance(critic, LatentCritic)
        assert isinstance(target, LatentCritic)
        return critic, target

    @torch.no_grad()
    def act(self, obs: Array, *, first: Array, explore: bool, rng: Stream) -> Array:
        """A draw from pi(. | s) if exploring, else tanh of its mean."""
        del first
        return self.sac.choose(self._code(obs), explore=explore, rng=rng)

    @torch.no_grad()
    def value(self, obs: Array) -> Tensor:
        """The lower critic's value of tanh of the policy's mean; without entropy."""
        return self.sac.worth(self._code(obs))

    def _code(self, obs: Array) -> Tensor:
        code: Tensor = self.encoder(self.glance(torch.from_numpy(obs).to(self.device)))
        return code

    def temporal_difference(self, batch: Batch, rng: Stream) -> TD:
        """The TD loss of all views and heads, and the features of each beside those of the same target's."""
        return self._evaluate(batch, self.look(batch.obs, rng), self.look(batch.next_obs, rng), rng)[0]

    def _evaluate(self, batch: Batch, obs: Tensor, next_obs: Tensor, rng: Stream) -> tuple[TD, Tensor]:
        """The code of s beside it, with its gradient."""
        code = self.encoder(obs)  # (views * B, D)
        next_frames = as_floats(next_obs)
        with torch.no_grad():
            next_code, target_code = self.encoder(next_frames), self.target_encoder(next_frames)
        rows = replace(
            batch,
            obs=code,
            next_obs=next_code,
            action=batch.action.repeat(self.views, 1),
            reward=batch.reward.repeat(self.views),
            discount=batch.discount.repeat(self.views),
        )
        noise = self.sac.noise(rows.action.shape, rng)  # each view of s' has an a' of its own
        with torch.no_grad():
            bootstraps, phi_next, next_action = self.sac.bootstrap(rows, target_code, noise)
            bootstrap = bootstraps.view(self.views, -1).mean(0).repeat(self.views)  # one y for all views of a state
        mean_loss, online = self.sac.td_loss(rows, bootstrap)
        again = "phi_next_online" in self.regularizer.needs
        features = Features(
            self._by_view(online.phi),
            self._by_view(phi_next),
            phi_next_online=(
                self._by_view(self.sac.critic(self.encoder(next_frames), next_action).phi) if again else None
            ),
            head_weight=self.sac.critic.head.weight.mT,  # (N, 1, D)
            reward=batch.reward,
            discount=batch.discount,
        )
        return TD(loss=self.views * mean_loss, features=features, q=online.q.detach().mean()), code

    def _by_view(self, phi: Tensor) -> Tensor:
        """(N, views * B, D) -> (views, N, B, D), so that view k meets view k and head i head i; one view: no change."""
        return phi.view(len(phi), self.views, -1, phi.shape[-1]).transpose(0, 1) if self.views > 1 else phi

    def critic_parameters(self) -> list[Tensor]:
        """Encoder, latent and all heads."""
        return self.sac.critic_parameters()

    def update(self, batch: Batch, *, index: int, rng: Stream) -> Update:
        """One step of critics and encoder; when due, of actor, temperature and targets; then the further loss."""
        obs, next_obs = as_floats(self.look(batch.obs, rng)), self.look(batch.next_obs, rng)
        td, code = self._evaluate(batch, obs, next_obs, rng)
        regularizer = self.regularizer(td.features)
        self.sac.critic_optimizer.minimise(td.loss + regularizer)
        metrics = {"td_loss": td.loss.detach(), "regularizer": regularizer.detach(), "q": td.q}
        rows = len(batch.reward)
        if (index + 1) % self.settings.policy_every == 0:
            # the first view, without a gradient: the actor's loss moves no convolution
            metrics |= self.sac.update_policy(code[:rows].detach(), self.sac.noise(batch.action.shape, rng))
        if (index + 1) % self.settings.target_every == 0:
            for follow in self.update_targets:
                follow()
        if self.auxiliary is not None:
            metrics["auxiliary_loss"] = self.auxiliary.step(batch.obs, obs[:rows], rng)
        return Update(metrics)

    def state_dict(self) -> dict[str, Any]:
        """SAC, both encoders, and the further loss."""
        return {name: part.state_dict() for name, part in self._parts().items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        for name, part in self._parts().items():
            part.load_state_dict(state[name])

    def _parts(self) -> dict[str, Any]:
        parts = {"sac": self.sac, "encoder": self.encoder, "target_encoder": self.target_encoder}
        return parts if self.auxiliary is None else {**parts, "auxiliary": self.auxiliary}


def build_sac(
    settings: PixelSACConfig,
    observation: tuple[int, ...],
    actions: int,
    *,
    regularizer: Regularizer,
    weights: torch.Generator,
    device: torch.device,
) -> tuple[SAC, ConvEncoder]:
    """A SAC on the code of frames with the shape ``observation``, and the encoder that it trains."""
    encoder = ConvEncoder(observation, settings.encoder, weights)

    def latent(shape: Any) -> Latent:
        return Latent(encoder.features, settings.latent, shape, weights, tanh=settings.latent_tanh)

    log_std = (settings.log_std_low, settings.log_std_high)
    actor = LatentGaussian(
        latent(settings.actor),
        GaussianActor(
            settings.latent, actions, settings.actor, weights, log_std=log_std, log_std_by=settings.log_std_by
        ),
    ).to(device)
    critic = LatentCritic(latent(settings.critic), actions, settings.critic, weights).to(device)
    encoder = encoder.to(device)
    sac = SAC(settings, actor, critic, actions=actions, regularizer=regularizer, device=device, encoder=encoder)
    return sac, encoder
