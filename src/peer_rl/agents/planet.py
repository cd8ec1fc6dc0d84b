"""PlaNet (Hafner et al. 2019): a world model, and planning in it by the cross-entropy method."""

from __future__ import annotations

import torch
from torch import Tensor

from peer_rl.agents import Array, Stateful, Update
from peer_rl.agents.beliefs import Beliefs
from peer_rl.agents.planning import plan
from peer_rl.envs.spec import EnvSpec
from peer_rl.networks.optimizer import Adam
from peer_rl.networks.rssm import State
from peer_rl.networks.world_model import WorldModel
from peer_rl.plugin import Regularizer
from peer_rl.replay.sequences import Sequences
from peer_rl.rng import Stream
from peer_rl.settings.planet import PlaNetConfig


class PlaNet(Stateful):
    """No critic and no policy: an action is the first of the best sequence that the model can imagine."""

    parts = ("model", "optimizer")

    def __init__(
        self, settings: PlaNetConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device
    ) -> None:
        self.settings, self.regularizer, self.device = settings, regularizer, device
        self.actions = spec.action_size
        weights = rng.for_weights()
        self.model = WorldModel(spec.observation_shape, spec.action_size, settings, weights).to(device)
        self.optimizer = Adam(
            self.model.parameters(),
            settings.model_learning_rate,
            epsilon=settings.model_epsilon,
            max_gradient_norm=settings.max_gradient_norm,
        )
        self.beliefs = Beliefs(self.model, device)

    @torch.no_grad()
    def act(self, obs: Array, *, first: Array, explore: bool, rng: Stream) -> Array:
        """The first action of a plan, with Gaussian noise if exploring."""
        state = self.beliefs.after(obs, first, explore, rng)
        action = torch.stack([self._plan(state.rows(slice(row, row + 1)), rng.torch) for row in range(len(obs))])
        if explore:
            noise = torch.randn(action.shape, generator=rng.torch, device=self.device)
            action = (action + self.settings.exploration_noise * noise).clamp(-1.0, 1.0)
        self.beliefs.keep(explore, state, action)
        chosen: Array = action.cpu().numpy()
        return chosen

    def _plan(self, state: State, rng: torch.Generator) -> Tensor:
        """The best first action, (A,), from one state; every plan starts from scratch."""
        start = torch.zeros(self.settings.planner.horizon, self.actions, device=self.device)
        found = plan(lambda actions: self._returns(state, actions, rng), start, self.settings.planner, rng)
        return found.mean[0]

    def _returns(self, state: State, actions: Tensor, rng: torch.Generator) -> Tensor:
        """The sum of predicted rewards along each action sequence, (H, N, A) -> (N,)."""
        many = State(*(part.expand(actions.shape[1], -1) for part in state))
        following = iter(actions)
        states, _ = self.model.rssm.imagine(many, lambda _: next(following), len(actions), rng)
        return self.model.reward(states.features).sum(0)

    def update(self, batch: Sequences, *, index: int, rng: Stream) -> Update:
        """One step of the world model."""
        del index
        found = self.model.loss(batch, rng.torch)
        self.optimizer.minimise(found.loss)
        return Update({"model_loss": found.loss.detach(), **found.metrics})
