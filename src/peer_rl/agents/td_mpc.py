"""TD-MPC (Hansen et al. 2022): planning in a latent model that the TD loss, here with PEER, helps to shape."""

from __future__ import annotations

import torch
from torch import Tensor

from peer_rl.agents import TD, Array, Stateful, Update
from peer_rl.agents.planning import plan, shifted
from peer_rl.envs.spec import EnvSpec
from peer_rl.networks.augment import random_shift
from peer_rl.networks.encoders import as_floats
from peer_rl.networks.latent_model import LatentModel
from peer_rl.networks.mlp import CriticOutput
from peer_rl.networks.optimizer import Adam, SoftUpdate, target_of
from peer_rl.plugin import Features, Regularizer
from peer_rl.replay.sequences import Sequences
from peer_rl.rng import Stream
from peer_rl.settings.td_mpc import TDMPCConfig


class TDMPC(Stateful):
    """h encodes an observation, z' = d(z, a) predicts, R(z, a), Q(z, a) and pi(z) read a latent; primes are targets.

    Plans are no part of a checkpoint: every episode begins without one.
    """

    parts = ("model", "target_encoder", "target_critic", "optimizer", "policy_optimizer", "updates")

    def __init__(
        self, settings: TDMPCConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device
    ) -> None:
        self.settings, self.regularizer, self.device = settings, regularizer, device
        self.actions, self.sees_frames = spec.action_size, spec.is_image
        weights = rng.for_weights()
        self.model = LatentModel(spec.observation_shape, spec.action_size, settings, weights).to(device)
        self.target_encoder, self.target_critic = target_of(self.model.encoder), target_of(self.model.critic)
        norm = settings.max_gradient_norm
        self.optimizer = Adam(self.model.model_parameters(), settings.learning_rate, max_gradient_norm=norm)
        self.policy_optimizer = Adam(self.model.policy.parameters(), settings.learning_rate, max_gradient_norm=norm)
        self.update_targets = [
            SoftUpdate(self.model.encoder, self.target_encoder, settings.tau),
            SoftUpdate(self.model.critic, self.target_critic, settings.tau),
        ]
        self.updates = 0  # what the schedules count
        self._means: dict[bool, list[Tensor]] = {}
        """The last plan's mean for each row, by ``explore``: training and evaluation each have their own."""

    # -- planning --------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def act(self, obs: Array, *, first: Array, explore: bool, rng: Stream) -> Array:
        """The first action of a plan, with Gaussian noise if exploring."""
        latents = self.encode(torch.from_numpy(obs).to(self.device))
        before = self._means.get(explore, [])
        fresh = first if len(before) == len(obs) else [True] * len(obs)  # nothing planned yet, or for other rows
        horizon, rows = self.horizon(), range(len(obs))
        zeros = torch.zeros(horizon, self.actions, device=self.device)
        starts = [zeros if fresh[row] else shifted(before[row], horizon) for row in rows]
        planned = [self._plan(latents[row], starts[row], explore, rng.torch) for row in rows]
        self._means[explore] = [mean for _, mean in planned]
        chosen: Array = torch.stack([action for action, _ in planned]).cpu().numpy()
        return chosen

    def _plan(self, z: Tensor, start: Tensor, explore: bool, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """The action at z, (A,), and the plan's mean, (H, A)."""
        settings, model = self.settings, self.model

        def returns(actions: Tensor) -> Tensor:
            noise = self._smoothing(actions.shape[1:], rng)
            return model.returns(z, actions, discount=settings.planning_discount, noise=noise)

        rows = int(settings.policy_fraction * settings.planner.samples), self.actions
        proposals = model.follow_policy(z, (self._smoothing(rows, rng) for _ in start))
        noise = self.noise_now()
        found = plan(returns, start, settings.planner, rng, least_std=noise, proposals=proposals)
        action = found.draw(rng)[0]
        if explore:
            action = action + found.std[0] * torch.randn(action.shape, generator=rng, device=self.device)
        return action.clamp(-1.0, 1.0) if settings.clamp_actions else action, found.mean

    def _risen(self) -> float:
        """How far the schedules have come, in [0, 1]."""
        return min(1.0, self.updates / self.settings.schedule_steps)

    def horizon(self) -> int:
        """Steps that a plan looks ahead: from 1 to the settings' horizon."""
        return int(1 + (self.settings.planner.horizon - 1) * self._risen())

    def noise_now(self) -> float:
        """The least standard deviation of a plan's actions."""
        start, final = self.settings.noise_start, self.settings.noise_final
        return start + (final - start) * self._risen()

    @torch.no_grad()
    def value(self, obs: Array) -> Tensor:
        """min_i Q_i(z, pi(z)) at z = h(s)."""
        z = self.encode(torch.from_numpy(obs).to(self.device))
        output: CriticOutput = self.model.critic(z, self.model.act(z))
        return output.q.amin(0)

    # -- learning --------------------------------------------------------------------------------------------------

    def encode(self, obs: Tensor) -> Tensor:
        """The latent h(s), (B, d)."""
        z: Tensor = self.model.encoder(obs)
        return z

    def _augmented(self, obs: Tensor, rng: Stream) -> Tensor:
        """Frames, randomly shifted; a state vector as it is."""
        return as_floats(random_shift(obs, self.settings.shift, rng.torch)) if self.sees_frames else obs

    def _smoothing(self, shape: tuple[int, ...], rng: torch.Generator) -> Tensor:
        """The clipped noise on the policy's actions."""
        noise = self.settings.smoothing_noise * torch.randn(shape, generator=rng, device=self.device)
        return noise.clamp(-self.settings.smoothing_clip, self.settings.smoothing_clip)

    def temporal_difference(self, batch: Sequences, rng: Stream) -> TD:
        """The TD loss of both critics over the windows, and head i's features with those of target head i."""
        return self._evaluate(batch, rng)[0]

    def _evaluate(self, batch: Sequences, rng: Stream) -> tuple[TD, Tensor, Tensor]:
        """The TD loss; the weighted losses of consistency and reward; the latents z_0 to z_L, (L + 1, B, d).

        z_0 = h(s_0), z_{t+1} = d(z_t, a_t); y_t = r_t + discount_t min_i Q'_i(h(s_{t+1}), pi(h(s_{t+1})) + noise).
        Rows of windows are numbered t * B + b, so that all steps go through each network in one pass.
        """
        settings, steps = self.settings, batch.mask.shape  # (L, B)
        latents = [self.encode(self._augmented(batch.obs[0], rng))]
        for action in batch.action:
            latents.append(self.model.step(latents[-1], action))
        z, following = torch.cat(latents[:-1]), torch.cat(latents[1:])  # (L * B, d)
        action = batch.action.flatten(0, 1)
        next_obs = self._augmented(batch.next_obs.flatten(0, 1), rng)
        noise = self._smoothing((len(action), self.actions), rng.torch)
        with torch.no_grad():
            next_z, target_z = self.encode(next_obs), self.target_encoder(next_obs)
            next_action = self.model.act(next_z, noise)
            target: CriticOutput = self.target_critic(next_z, next_action)  # q (2, L * B), phi (2, L * B, D)
            y = batch.reward.flatten() + batch.discount.flatten() * target.q.amin(0)
        online: CriticOutput = self.model.critic(z, action)
        error = (online.q - y).view(2, *steps)
        loss = self._over_windows(error.square().sum(0), batch)
        consistency = self._over_windows((following - target_z).square().mean(-1).view(steps), batch)
        reward = self._over_windows((self.model.reward(z, action).view(steps) - batch.reward).square(), batch)
        again = "phi_next_online" in self.regularizer.needs
        features = Features(
            online.phi,
            target.phi,
            phi_next_online=self.model.critic(self.encode(next_obs), next_action).phi if again else None,
            head_weight=self.model.critic.head.weight.mT,  # (2, 1, D)
            reward=batch.reward.flatten(),
            discount=batch.discount.flatten(),
            weight=(len(batch.mask) * self._rho(batch)).flatten(),  # the mean over rows is a sum over t
        )
        priorities = (self._rho(batch) * error.detach().abs().sum(0)).sum(0).clamp(max=settings.largest_loss)
        td = TD(loss=loss, features=features, q=online.q.detach().mean(), row_losses=priorities)
        return td, settings.consistency_weight * consistency + settings.reward_weight * reward, torch.stack(latents)

    def _rho(self, batch: Sequences) -> Tensor:
        """rho^t where a window has step t, else 0; (L, B)."""
        powers = self.settings.decay ** torch.arange(len(batch.mask), device=self.device)
        return powers.unsqueeze(-1) * batch.mask

    def _over_windows(self, losses: Tensor, batch: Sequences) -> Tensor:
        """The mean over windows of w_b sum_t rho^t loss_t, from (L, B)."""
        rows = (self._rho(batch) * losses).sum(0).clamp(max=self.settings.largest_loss)
        return (rows if batch.weight is None else batch.weight * rows).mean()

    def policy_loss(self, latents: Tensor, batch: Sequences, noise: Tensor) -> Tensor:
        """-sum_t rho^t mean min_i Q_i(z_t, pi(z_t) + noise), t = 0 ... L, without a gradient into the latents."""
        z = latents.detach().flatten(0, 1)
        output: CriticOutput = self.model.critic(z, self.model.act(z, noise))
        lowest = output.q.amin(0).view(latents.shape[:2])  # (L + 1, B)
        mask = torch.cat([torch.ones_like(batch.mask[:1]), batch.mask])
        powers = self.settings.decay ** torch.arange(len(mask), device=self.device)
        return -(powers * (mask * lowest).mean(-1)).sum()

    def critic_parameters(self) -> list[Tensor]:
        """Encoder, dynamics and both critics: what the TD loss reaches."""
        parts = (self.model.encoder, self.model.dynamics, self.model.critic)
        return [parameter for part in parts for parameter in part.parameters()]

    def update(self, batch: Sequences, *, index: int, rng: Stream) -> Update:
        """One step of the model and one of the policy; every second time also of the targets."""
        td, model_loss, latents = self._evaluate(batch, rng)
        assert td.row_losses is not None
        regularizer = self.regularizer(td.features)
        value_loss = td.loss + regularizer
        self.optimizer.minimise((self.settings.value_weight * value_loss + model_loss) / len(batch.mask))
        noise = self._smoothing((latents.shape[0] * latents.shape[1], self.actions), rng.torch)
        policy_loss = self.policy_loss(latents, batch, noise)
        self.policy_optimizer.minimise(policy_loss)
        if (index + 1) % self.settings.target_every == 0:
            for follow in self.update_targets:
                follow()
        self.updates = index + 1
        metrics = {"td_loss": td.loss, "regularizer": regularizer, "q": td.q, "model_loss": model_loss}
        found = {name: value.detach() for name, value in metrics.items()} | {"actor_loss": policy_loss.detach()}
        return Update(found, td.row_losses + 1e-6)
