"""DQN (Mnih et al. 2015) with a soft target update and epsilon-greedy exploration, as in PEER's grid world."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from peer_rl.agents import TD, Array, Update
from peer_rl.agents.checks import check_vectors
from peer_rl.configs.agents import DQNConfig
from peer_rl.envs.spec import EnvSpec
from peer_rl.networks.critics import ActionValues
from peer_rl.networks.optimizer import Adam
from peer_rl.networks.target import SoftUpdate, target_of
from peer_rl.regularizers import Features, Regularizer
from peer_rl.replay.batch import Batch
from peer_rl.training.seeding import Stream


class DQN:
    """Learns Q(s, .) from one-step or n-step targets; phi is the last hidden layer, a function of s alone."""

    def __init__(
        self,
        settings: DQNConfig,
        spec: EnvSpec,
        *,
        regularizer: Regularizer,
        rng: Stream,
        device: torch.device,
    ) -> None:
        self.settings = settings
        self.actions = spec.actions
        self.device = device
        self.regularizer = regularizer
        weights = torch.Generator().manual_seed(int(rng.numpy.integers(2**63)))
        self.critic = ActionValues(spec.observation_shape, spec.actions, settings.critic, weights).to(device)
        self.target = target_of(self.critic)
        self.optimizer = Adam(self.critic.parameters(), settings.learning_rate)
        self.update_target = SoftUpdate(self.critic, self.target, settings.tau)
        self.explored = 0  # acting steps with exploration, which is what epsilon's schedule counts

    @torch.no_grad()
    def act(self, obs: Array, *, first: Array, explore: bool, rng: Stream) -> Array:
        """Epsilon-greedy actions. Both draws are made every time, so no draw depends on a value."""
        del first
        greedy: Array = self.critic(torch.from_numpy(obs).to(self.device)).q.argmax(-1).cpu().numpy()
        if not explore:
            return greedy
        randomly = rng.numpy.random(len(obs)) < self.epsilon()
        anything = rng.numpy.integers(self.actions, size=len(obs))
        self.explored += 1
        greedy[randomly] = anything[randomly]
        return greedy

    def epsilon(self) -> float:
        """Probability of a random action now."""
        start, final = self.settings.epsilon_start, self.settings.epsilon_final
        return start + (final - start) * min(1.0, self.explored / self.settings.epsilon_steps)

    @torch.no_grad()
    def value(self, obs: Array) -> Tensor:
        """max_a Q(s, a)."""
        q: Tensor = self.critic(torch.from_numpy(obs).to(self.device)).q
        return q.amax(-1)

    def temporal_difference(self, batch: Batch, rng: Stream) -> TD:
        """L_PE = (Q(s, a) - [R + discount * max_a' Q'(s', a')])^2 and the features of both networks (section 3.2)."""
        del rng
        with torch.no_grad():
            target = self.target(batch.next_obs)  # q (B, actions), phi (B, D)
            next_q, next_action = target.q.max(-1)  # (B,)
            bootstrap = batch.reward + batch.discount * next_q
        online = self.critic(batch.obs)
        q = online.q.gather(-1, batch.action.unsqueeze(-1)).squeeze(-1)  # (B,)
        features = Features(
            online.phi,
            target.phi,
            phi_next_online=self.critic(batch.next_obs).phi if "phi_next_online" in self.regularizer.needs else None,
            head_weight=self.critic.head_weight(),
            reward=batch.reward,
            discount=batch.discount,
            same_action=batch.action == next_action,
        )
        return TD(loss=F.mse_loss(q, bootstrap), features=features, q=q.detach().mean())

    def critic_parameters(self) -> list[Tensor]:
        """Trunk and head."""
        return list(self.critic.parameters())

    def update(self, batch: Batch, *, index: int, rng: Stream) -> Update:
        """One step of Adam on the critic, one of the target network."""
        del index
        td = self.temporal_difference(batch, rng)
        regularizer = self.regularizer(td.features)
        self.optimizer.minimise(td.loss + regularizer)
        self.update_target()
        return Update({"td_loss": td.loss.detach(), "regularizer": regularizer.detach(), "q": td.q})

    def state_dict(self) -> dict[str, Any]:
        """Both networks, the optimizer, and how far exploration has come."""
        return {
            "critic": self.critic.state_dict(),
            "target": self.target.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "explored": self.explored,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        self.critic.load_state_dict(state["critic"])
        self.target.load_state_dict(state["target"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.explored = state["explored"]


def build(settings: DQNConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device) -> DQN:
    """A DQN for an environment with vector observations and discrete actions."""
    check_vectors("dqn", spec)
    return DQN(settings, spec, regularizer=regularizer, rng=rng, device=device)
