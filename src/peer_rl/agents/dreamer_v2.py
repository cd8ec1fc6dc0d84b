"""Dreamer-V2 (Hafner et al. 2021): categorical states, KL balancing, and a slow critic that returns bootstrap from."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from peer_rl.agents import Array, Stateful, Update
from peer_rl.agents.beliefs import Beliefs
from peer_rl.agents.imagination import imagine, lambda_returns, survival
from peer_rl.envs.spec import EnvSpec
from peer_rl.networks.optimizer import Adam, minimise_together, target_of
from peer_rl.networks.policies import DiscretePolicy, TruncatedPolicy
from peer_rl.networks.world_model import ModelLoss, WorldModel, head
from peer_rl.plugin import Regularizer
from peer_rl.replay.sequences import Sequences
from peer_rl.rng import Stream
from peer_rl.settings.dreamer_v2 import DreamerV2Config


class DreamerV2(Stateful):
    """Actions are vectors in [-1, 1], or integers. The critic values states, not actions: PEER does not apply."""

    parts = ("model", "policy", "critic", "slow_critic", "model_optimizer", "policy_optimizer", "critic_optimizer")

    def __init__(
        self, settings: DreamerV2Config, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device
    ) -> None:
        self.settings, self.regularizer, self.device = settings, regularizer, device
        self.discrete = spec.actions > 0
        by_action = settings.actor_gradient == "by-action"
        self.reinforce = self.discrete if by_action else settings.actor_gradient == "reinforce"
        weights = rng.for_weights()
        actions = spec.actions or spec.action_size
        self.model = WorldModel(spec.observation_shape, actions, settings, weights).to(device)
        shape = (self.model.rssm.features, actions, settings.units, settings.actor_layers)
        self.policy: DiscretePolicy | TruncatedPolicy = (
            DiscretePolicy(*shape, weights)
            if self.discrete
            else TruncatedPolicy(*shape, settings.least_action_std, weights)
        ).to(device)
        features = self.model.rssm.features
        self.critic = head(features, settings.units, settings.critic_layers, 1, weights).to(device)
        self.slow_critic = target_of(self.critic)
        self.model_optimizer = self._adam(self.model, settings.model_learning_rate, settings.model_epsilon)
        self.policy_optimizer = self._adam(self.policy, settings.actor_learning_rate, settings.behaviour_epsilon)
        self.critic_optimizer = self._adam(self.critic, settings.critic_learning_rate, settings.behaviour_epsilon)
        self.beliefs = Beliefs(self.model, device)

    def _adam(self, network: nn.Module, learning_rate: float, epsilon: float) -> Adam:
        decay = self.settings.weight_decay / learning_rate  # AdamW's kernel multiplies it by the learning rate
        norm = self.settings.max_gradient_norm
        options: dict[str, Any] = {"epsilon": epsilon, "weight_decay": decay, "decoupled": True}
        return Adam(network.parameters(), learning_rate, max_gradient_norm=norm, **options)

    @torch.no_grad()
    def act(self, obs: Array, *, first: Array, explore: bool, rng: Stream) -> Array:
        """A draw from the policy if exploring, else its mode."""
        state = self.beliefs.after(obs, first, explore, rng)
        if explore:
            action = self.policy.draw(state.features, self.policy.noise(len(obs), rng.torch))
            if not self.discrete and self.settings.exploration_noise:
                noise = torch.randn(action.shape, generator=rng.torch, device=self.device)
                action = (action + self.settings.exploration_noise * noise).clamp(-1.0, 1.0)
        else:
            action = self.policy.mode(state.features)
        self.beliefs.keep(explore, state, action)
        chosen: Array = (action.argmax(-1) if self.discrete else action).cpu().numpy()
        return chosen

    def update(self, batch: Sequences, *, index: int, rng: Stream) -> Update:
        """One step of model, policy and critic, each down a gradient taken before any of them moved."""
        if index % self.settings.slow_critic_every == 0:
            self.slow_critic.load_state_dict(self.critic.state_dict())
        found = self.model.loss(batch, rng.torch)
        policy_loss, critic_loss, entropy = self._behaviour_losses(found, rng.torch)
        minimise_together(
            [
                (self.model_optimizer, found.loss),
                (self.policy_optimizer, policy_loss),
                (self.critic_optimizer, critic_loss),
            ]
        )
        losses = {"model_loss": found.loss, "actor_loss": policy_loss, "critic_loss": critic_loss, "entropy": entropy}
        return Update({**{name: loss.detach() for name, loss in losses.items()}, **found.metrics})

    def _behaviour_losses(self, found: ModelLoss, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """The policy's loss, the critic's, and the policy's entropy, over imagined states 0 to H.

        R_k bootstraps from the slow critic. The action of state k leads to state k + 1, so the policy at k answers for
        R_{k+1}: by its gradient through the dynamics, or by log pi(a_k) (R_{k+1} - v_k).
        """
        start = found.posteriors.as_starts()
        states, actions = imagine(self.model.rssm, self.policy, start, self.settings.imagined_steps, rng)
        features = torch.cat([start.features.unsqueeze(0), states.features])  # (H + 1, rows, D)
        known = torch.ones(1, len(start.belief), device=self.device)  # episodes continue from where trajectories start
        discount = self.settings.imagined_discount * torch.cat([known, self.model.continues(states.features)])
        values = self.slow_critic(features).squeeze(-1)
        returns = lambda_returns(
            self.model.reward(features), values, discount, self.settings.return_lambda
        )  # (H, rows)
        weight = found.valid.flatten() * survival(discount)
        rows = weight[0].sum().clamp(min=1)

        seen = features[:-2].detach()  # states 0 to H - 2, whose actions a return follows
        entropy = self.policy.entropy(seen)
        if self.reinforce:
            baseline = values[:-2].detach()
            log_prob = self.policy.log_prob(seen, actions[:-1].detach())
            objective = log_prob * (returns[1:].detach() - baseline)
        else:
            objective = returns[1:]
        objective = objective + self.settings.entropy_weight * entropy
        policy_loss = -(weight[:-2] * objective).sum() / (len(objective) * rows)
        predicted = self.critic(features[:-1].detach()).squeeze(-1)
        error = 0.5 * (predicted - returns.detach()).square()
        critic_loss = (weight[:-1] * error).sum() / (len(error) * rows)
        return policy_loss, critic_loss, entropy.mean()
