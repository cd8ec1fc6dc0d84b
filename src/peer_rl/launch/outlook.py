"""How long a run from DMControl's pixels will take, told before it starts.

Measured with an agent and an environment of their own, which are thrown away: the run that follows has seen nothing
of it (law 2).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from peer_rl.agents.make import build_agent
from peer_rl.envs.make import env_of, spec_of
from peer_rl.envs.spec import EnvSpec
from peer_rl.launch.api import resolve_device
from peer_rl.replay.make import make_replay
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings import configure
from peer_rl.settings.environment import sees_pixels
from peer_rl.settings.run import AnyRunConfig
from peer_rl.settings.tasks import find_task
from peer_rl.training.memory import keep_freed_memory
from peer_rl.training.processor import processor

EPISODE_FRAMES = 1_000
"""Of every task that DMControl has for us."""
_TURNS, _ENOUGH_SECONDS = 5, 2.0
_LONG = 6 * 3_600.0


@dataclass(frozen=True)
class Outlook:
    """What one update and one played step cost, and how often a run pays for them."""

    update_seconds: float
    step_seconds: float
    updates: int
    played_steps: int
    """Of training and of evaluation."""

    @property
    def seconds(self) -> float:
        """The run's."""
        return self.updates * self.update_seconds + self.played_steps * self.step_seconds


def foretell(config: AnyRunConfig, *, begin: int = 0) -> str:
    """One sentence about the run from step ``begin`` on; empty for a run that this page knows nothing about."""
    if not sees_pixels(config.agent, find_task(config.task)) or config.steps is None or begin >= config.steps:
        return ""
    found = measure(config, begin=begin)
    told = f"about {duration(found.seconds)} on this machine ({found.update_seconds:.2g} s an update)"
    if found.seconds < _LONG or config.profile != "paper":
        return told
    small = measure(configure(config.agent, config.task, profile="small", device=config.device))
    return f"{told}; --profile small takes about {duration(small.seconds)}"


def measure(config: AnyRunConfig, *, begin: int = 0) -> Outlook:
    """A few updates from random frames, and a few steps of the environment with the agent's actions."""
    config = replace(config, device=resolve_device(config.device))
    keep_freed_memory()
    env = env_of(config)
    try:
        with processor(config.threads):
            spec, device = spec_of(env), torch.device(config.device)
            make_replay(config.learning, spec, device, steps=config.steps)  # refuses what the run could not hold
            agent, rng = build_agent(config, spec, device), Stream(0, "outlook", device=device)
            batch = random_frames(spec, config.learning.batch_size, device)
            obs, first = spec.encode(env.reset(seed=0)[0]), np.array([True])

            def play() -> None:
                env.step(spec.decode(agent.act(obs[None], first=first, explore=True, rng=rng)[0]))

            def learn() -> None:
                for value in agent.update(batch, index=1, rng=rng).metrics.values():
                    value.item()  # waits for the device

            return _count(config, begin, update_seconds=_seconds(learn), step_seconds=_seconds(play))
    finally:
        env.close()


def _count(config: AnyRunConfig, begin: int, **seconds: float) -> Outlook:
    """How many updates and steps are to come; the evaluations that are due are played too."""
    learning, protocol, steps = config.learning, config.protocol, config.steps or 0
    learns_from = max(begin, learning.start_steps)
    updates = max(0, steps - learns_from) // learning.update_every * learning.updates
    evaluations = -(-steps // protocol.eval_every) - begin // protocol.eval_every if protocol.eval_every else 0
    episode = config.max_episode_steps or EPISODE_FRAMES // (config.action_repeat or 1)
    evaluated = evaluations * protocol.eval_episodes * episode
    return Outlook(updates=updates, played_steps=steps - begin + evaluated, **seconds)


def random_frames(spec: EnvSpec, rows: int, device: torch.device) -> Batch:
    """Transitions of noise; s and s' lie as the replay gives them with returns of several steps: no frame is shared."""
    rng = np.random.default_rng(0)
    obs, next_obs = rng.integers(256, size=(2, rows, *spec.observation_shape), dtype=np.uint8)
    columns: dict[str, Any] = {
        "action": rng.uniform(-1, 1, (rows, spec.action_size)).astype(np.float32),
        "reward": rng.uniform(0, 1, rows).astype(np.float32),
        "discount": np.full(rows, 0.99, np.float32),
    }
    return Batch.from_numpy(obs=obs, next_obs=next_obs, device=device, **columns)


def _seconds(act: Callable[[], None]) -> float:
    """Of one act: the median of a few, the first left out unless acts are slow enough to be told from one."""
    times: list[float] = []
    while len(times) < _TURNS and sum(times) < _ENOUGH_SECONDS:
        began = time.perf_counter()
        act()
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:] or times)


def duration(seconds: float) -> str:
    """Days, hours or minutes, whichever says it in a small number."""
    unit, size = next(
        ((unit, size) for unit, size in (("day", 86_400), ("hour", 3_600)) if seconds >= 1.5 * size), ("minute", 60)
    )
    count = max(1, round(seconds / size))
    return f"{count} {unit}{'s' * (count > 1)}"
