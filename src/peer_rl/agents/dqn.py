"""DQN (Mnih et al. 2015), from vectors or pixels: the paper's grid-world agent, and its efficient DQN on Atari."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from peer_rl.agents import TD, Array, Stateful, Update
from peer_rl.envs.spec import EnvSpec
from peer_rl.networks.action_values import ActionValues
from peer_rl.networks.mlp import CriticOutput
from peer_rl.networks.optimizer import Adam, SoftUpdate, target_of
from peer_rl.plugin import Features, Regularizer
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings.dqn import DQNConfig

Augment = Callable[[Tensor, Stream], Tensor]


class DQN(Stateful):
    """Learns Q(s, .) from one-step or n-step targets; phi is a function of s alone."""

    def __init__(
        self,
        settings: DQNConfig,
        spec: EnvSpec,
        *,
        regularizer: Regularizer,
        rng: Stream,
        device: torch.device,
        augment: Augment = lambda obs, rng: obs,
    ) -> None:
        self.settings, self.actions, self.device = settings, spec.actions, device
        self.regularizer, self.augment = regularizer, augment
        weights = rng.for_weights()
        encoder = settings.encoder if spec.is_image else None
        self.critic = ActionValues(
            spec.observation_shape, spec.actions, settings.critic, weights, encoder=encoder, dueling=settings.dueling
        ).to(device)
        # a target that is copied after every update is the critic itself, as it is before its step
        at_once = settings.tau == 1 and settings.target_every == 1
        self.target = self.critic if at_once else target_of(self.critic)
        self.parts = ("critic", *(() if at_once else ("target",)), "optimizer", "explored")
        self.optimizer = Adam(
            self.critic.parameters(),
            settings.learning_rate,
            epsilon=settings.adam_epsilon,
            weight_decay=settings.weight_decay,
            decoupled=True,
            max_gradient_norm=settings.max_gradient_norm,
        )
        self.update_target = SoftUpdate(self.critic, self.target, settings.tau)
        self.explored = 0  # acting steps with exploration, which is what epsilon's schedule counts

    @torch.no_grad()
    def act(self, obs: Array, *, first: Array, explore: bool, rng: Stream) -> Array:
        """Epsilon-greedy actions. Both draws are made every time, so no draw depends on a value."""
        del first
        greedy: Array = self.critic(torch.from_numpy(obs).to(self.device)).q.argmax(-1).cpu().numpy()
        epsilon = self.epsilon() if explore else self.settings.epsilon_eval
        if not explore and epsilon == 0:
            return greedy
        randomly = rng.numpy.random(len(obs)) < epsilon
        anything = rng.numpy.integers(self.actions, size=len(obs))
        self.explored += explore
        greedy[randomly] = anything[randomly]
        return greedy

    def epsilon(self) -> float:
        """Probability of a random action now, in training."""
        start, final = self.settings.epsilon_start, self.settings.epsilon_final
        return start + (final - start) * min(1.0, self.explored / self.settings.epsilon_steps)

    @torch.no_grad()
    def value(self, obs: Array) -> Tensor:
        """max_a Q(s, a)."""
        q: Tensor = self.critic(torch.from_numpy(obs).to(self.device)).q
        return q.amax(-1)

    @torch.no_grad()
    def _bootstrap(self, batch: Batch, next_obs: Tensor) -> tuple[Tensor, CriticOutput, Tensor]:
        """Y = R + discount * Q'(s', a') with a' = argmax Q', or argmax Q with double; the target's output and a'."""
        target: CriticOutput = self.target(next_obs)  # q (B, actions), phi (B, D)
        doubly = self.settings.double and self.target is not self.critic
        chooser: CriticOutput = self.critic(next_obs) if doubly else target
        next_action = chooser.q.max(-1).indices  # (B,)
        next_q = target.q.gather(-1, next_action.unsqueeze(-1)).squeeze(-1)  # (B,)
        return batch.reward + batch.discount * next_q, target, next_action

    def temporal_difference(self, batch: Batch, rng: Stream) -> TD:
        """L_PE = (Q(s, a) - y)^2, or Huber's of the same error, and both networks' features (section 3.2)."""
        obs, next_obs = self.augment(batch.obs, rng), self.augment(batch.next_obs, rng)
        bootstrap, target, next_action = self._bootstrap(batch, next_obs)
        online: CriticOutput = self.critic(obs)
        q = online.q.gather(-1, batch.action.unsqueeze(-1)).squeeze(-1)  # (B,)
        kind, again = self.settings.features, "phi_next_online" in self.regularizer.needs
        features = Features(
            online.read_by_peer(kind),
            target.read_by_peer(kind),
            phi_next_online=self.critic(next_obs).read_by_peer(kind) if again else None,
            head_weight=self.critic.head_weight() if kind == "penultimate" else None,
            reward=batch.reward,
            discount=batch.discount,
            same_action=batch.action == next_action,
        )
        distance = F.huber_loss if self.settings.loss == "huber" else F.mse_loss
        return TD(loss=distance(q, bootstrap), features=features, q=q.detach().mean())

    def critic_parameters(self) -> list[Tensor]:
        """Encoder, trunk and head."""
        return list(self.critic.parameters())

    def update(self, batch: Batch, *, index: int, rng: Stream) -> Update:
        """One step of Adam on the critic; every k-th time one of the target network."""
        td = self.temporal_difference(batch, rng)
        regularizer = self.regularizer(td.features)
        self.optimizer.minimise(td.loss + regularizer)
        if self.target is not self.critic and (index + 1) % self.settings.target_every == 0:
            self.update_target()
        return Update({"td_loss": td.loss.detach(), "regularizer": regularizer.detach(), "q": td.q})
