"""SAC on frames: what curl-sac, drq-sac and sac-ae have in common.

One encoder reads frames. The critics' loss trains it; the actor reads its code without a gradient. Each code is
computed once an update: the actor learns from the code of s that the critics learned from. At s' the actor reads the
online encoder's code, and the target critics read the target encoder's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from peer_rl.agents import TD, Array, Stateful, Update
from peer_rl.agents.sac import SAC
from peer_rl.networks.encoders import ConvEncoder, as_floats
from peer_rl.networks.gaussian import GaussianActor
from peer_rl.networks.latent import Latent, LatentCritic, LatentGaussian
from peer_rl.networks.optimizer import SoftUpdate, target_of
from peer_rl.plugin import Features, Regularizer
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings.pixel_sac import PixelSACConfig

Augment = Callable[[Tensor, Stream], Tensor]
"""Frames (B, C, H, W) as an update reads them: one view after the other, (views * B, C, h, w)."""
Preprocess = Callable[[Tensor], Tensor]
"""Frames as acting reads them."""


class Auxiliary(Protocol):
    """A further loss on the encoder and the critics' latent, with weights and optimizers of its own."""

    def step(self, frames: Tensor, view: Tensor, rng: Stream) -> Tensor:
        """Learn from the batch's s in uint8, and from the view of it that the critics read, in floats; the loss."""

    def state_dict(self) -> dict[str, Any]:
        """Its weights and optimizers."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""


@dataclass(frozen=True)
class PixelNetworks:
    """An agent's networks, before anything trains them."""

    encoder: ConvEncoder
    target_encoder: ConvEncoder
    actor: LatentGaussian
    critic: LatentCritic
    target_critic: LatentCritic

    @property
    def latent(self) -> nn.Sequential:
        """From frames to the critics' latent."""
        return nn.Sequential(self.encoder, self.critic.latent)

    @property
    def target_latent(self) -> nn.Sequential:
        """The same of the target networks."""
        return nn.Sequential(self.target_encoder, self.target_critic.latent)


class PixelSAC(Stateful):
    """SAC behind an encoder. With several views of each state, their targets are averaged and their losses added."""

    parts = ("sac", "encoder", "target_encoder", "auxiliary")

    def __init__(
        self,
        settings: PixelSACConfig,
        networks: PixelNetworks,
        *,
        actions: int,
        regularizer: Regularizer,
        device: torch.device,
        augment: Augment = lambda frames, rng: frames,
        preprocess: Preprocess = lambda frames: frames,
        views: int = 1,
        auxiliary: Auxiliary | None = None,
    ) -> None:
        self.settings, self.regularizer, self.device = settings, regularizer, device
        self.encoder, self.target_encoder = networks.encoder, networks.target_encoder
        self.sac = SAC(
            settings,
            networks.actor,
            networks.critic,
            target_critic=networks.target_critic,
            actions=actions,
            regularizer=regularizer,
            device=device,
            encoder=networks.encoder,
        )
        self.augment, self.preprocess, self.views, self.auxiliary = augment, preprocess, views, auxiliary
        critic, target = networks.critic, networks.target_critic
        self.update_targets = [
            SoftUpdate(self.encoder, self.target_encoder, settings.encoder_tau),
            SoftUpdate(critic.latent, target.latent, settings.encoder_tau),
            SoftUpdate(critic.heads, target.heads, settings.tau),
        ]

    @torch.no_grad()
    def act(self, obs: Array, *, first: Array, explore: bool, rng: Stream) -> Array:
        """A draw from pi(. | s) if exploring, else tanh of its mean."""
        del first
        return self.sac.choose(self._code(obs), explore=explore, rng=rng)

    @torch.no_grad()
    def value(self, obs: Array) -> Tensor:
        """The lower critic's value of tanh of the policy's mean, without entropy."""
        return self.sac.greedy_value(self._code(obs))

    def _code(self, obs: Array) -> Tensor:
        code: Tensor = self.encoder(self.preprocess(torch.from_numpy(obs).to(self.device)))
        return code

    def temporal_difference(self, batch: Batch, rng: Stream) -> TD:
        """The TD loss of all views and heads, and each one's features with those of the same view and target head."""
        return self._evaluate(batch, self.augment(batch.obs, rng), self.augment(batch.next_obs, rng), rng)[0]

    def _evaluate(self, batch: Batch, obs: Tensor, next_obs: Tensor, rng: Stream) -> tuple[TD, Tensor]:
        """The TD loss, and the code of s with its gradient."""
        code = self.encoder(obs)  # (views * B, D)
        next_frames = as_floats(next_obs)
        action, reward = batch.action.repeat(self.views, 1), batch.reward.repeat(self.views)
        discount = batch.discount.repeat(self.views)
        noise = self.sac.noise(action.shape, rng)  # each view of s' has an a' of its own
        with torch.no_grad():
            next_codes = self.encoder(next_frames), self.target_encoder(next_frames)
            bootstraps, phi_next, next_action = self.sac.bootstrap(reward, discount, next_codes, noise)
            bootstrap = bootstraps.view(self.views, -1).mean(0).repeat(self.views)  # one y for all views of a state
        mean_loss, online = self.sac.td_loss(code, action, bootstrap)
        phi_next_online = None
        if "phi_next_online" in self.regularizer.needs:
            phi_next_online = self._by_view(self.sac.critic(self.encoder(next_frames), next_action).phi)
        features = Features(
            self._by_view(online.phi),
            self._by_view(phi_next),
            phi_next_online=phi_next_online,
            head_weight=self.sac.critic.head.weight.mT,  # (N, 1, D)
            reward=batch.reward,
            discount=batch.discount,
        )
        return TD(loss=self.views * mean_loss, features=features, q=online.q.detach().mean()), code

    def _by_view(self, phi: Tensor) -> Tensor:
        """(N, views * B, D) -> (views, N, B, D), so that views and heads pair with their own; one view: no change."""
        return phi.view(len(phi), self.views, -1, phi.shape[-1]).transpose(0, 1) if self.views > 1 else phi

    def critic_parameters(self) -> list[Tensor]:
        """Encoder, latent and all heads."""
        return self.sac.critic_parameters()

    def update(self, batch: Batch, *, index: int, rng: Stream) -> Update:
        """One step of critics and encoder; when due, of actor, temperature and targets; then the auxiliary loss."""
        obs, next_obs = as_floats(self.augment(batch.obs, rng)), self.augment(batch.next_obs, rng)
        td, code = self._evaluate(batch, obs, next_obs, rng)
        metrics = self.sac.update_critics(td)
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


def build_networks(
    settings: PixelSACConfig,
    observation: tuple[int, ...],
    actions: int,
    *,
    weights: torch.Generator,
    device: torch.device,
    linear_phi: bool = False,
) -> PixelNetworks:
    """Networks for frames of the shape ``observation``."""
    encoder = ConvEncoder(observation, settings.encoder, weights)

    def latent(shape: Any) -> Latent:
        return Latent(encoder.features, settings.latent, shape, weights, tanh=settings.latent_tanh)

    log_std = (settings.log_std_low, settings.log_std_high)
    of_actor = latent(settings.actor)
    policy = GaussianActor(
        settings.latent, actions, settings.actor, weights, log_std=log_std, log_std_by=settings.log_std_by
    )
    actor = LatentGaussian(of_actor, policy).to(device)
    critic = LatentCritic(latent(settings.critic), actions, settings.critic, weights, linear_phi=linear_phi).to(device)
    encoder = encoder.to(device)
    return PixelNetworks(encoder, target_of(encoder), actor, critic, target_of(critic))
