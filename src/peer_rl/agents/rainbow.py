"""Data-efficient Rainbow (van Hasselt et al. 2019): distributional, double, dueling, noisy, n-step, prioritised.

The n-step returns and the priorities are the replay's work; everything else is here.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from peer_rl.agents import TD, Array, Stateful, Update
from peer_rl.envs.spec import EnvSpec
from peer_rl.networks.distributional import DistributionalValues, logits_of, project
from peer_rl.networks.encoders import as_floats
from peer_rl.networks.mlp import CriticOutput
from peer_rl.networks.optimizer import Adam, SoftUpdate, target_of
from peer_rl.plugin import Features, Regularizer
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings.rainbow import RainbowConfig


class Auxiliary(Protocol):
    """A further loss on the encoder, with weights of its own: CURL's."""

    def parameters(self) -> list[Tensor]:
        """What it trains besides the critic."""

    def loss(self, obs: Tensor, rng: Stream) -> Tensor:
        """The term that is added to the critic's loss, its weight included."""

    def after_update(self) -> None:
        """Whatever follows a step of the optimizer."""

    def state_dict(self) -> dict[str, Any]:
        """Its weights."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""


class Rainbow(Stateful):
    """Learns the distribution of n-step returns; phi is the hidden layers of both streams, or the convolutions."""

    parts: tuple[str, ...] = ("critic", "target", "optimizer", "auxiliary")

    def __init__(
        self,
        settings: RainbowConfig,
        critic: DistributionalValues,
        *,
        regularizer: Regularizer,
        device: torch.device,
        auxiliary: Auxiliary | None = None,
    ) -> None:
        self.settings, self.device, self.regularizer = settings, device, regularizer
        self.critic, self.auxiliary = critic, auxiliary
        self.actions = critic.shape[0]
        self.target = target_of(critic)
        self.optimizer = Adam(
            [*critic.parameters(), *(auxiliary.parameters() if auxiliary else ())],
            settings.learning_rate,
            epsilon=settings.adam_epsilon,
            max_gradient_norm=settings.max_gradient_norm,
        )
        self.copy_to_target = SoftUpdate(critic, self.target, tau=1.0)
        self.explored = 0  # acting steps with exploration, which is what epsilon's schedule counts
        if not settings.noisy:
            self.parts = (*self.parts, "explored")

    @torch.no_grad()
    def act(self, obs: Array, *, first: Array, explore: bool, rng: Stream) -> Array:
        """Greedy under fresh noise; in evaluation, or without noisy layers, with a random action now and then."""
        del first
        noises = self.critic.draw(rng.torch) if explore else None
        greedy: Array = self.critic(torch.from_numpy(obs).to(self.device), noises).q.argmax(-1).cpu().numpy()
        if explore and self.settings.noisy:
            return greedy
        randomly = rng.numpy.random(len(obs)) < (self.epsilon() if explore else self.settings.epsilon_eval)
        self.explored += explore
        anything = rng.numpy.integers(self.actions, size=len(obs))
        greedy[randomly] = anything[randomly]
        return greedy

    def epsilon(self) -> float:
        """Probability of a random action now, in training without noisy layers."""
        start, final = self.settings.epsilon_start, self.settings.epsilon_final
        return start + (final - start) * min(1.0, self.explored / self.settings.epsilon_steps)

    @torch.no_grad()
    def value(self, obs: Array) -> Tensor:
        """max_a Q(s, a), without noise."""
        q: Tensor = self.critic(torch.from_numpy(obs).to(self.device)).q
        return q.amax(-1)

    def temporal_difference(self, batch: Batch, rng: Stream) -> TD:
        """Cross entropy of p(s, a) with the projection of R + discount * Z'(s', a*), a* = argmax_a Q(s', a)."""
        noises, target_noises = self.critic.draw(rng.torch), self.target.draw(rng.torch)
        next_obs = as_floats(batch.next_obs)
        with torch.no_grad():
            target: CriticOutput = self.target(next_obs, target_noises)
            # double Q: the online network chooses
            next_action = (self.critic(next_obs, noises) if self.settings.double else target).q.argmax(-1)  # (B,)
            next_probabilities = logits_of(target, next_action).softmax(-1)  # (B, atoms)
            wanted = project(next_probabilities, self.critic.support, batch.reward, batch.discount)
        online: CriticOutput = self.critic(batch.obs, noises)
        log_probabilities = logits_of(online, batch.action).log_softmax(-1)  # (B, atoms)
        cross_entropy = -(wanted * log_probabilities).sum(-1)  # (B,)
        loss = cross_entropy if batch.weight is None else batch.weight * cross_entropy
        kind, again = self.settings.features, "phi_next_online" in self.regularizer.needs
        features = Features(
            online.read_by_peer(kind),
            target.read_by_peer(kind),
            phi_next_online=self.critic(next_obs, noises).read_by_peer(kind) if again else None,
            reward=batch.reward,
            discount=batch.discount,
            same_action=batch.action == next_action,
        )
        q = online.q.detach().gather(-1, batch.action.unsqueeze(-1)).mean()
        return TD(loss=loss.mean(), features=features, q=q, row_losses=cross_entropy.detach())

    def critic_parameters(self) -> list[Tensor]:
        """Encoder, streams and heads."""
        return list(self.critic.parameters())

    def update(self, batch: Batch, *, index: int, rng: Stream) -> Update:
        """One step of Adam on the critic; a copy into the target every so many. Priorities are the cross entropy."""
        td = self.temporal_difference(batch, rng)
        assert td.row_losses is not None
        regularizer = self.regularizer(td.features)
        metrics = {"td_loss": td.loss.detach(), "regularizer": regularizer.detach(), "q": td.q}
        added, priorities = regularizer, td.row_losses
        if self.auxiliary is not None:
            auxiliary = self.auxiliary.loss(batch.obs, rng)
            metrics["auxiliary_loss"] = auxiliary.detach()
            added = added + auxiliary
        if self.settings.blend_losses:
            priorities = priorities + added.detach()
            added = added if batch.weight is None else batch.weight.mean() * added
        self.optimizer.minimise(td.loss + added)
        if (index + 1) % self.settings.target_every == 0:
            self.copy_to_target()
        if self.auxiliary is not None:
            self.auxiliary.after_update()
        return Update(metrics, priorities)


def build(
    settings: RainbowConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device
) -> Rainbow:
    """A Rainbow for frames or vectors, and discrete actions."""
    weights = rng.for_weights()
    critic = DistributionalValues(spec.observation_shape, spec.actions, settings, weights).to(device)
    return Rainbow(settings, critic, regularizer=regularizer, device=device)
