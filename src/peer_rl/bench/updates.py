"""What an update is made of: the matrix products it cannot avoid, PEER, and the rest. One thread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from peer_rl.agents import Agent
from peer_rl.agents.make import build_agent
from peer_rl.envs.spec import EnvSpec
from peer_rl.launch.random_batches import random_transitions
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings import configure
from peer_rl.training.process import keep_freed_memory, processor

BATCH, OBS, ACTIONS, WIDTH = 256, 17, 6, 256  # half-cheetah
HALF_CHEETAH = EnvSpec(
    (OBS,), "float32", action_shape=(ACTIONS,), action_low=(-1.0,) * ACTIONS, action_high=(1.0,) * ACTIONS
)
_CPU = torch.device("cpu")
_WARM_UP = 20
BETAS = {"plain": 0.0, "peer": 5e-4, "plain again": 0.0}
"""By arm: what PEER adds, and what is noise."""
Row = dict[str, Any]


def agents_of(name: str, task: str, spec: EnvSpec, *, profile: str = "paper") -> dict[str, Agent]:
    """The agent of each arm, without the simulator."""
    configs = {arm: configure(name, task, profile=profile, beta=beta, device="cpu") for arm, beta in BETAS.items()}
    return {arm: build_agent(config, spec, _CPU) for arm, config in configs.items()}


def td3_products() -> Callable[[], None]:
    """The products of two TD3 updates, one of which has the actor's, and nothing else.

    The critics' last layer has one output: its products are inner and outer ones of vectors (networks/mlp.py).
    """
    obs, hidden, action = torch.randn(BATCH, OBS), torch.randn(BATCH, WIDTH), torch.randn(BATCH, ACTIONS)
    both = torch.randn(BATCH, OBS + ACTIONS).expand(2, -1, -1)  # both heads read one input
    pair = both, torch.randn(2, BATCH, WIDTH)
    actor = torch.randn(WIDTH, OBS), torch.randn(WIDTH, WIDTH), torch.randn(ACTIONS, WIDTH)
    critic = torch.randn(2, OBS + ACTIONS, WIDTH), torch.randn(2, WIDTH, WIDTH)
    head, value = torch.randn(2, 1, WIDTH), torch.randn(2, BATCH, 1)

    def actor_forward() -> None:
        torch.mm(obs, actor[0].T), torch.mm(hidden, actor[1].T), torch.mm(hidden, actor[2].T)

    def actor_backward() -> None:
        torch.mm(action.T, hidden), torch.mm(action, actor[2])
        torch.mm(hidden.T, hidden), torch.mm(hidden, actor[1])
        torch.mm(hidden.T, obs)

    def critic_forward(heads: int) -> None:
        for x, weight in zip(pair, critic, strict=True):
            torch.bmm(x[:heads], weight[:heads])
        torch.linalg.vecdot(pair[1][:heads], head[:heads])

    def critic_backward_to_weights() -> None:
        torch.linalg.vecdot(pair[1], value, dim=1), value * head
        torch.bmm(pair[1].mT, pair[1]), torch.bmm(pair[1], critic[1].mT)
        torch.bmm(pair[0].mT, pair[1])

    def critic_backward_to_action() -> None:
        value[:1] * head[:1]
        torch.bmm(pair[1][:1], critic[1][:1].mT), torch.bmm(pair[1][:1], critic[0][:1].mT)

    @torch.no_grad()
    def products() -> None:
        for _ in range(2):
            actor_forward()  # a' = pi'(s')
            critic_forward(2)  # Q'(s', a')
            critic_forward(2)  # Q(s, a)
            critic_backward_to_weights()
        actor_forward()  # pi(s)
        critic_forward(1)  # Q_1(s, pi(s))
        critic_backward_to_action()
        actor_backward()

    return products


def measure(name: str, *, rounds: int) -> Row:
    """Milliseconds of an update with and without PEER, what PEER adds, and for TD3 the products' share."""
    keep_freed_memory()
    batch, rng = random_transitions(HALF_CHEETAH, BATCH, _CPU), Stream(0, "bench", device=_CPU)
    agents = agents_of(name, "mujoco/half-cheetah", HALF_CHEETAH)
    arms = {arm: two_updates(agent, batch, rng) for arm, agent in agents.items()}
    if name == "td3":
        arms["products"] = td3_products()
    times = in_turns(arms, rounds)
    row = cost_of_peer(name, times, updates=2)
    if name == "td3":
        row |= {"products_ms": milliseconds(times["products"], 2), "products_share": share(times, "products", "plain")}
    return row


def milliseconds(seconds: list[float], updates: int = 1) -> float:
    """The median, of one update."""
    return 1_000 * statistics.median(seconds) / updates


def cost_of_peer(name: str, times: dict[str, list[float]], *, updates: int = 1) -> Row:
    """What all agents' measurements begin with; ``updates`` are in one turn."""
    plain = times["plain"]
    added, noise = ratio(times["peer"], plain), ratio(times["plain again"], plain)
    return {"agent": name, "update_ms": milliseconds(plain, updates), "peer_adds": added, "noise": noise}


def share(times: dict[str, list[float]], part: str, whole: str) -> float:
    """The fraction of one arm's time that another takes."""
    return 1 / (1 + ratio(times[whole], times[part])["median"])


def two_updates(agent: Agent, batch: Batch, rng: Stream) -> Callable[[], None]:
    """Two updates of an agent, one of which moves the actor."""

    def updates() -> None:
        agent.update(batch, index=0, rng=rng)
        agent.update(batch, index=1, rng=rng)

    return updates


def in_turns(arms: dict[str, Callable[[], None]], rounds: int, *, untimed: int = 0) -> dict[str, list[float]]:
    """Seconds of each arm, one call each in changing order, so that drift and neighbours hit all alike.

    The processor's, not the clock's: on a busy machine a single thread waits, and that is no cost of an update.
    ``untimed`` calls come before each timed one, where an arm leaves caches or the allocator as the next would not.
    """
    order = np.random.default_rng(0)
    times: dict[str, list[float]] = {name: [] for name in arms}
    with processor(threads=1):
        for index in range(_WARM_UP + rounds):
            for name in order.permutation(list(arms)):
                for _ in range(untimed):
                    arms[name]()
                began = time.process_time()
                arms[name]()
                if index >= _WARM_UP:
                    times[name].append(time.process_time() - began)
    return times


def ratio(arm: list[float], base: list[float]) -> dict[str, float]:
    """Median of paired ratios minus 1, with a 95 % bootstrap interval."""
    ratios = np.array(arm) / np.array(base) - 1
    draws = np.random.default_rng(0).choice(ratios, (2_000, len(ratios)))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    return {"median": float(np.median(ratios)), "low": float(low), "high": float(high)}
