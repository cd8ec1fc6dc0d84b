"""TD3 (Fujimoto et al. 2018), the backbone of the paper's experiments from state; METD3 is TD3 with a mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from peer_rl.agents import TD, Array, Stateful, Update
from peer_rl.envs.spec import EnvSpec
from peer_rl.networks.mlp import CriticOutput, DeterministicActor, EnsembleCritic
from peer_rl.networks.optimizer import Adam, SoftUpdate, target_of
from peer_rl.plugin import Features, Regularizer
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings.td3 import TD3Config

DrawMask = Callable[[int, Stream], Tensor | None]


class TD3(Stateful):
    """Actions are in [-1, 1]; twin critics are one ensemble of two."""

    parts = ("actor", "critic", "target_actor", "target_critic", "actor_optimizer", "critic_optimizer")

    def __init__(
        self,
        settings: TD3Config,
        spec: EnvSpec,
        *,
        regularizer: Regularizer,
        rng: Stream,
        device: torch.device,
        draw_mask: DrawMask = lambda rows, rng: None,
    ) -> None:
        self.settings, self.regularizer, self.device, self.draw_mask = settings, regularizer, device, draw_mask
        weights = rng.for_weights()
        seen, acted = spec.observation_shape[0], spec.action_size
        self.actor = DeterministicActor(seen, acted, settings.actor, weights).to(device)
        self.critic = EnsembleCritic(2, seen + acted, settings.critic, weights).to(device)
        self.target_actor, self.target_critic = target_of(self.actor), target_of(self.critic)
        self.actor_optimizer = Adam(self.actor.parameters(), settings.actor_learning_rate)
        self.critic_optimizer = Adam(self.critic.parameters(), settings.critic_learning_rate)
        self.update_target_actor = SoftUpdate(self.actor, self.target_actor, settings.tau)
        self.update_target_critic = SoftUpdate(self.critic, self.target_critic, settings.tau)
        compiled: Callable[..., Any] = torch.compile if settings.compile else lambda loss: loss
        self.bootstrap, self.actor_loss = compiled(self._bootstrap), compiled(self._actor_loss)
        self.td_loss = compiled(self._td_loss)

    @torch.no_grad()
    def act(self, obs: Array, *, first: Array, explore: bool, rng: Stream) -> Array:
        """pi(s), with Gaussian noise if exploring."""
        del first
        action: Array = self.actor(torch.from_numpy(obs).to(self.device)).cpu().numpy()
        if explore:
            noise = self.settings.exploration_noise * rng.numpy.standard_normal(action.shape, action.dtype)
            action = (action + noise).clip(-1.0, 1.0)
        return action

    @torch.no_grad()
    def value(self, obs: Array) -> Tensor:
        """min_i Q_i(s, pi(s))."""
        seen = torch.from_numpy(obs).to(self.device)
        output: CriticOutput = self.critic(seen, self.actor(seen))
        return output.q.amin(0)

    def _bootstrap(self, batch: Batch, noise: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Y = R + discount * min_i Q'_i(s', a') with a' = pi'(s') + clipped noise; with phi'(s', a') and a'."""
        next_action = (self.target_actor(batch.next_obs) + noise).clamp(-1.0, 1.0)  # (B, A)
        target = self.target_critic(batch.next_obs, next_action, mask=mask)  # q (2, B), phi (2, B, D)
        return batch.reward + batch.discount * target.q.amin(0), target.phi, next_action

    def _td_loss(self, batch: Batch, bootstrap: Tensor, mask: Tensor | None) -> tuple[Tensor, CriticOutput]:
        """L_PE = sum_i (Q_i(s, a) - y)^2, the sum of both critics' mean squared errors."""
        online: CriticOutput = self.critic(batch.obs, batch.action, mask=mask)
        return (online.q - bootstrap).square().mean(-1).sum(), online

    def _actor_loss(self, obs: Tensor) -> Tensor:
        """-Q_1(s, pi(s)), the first critic alone."""
        output: CriticOutput = self.critic(obs, self.actor(obs), heads=slice(1))
        return -output.q.mean()

    def temporal_difference(self, batch: Batch, rng: Stream) -> TD:
        """Both critics' TD loss, and the features of each head and of the same target head (section 3.2)."""
        noise = torch.randn(batch.action.shape, generator=rng.torch, device=self.device)
        clip = self.settings.smoothing_clip
        noise = (self.settings.smoothing_noise * noise).clamp(-clip, clip)
        mask = self.draw_mask(len(batch.reward), rng)
        with torch.no_grad():
            bootstrap, phi_next, next_action = self.bootstrap(batch, noise, mask)
        loss, online = self.td_loss(batch, bootstrap, mask)
        again = "phi_next_online" in self.regularizer.needs
        features = Features(
            online.phi,
            phi_next,
            phi_next_online=self.critic(batch.next_obs, next_action, mask=mask).phi if again else None,
            head_weight=self.critic.head.weight.mT,  # (2, 1, D)
            reward=batch.reward,
            discount=batch.discount,
        )
        return TD(loss=loss, features=features, q=online.q.detach().mean())

    def critic_parameters(self) -> list[Tensor]:
        """Both critics."""
        return list(self.critic.parameters())

    def update(self, batch: Batch, *, index: int, rng: Stream) -> Update:
        """One step of both critics; every d-th time also of the actor and all targets."""
        td = self.temporal_difference(batch, rng)
        regularizer = self.regularizer(td.features)
        self.critic_optimizer.minimise(td.loss + regularizer)
        metrics = {"td_loss": td.loss.detach(), "regularizer": regularizer.detach(), "q": td.q}
        if (index + 1) % self.settings.policy_every == 0:
            actor_loss = self.actor_loss(batch.obs)
            self.actor_optimizer.minimise(actor_loss)  # leaves the critic alone
            self.update_target_actor()
            self.update_target_critic()
            metrics["actor_loss"] = actor_loss.detach()
        return Update(metrics)
