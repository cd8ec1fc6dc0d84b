"""Tiny PlaNet, Dreamer and Dreamer-V2 agents, and windows for them."""

import dataclasses

import torch

from peer_rl.agents.make import make_agent
from peer_rl.envs.spec import EnvSpec
from peer_rl.plugin import make
from peer_rl.replay.sequences import Sequences
from peer_rl.rng import Stream
from peer_rl.settings import AGENTS

CPU = torch.device("cpu")
TIME, ROWS = 5, 3
CLOSE = {"rtol": 1e-8, "atol": 1e-11}
VECTORS = EnvSpec((4,), "float32", action_shape=(2,), action_low=(-1.0, -1.0), action_high=(1.0, 1.0))
DISCRETE = EnvSpec((4,), "float32", actions=3)


def stream(name="test"):
    return Stream(0, name, device=CPU)


def agent_of(name, spec=VECTORS, **changes):
    defaults = AGENTS[name].settings()
    rssm = dataclasses.replace(defaults.rssm, belief=6, hidden=6, variables=3, classes=4)
    settings = dataclasses.replace(defaults, **{"units": 8, "rssm": rssm, **changes})
    return make_agent(name, settings, spec, regularizer=make("none", 0.0), rng=stream("weights"), device=CPU)


def window(*, discrete=False, seed=0):
    rng = torch.Generator().manual_seed(seed)
    obs = torch.randn(TIME + 1, ROWS, 4, generator=rng)
    actions = torch.rand(TIME, ROWS, 2, generator=rng) * 2 - 1
    before = torch.full((ROWS, 2), 0.5)
    if discrete:
        actions, before = torch.randint(3, (TIME, ROWS), generator=rng), torch.ones(ROWS, dtype=torch.int64)
    mask = torch.ones(TIME, ROWS)
    mask[3:, 1] = 0
    discount = 0.99 * mask
    discount[2, 1] = 0  # row 1 terminates
    return Sequences(
        obs=obs, next_obs=obs[1:], action=actions, reward=mask * torch.rand(TIME, ROWS, generator=rng),
        discount=discount, mask=mask, last=torch.zeros(TIME, ROWS), first=torch.tensor([1.0, 1.0, 0.0]),
        previous_action=before, weight=None,
    )  # fmt: skip
