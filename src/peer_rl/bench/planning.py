"""TD-MPC's update and plan at the published size on cartpole, and the matrix products that they need. One thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from peer_rl.bench.updates import agents_of, cost_of_peer, in_turns, milliseconds, share
from peer_rl.envs.spec import EnvSpec
from peer_rl.launch.random_batches import random_sequences
from peer_rl.rng import Stream
from peer_rl.settings import configure
from peer_rl.settings.run import AnyRunConfig
from peer_rl.training.process import keep_freed_memory

AGENTS = ("td-mpc",)
TASK = "dmc/cartpole-swingup"
STATE = EnvSpec((5,), "float32", action_shape=(1,), action_low=(-1.0,), action_high=(1.0,))
_CPU = torch.device("cpu")
_LATE = 1_000_001
"""An update that also moves the targets; the schedules have ended, so that a plan has the full horizon."""


class BareModel:
    """The model's linear layers in torch's own, without anything between them."""

    def __init__(self, config: AnyRunConfig) -> None:
        self.config, settings = config, config.settings
        latent, units, acted = settings.latent, settings.hidden, STATE.action_size
        self.encoder = _layers(STATE.observation_shape[0], settings.encoder_hidden, latent)
        self.dynamics = _layers(latent + acted, units, units, latent)
        self.reward = _layers(latent + acted, units, units, 1)
        self.policy = _layers(latent, units, units, acted)
        self.critics = [_layers(latent + acted, units, units, 1) for _ in range(2)]

    def values(self, z: Tensor, action: Tensor) -> Tensor:
        """Both critics' sum."""
        both = torch.cat([z, action], -1)
        return torch.stack([critic(both) for critic in self.critics]).sum()

    def update(self, obs: Tensor, action: Tensor) -> None:
        """The products of one update: ``obs`` (L + 1, B, d), ``action`` (L, B, A)."""
        latents = [self.encoder(obs[0])]
        for one in action:
            latents.append(self.dynamics(torch.cat([latents[-1], one], -1)))
        z, actions = torch.cat(latents[:-1]), action.flatten(0, 1)
        loss = self.values(z, actions) + self.reward(torch.cat([z, actions], -1)).sum() + latents[-1].sum()
        parts = (self.encoder, self.dynamics, self.reward, *self.critics)
        torch.autograd.grad(loss, [weight for part in parts for weight in part.parameters()])
        with torch.no_grad():
            following = obs[1:].flatten(0, 1)
            next_z = self.encoder(following)  # the online one's, and the target's
            self.encoder(following)
            self.values(next_z, self.policy(next_z))
        seen = torch.cat(latents).detach()
        torch.autograd.grad(self.values(seen, self.policy(seen)), list(self.policy.parameters()))

    @torch.no_grad()
    def plan(self, obs: Tensor) -> None:
        """The products of one plan with the full horizon."""
        settings = self.config.settings
        planner, acted = settings.planner, STATE.action_size
        start = self.encoder(obs)
        proposed = int(settings.policy_fraction * planner.samples)
        z = start.expand(proposed, -1)
        for _ in range(planner.horizon):
            z = self.dynamics(torch.cat([z, self.policy(z)], -1))
        action = torch.zeros(planner.samples + proposed, acted)
        for _ in range(planner.iterations):
            z = start.expand(len(action), -1)
            for _ in range(planner.horizon):
                both = torch.cat([z, action], -1)
                self.reward(both)
                z = self.dynamics(both)
            self.values(z, self.policy(z))


def _layers(*sizes: int) -> nn.Sequential:
    return nn.Sequential(*(nn.Linear(before, after) for before, after in pairwise(sizes)))


def contenders(config: AnyRunConfig) -> dict[str, Callable[[], Any]]:
    """One update and one plan: the bare products, the backbone's and, for the update, PEER's."""
    batch, rng = random_sequences(STATE, config.learning, _CPU), Stream(0, "bench", device=_CPU)
    bare, obs = BareModel(config), np.zeros((1, *STATE.observation_shape), np.float32)
    arms: dict[str, Callable[[], Any]] = {"products": partial(bare.update, batch.obs, batch.action)}
    for arm, agent in agents_of(config.agent, TASK, STATE, profile=config.profile).items():
        arms[arm] = partial(agent.update, batch, index=_LATE, rng=rng)
        agent.update(batch, index=_LATE, rng=rng)
    arms["plan"] = partial(agent.act, obs, first=np.array([True]), explore=True, rng=rng)
    arms["plan products"] = partial(bare.plan, torch.from_numpy(obs))
    return arms


def measure_planning(name: str, *, rounds: int, profile: str = "paper") -> dict[str, Any]:
    """Milliseconds of an update and of a plan, the products' share of each, and what PEER adds to the update."""
    keep_freed_memory()
    times = in_turns(contenders(configure(name, TASK, profile=profile, device="cpu")), rounds)
    return cost_of_peer(name, times) | {
        "unavoidable_ms": milliseconds(times["products"]),
        "unavoidable_share": share(times, "products", "plain"),
        "plan_ms": milliseconds(times["plan"]),
        "plan_unavoidable_ms": milliseconds(times["plan products"]),
        "plan_unavoidable_share": share(times, "plan products", "plan"),
    }
