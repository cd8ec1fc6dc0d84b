"""DrQ-v2 (Yarats et al. 2022): a deterministic policy on shifted frames, twin critics, no target encoder."""

from __future__ import annotations

import torch
from torch import Tensor

from peer_rl.agents import TD, Array, Stateful, Update
from peer_rl.envs.spec import EnvSpec
from peer_rl.networks.augment import random_shift
from peer_rl.networks.encoders import ConvEncoder, as_floats
from peer_rl.networks.latent import Latent, LatentCritic, LatentPolicy
from peer_rl.networks.mlp import CriticOutput
from peer_rl.networks.optimizer import Adam, SoftUpdate, target_of
from peer_rl.plugin import Features, Regularizer
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings.drq_v2 import DrQv2Config


class DrQv2(Stateful):
    """Actions are in [-1, 1]; twin critics are one ensemble of two. Encoder and critics learn from one loss."""

    parts = ("encoder", "actor", "critic", "target_critic", "actor_optimizer", "critic_optimizer", "explored")

    def __init__(
        self, settings: DrQv2Config, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device
    ) -> None:
        self.settings, self.regularizer, self.device = settings, regularizer, device
        weights = rng.for_weights()
        self.encoder = ConvEncoder(spec.observation_shape, settings.encoder, weights).to(device)
        inputs, acted = self.encoder.features, spec.action_size
        of_actor = Latent(inputs, settings.latent, settings.actor, weights, tanh=True)
        self.actor = LatentPolicy(of_actor, acted, settings.actor, weights).to(device)
        of_critic = Latent(inputs, settings.latent, settings.critic, weights, tanh=True)
        self.critic = LatentCritic(of_critic, acted, settings.critic, weights).to(device)
        self.target_critic = target_of(self.critic)
        self.actor_optimizer = Adam(self.actor.parameters(), settings.actor_learning_rate)
        self.critic_optimizer = Adam(self.critic_parameters(), settings.critic_learning_rate)
        self.update_target = SoftUpdate(self.critic, self.target_critic, settings.tau)
        self.explored = 0  # acting steps with exploration, which is what the noise's schedule counts

    @torch.no_grad()
    def act(self, obs: Array, *, first: Array, explore: bool, rng: Stream) -> Array:
        """pi(s), with Gaussian noise if exploring."""
        del first
        action = self.actor(self._code(torch.from_numpy(obs).to(self.device)))
        if explore:
            noise = torch.randn(action.shape, generator=rng.torch, device=self.device)
            action = (action + self.noise_now() * noise).clamp(-1.0, 1.0)
            self.explored += 1
        chosen: Array = action.cpu().numpy()
        return chosen

    def noise_now(self) -> float:
        """The noise's standard deviation, in acting and in the losses."""
        start, final = self.settings.noise_start, self.settings.noise_final
        return start + (final - start) * min(1.0, self.explored / self.settings.noise_steps)

    @torch.no_grad()
    def value(self, obs: Array) -> Tensor:
        """min_i Q_i(s, pi(s))."""
        code = self._code(torch.from_numpy(obs).to(self.device))
        output: CriticOutput = self.critic(code, self.actor(code))
        return output.q.amin(0)

    def _code(self, frames: Tensor) -> Tensor:
        """Convolutions of frames in [-0.5, 0.5]."""
        code: Tensor = self.encoder(as_floats(frames) - 0.5)  # (B, D)
        return code

    def _augment(self, frames: Tensor, rng: Stream) -> Tensor:
        return random_shift(frames, self.settings.shift, rng.torch)

    def _smoothing(self, batch: Batch, rng: Stream) -> Tensor:
        """The noise on actions that a loss reads, (B, A)."""
        noise = self.noise_now() * torch.randn(batch.action.shape, generator=rng.torch, device=self.device)
        clip = self.settings.smoothing_clip
        return noise.clamp(-clip, clip)

    def temporal_difference(self, batch: Batch, rng: Stream) -> TD:
        """Both critics' TD loss, and the features of each head and of the same target head (section 3.2)."""
        return self._evaluate(batch, rng)[0]

    def _evaluate(self, batch: Batch, rng: Stream) -> tuple[TD, Tensor]:
        """L_PE = sum_i (Q_i(s, a) - y)^2 with y = R + discount * min_i Q'_i(s', pi(s') + clipped noise).

        The target critics read the online encoder's code of s', without a gradient. The code of s has one.
        """
        obs, next_obs = self._augment(batch.obs, rng), self._augment(batch.next_obs, rng)
        noise = self._smoothing(batch, rng)
        with torch.no_grad():
            next_code = self._code(next_obs)
            next_action = (self.actor(next_code) + noise).clamp(-1.0, 1.0)  # (B, A)
            target: CriticOutput = self.target_critic(next_code, next_action)  # q (2, B), phi (2, B, D)
            bootstrap = batch.reward + batch.discount * target.q.amin(0)
        code = self._code(obs)
        online: CriticOutput = self.critic(code, batch.action)
        loss = (online.q - bootstrap).square().mean(-1).sum()
        again = "phi_next_online" in self.regularizer.needs
        features = Features(
            online.phi,
            target.phi,
            phi_next_online=self.critic(self._code(next_obs), next_action).phi if again else None,
            head_weight=self.critic.head.weight.mT,  # (2, 1, D)
            reward=batch.reward,
            discount=batch.discount,
        )
        return TD(loss=loss, features=features, q=online.q.detach().mean()), code

    def actor_loss(self, code: Tensor, noise: Tensor) -> Tensor:
        """-min_i Q_i(s, pi(s) + clipped noise), with a straight-through gradient where an action is clipped."""
        action = self.actor(code) + noise
        action = action + (action.clamp(-1.0, 1.0) - action).detach()
        output: CriticOutput = self.critic(code, action)
        return -output.q.amin(0).mean()

    def critic_parameters(self) -> list[Tensor]:
        """Encoder, latent and both heads."""
        return [*self.encoder.parameters(), *self.critic.parameters()]

    def update(self, batch: Batch, *, index: int, rng: Stream) -> Update:
        """One step of encoder and critics, of the actor, and of the target critics."""
        del index
        td, code = self._evaluate(batch, rng)
        regularizer = self.regularizer(td.features)
        self.critic_optimizer.minimise(td.loss + regularizer)
        # without a gradient into the code: the actor's loss moves no convolution
        actor_loss = self.actor_loss(code.detach(), self._smoothing(batch, rng))
        self.actor_optimizer.minimise(actor_loss)
        self.update_target()
        metrics = {"td_loss": td.loss.detach(), "regularizer": regularizer.detach(), "q": td.q}
        return Update(metrics | {"actor_loss": actor_loss.detach()})
