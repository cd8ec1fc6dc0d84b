"""Evaluation: the policy without exploration, with an environment and random streams of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from peer_rl.agents import Actor
from peer_rl.envs.make import Env
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import RunError
from peer_rl.rng import Stream


@dataclass(frozen=True)
class Evaluation:
    """Every episode of one evaluation."""

    seeds: list[int]
    returns: list[float]
    lengths: list[int]

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(np.mean(self.returns))


@dataclass(frozen=True)
class Quota:
    """How much an evaluation plays: a least number of whole episodes and of agent steps."""

    episodes: int
    steps: int = 0

    def met(self, played: Evaluation) -> bool:
        """Whether that is enough."""
        return len(played.returns) >= self.episodes and sum(played.lengths) >= self.steps

    def share(self, played: Evaluation) -> str:
        """How much of it is played, as text."""
        if len(played.returns) < self.episodes:
            return f"{len(played.returns)}/{self.episodes}"
        return f"{sum(played.lengths)}/{self.steps} steps"


def evaluate(
    agent: Actor,
    env: Env,
    spec: EnvSpec,
    *,
    seeds: Iterable[int],
    rng: Stream,
    enough: Callable[[Evaluation], bool] = lambda played: False,
    show: Callable[[Evaluation], None] = lambda played: None,
) -> Evaluation:
    """Play one episode per seed until ``enough`` says so or the seeds run out; ``show`` is called at every step."""
    played = Evaluation([], [], [])
    for seed in seeds:
        observation, _ = env.reset(seed=seed)
        total, length, over = 0.0, 0, False
        while not over:
            obs = spec.encode(observation)[None]
            if not np.isfinite(obs).all():
                raise RunError(f"evaluation stopped: an observation is not finite (seed {seed})")
            action = agent.act(obs, first=np.array([length == 0]), explore=False, rng=rng)[0]
            observation, reward, terminated, truncated, _ = env.step(spec.decode(action))
            total += float(reward)
            if not math.isfinite(total):
                raise RunError(f"evaluation stopped: the environment gave the reward {reward} (seed {seed})")
            length += 1
            over = terminated or truncated
            show(played)
        played.seeds.append(seed)
        played.returns.append(total)
        played.lengths.append(length)
        if enough(played):
            break
    return played
