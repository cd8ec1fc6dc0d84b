"""Dreamer (Hafner et al. 2020): a policy learned by gradients through imagined trajectories of a world model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from peer_rl.agents import Array, Stateful, Update
from peer_rl.agents.beliefs import Beliefs
from peer_rl.agents.imagination import imagine, lambda_returns, survival
from peer_rl.envs.spec import EnvSpec
from peer_rl.networks.optimizer import Adam, minimise_together
from peer_rl.networks.policies import SquashedPolicy
from peer_rl.networks.world_model import ModelLoss, WorldModel, head
from peer_rl.plugin import Regularizer
from peer_rl.replay.sequences import Sequences
from peer_rl.rng import Stream
from peer_rl.settings.dreamer import DreamerConfig


class Dreamer(Stateful):
    """Actions are in [-1, 1]. There is no target network, and no critic of state and action: PEER does not apply."""

    parts = ("model", "policy", "critic", "model_optimizer", "policy_optimizer", "critic_optimizer")

    def __init__(
        self, settings: DreamerConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device
    ) -> None:
        self.settings, self.regularizer, self.device = settings, regularizer, device
        weights = rng.for_weights()
        self.model = WorldModel(spec.observation_shape, spec.action_size, settings, weights).to(device)
        features, units = self.model.rssm.features, settings.units
        self.policy = SquashedPolicy(features, spec.action_size, units, settings.actor_layers, weights).to(device)
        self.critic = head(features, units, settings.critic_layers, 1, weights).to(device)
        norm = settings.max_gradient_norm
        behaviour: dict[str, Any] = {"epsilon": settings.behaviour_epsilon, "max_gradient_norm": norm}
        self.model_optimizer = Adam(
            self.model.parameters(),
            settings.model_learning_rate,
            epsilon=settings.model_epsilon,
            max_gradient_norm=norm,
        )
        self.policy_optimizer = Adam(self.policy.parameters(), settings.actor_learning_rate, **behaviour)
        self.critic_optimizer = Adam(self.critic.parameters(), settings.critic_learning_rate, **behaviour)
        self.beliefs = Beliefs(self.model, device)

    @torch.no_grad()
    def act(self, obs: Array, *, first: Array, explore: bool, rng: Stream) -> Array:
        """A draw from the policy with Gaussian noise if exploring, else tanh of its mean."""
        state = self.beliefs.after(obs, first, explore, rng)
        if explore:
            drawn = self.policy.draw(state.features, self.policy.noise(len(obs), rng.torch))
            noise = torch.randn(drawn.shape, generator=rng.torch, device=self.device)
            action = (drawn + self.settings.exploration_noise * noise).clamp(-1.0, 1.0)
        else:
            action = self.policy.mode(state.features)
        self.beliefs.keep(explore, state, action)
        chosen: Array = action.cpu().numpy()
        return chosen

    def update(self, batch: Sequences, *, index: int, rng: Stream) -> Update:
        """One step of model, policy and critic, each down a gradient taken before any of them moved."""
        del index
        found = self.model.loss(batch, rng.torch)
        policy_loss, critic_loss = self._behaviour_losses(found, rng.torch)
        minimise_together(
            [
                (self.model_optimizer, found.loss),
                (self.policy_optimizer, policy_loss),
                (self.critic_optimizer, critic_loss),
            ]
        )
        losses = {"model_loss": found.loss, "actor_loss": policy_loss, "critic_loss": critic_loss}
        return Update({**{name: loss.detach() for name, loss in losses.items()}, **found.metrics})

    def _behaviour_losses(self, found: ModelLoss, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """-E[w_k R_k] for the policy and E[w_k (v_k - sg R_k)^2 / 2] for the critic, over imagined states k."""
        start, steps = found.posteriors.as_starts(), self.settings.imagined_steps
        states, _ = imagine(self.model.rssm, self.policy, start, steps, rng)
        features = states.features  # (H, rows, D), of the states that imagined actions led to
        discount = self.settings.imagined_discount * self.model.continues(features)
        returns = lambda_returns(
            self.model.reward(features), self.critic(features).squeeze(-1), discount, self.settings.return_lambda
        )  # (H - 1, rows)
        weight = found.valid.flatten() * survival(discount)[:-1]
        scale = len(returns) * weight[0].sum().clamp(min=1)
        policy_loss = -(weight * returns).sum() / scale
        values = self.critic(features[:-1].detach()).squeeze(-1)
        critic_loss = (weight * 0.5 * (values - returns.detach()).square()).sum() / scale
        return policy_loss, critic_loss
