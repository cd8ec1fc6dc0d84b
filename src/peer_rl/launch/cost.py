"""What a slow run's updates and steps cost, measured before it starts: from pixels, or with a planner."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from peer_rl.settings import configure, find_agent
from peer_rl.settings.custom import is_custom
from peer_rl.settings.environment import sees_pixels
from peer_rl.settings.replay import SequenceConfig
from peer_rl.settings.run import AnyRunConfig
from peer_rl.settings.tasks import find_task

_UPDATES, _UPDATE_SECONDS = 5, 2.0
_SHORT, _LONG = 10 * 60.0, 6 * 3_600.0
_SLOW = {"update_seconds": 1.0, "step_seconds": 0.02}
"""More than what an update and a step cost from state: a run that is short at this pace is not measured."""
_LATE = 1_000_001
"""Index of the updates that are timed: every second one moves the actor, and an agent's schedules have ended."""
_EPISODE_FRAMES = 1_000
"""Of one episode of DMControl."""


@dataclass(frozen=True)
class Cost:
    """What one update and one played step cost, and how many of them a run has."""

    update_seconds: float
    step_seconds: float
    updates: int
    played_steps: int
    """Of training and of evaluation."""

    @property
    def seconds(self) -> float:
        """The run's."""
        return self.updates * self.update_seconds + self.played_steps * self.step_seconds


def expected_time(config: AnyRunConfig, *, begin: int = 0) -> str:
    """One sentence about a run that takes ten minutes or longer from step ``begin`` on; empty for all other runs.

    Runs that learn from pixels or plan always get one.
    """
    if config.steps is None or begin >= config.steps or find_agent(config.agent).packages:
        return ""
    always = is_slow(config)
    if not always and count_cost(config, begin, **_SLOW).seconds < _SHORT:
        return ""
    found = measure_cost(config, begin=begin)
    if found.seconds < _SHORT and not always:
        return ""
    words = f"about {duration(found.seconds)} on this machine ({found.update_seconds:.2g} s an update)"
    if found.seconds < _LONG or config.profile != "paper" or is_custom(config.agent):
        return words
    small = measure_cost(configure(config.agent, config.task, profile="small", device=config.device))
    return f"{words}; --profile small takes about {duration(small.seconds)}"


def is_slow(config: AnyRunConfig) -> bool:
    """Whether the run learns from pixels or plans, which takes hours or days without a GPU."""
    return sees_pixels(config.agent, find_task(config.task)) or isinstance(config.learning, SequenceConfig)


def measure_cost(config: AnyRunConfig, *, begin: int = 0) -> Cost:
    """A few updates from random observations, and a few steps of the environment with the agent's actions."""
    import torch

    from peer_rl.agents.make import build_agent
    from peer_rl.envs.make import env_of, spec_of
    from peer_rl.launch.api import resolve_device
    from peer_rl.launch.random_batches import random_batch
    from peer_rl.replay.make import make_replay
    from peer_rl.rng import Stream
    from peer_rl.training.process import keep_freed_memory, processor

    config = replace(config, device=resolve_device(config.device))
    keep_freed_memory()
    env = env_of(config)
    try:
        with processor(config.threads):
            spec, device = spec_of(env), torch.device(config.device)
            make_replay(config.learning, spec, device, steps=config.steps)  # refuses what the run could not hold
            agent, rng = build_agent(config, spec, device), Stream(0, "outlook", device=device)
            batch = random_batch(spec, config, device)
            obs, first = spec.encode(env.reset(seed=0)[0]), np.array([True])

            def play() -> None:
                env.step(spec.decode(agent.act(obs[None], first=first, explore=True, rng=rng)[0]))

            def learn() -> None:
                for value in agent.update(batch, index=_LATE, rng=rng).metrics.values():
                    value.item()  # waits for the device

            return count_cost(config, begin, update_seconds=_median_seconds(learn), step_seconds=_median_seconds(play))
    finally:
        env.close()


def count_cost(config: AnyRunConfig, begin: int, **seconds: float) -> Cost:
    """How many updates and steps are to come, those of the evaluations included."""
    learning, protocol, steps = config.learning, config.protocol, config.steps or 0
    updates = max(0, steps - max(begin, learning.start_steps)) // learning.update_every * learning.updates
    updates += learning.pretrain if begin <= learning.start_steps < steps else 0
    evaluations = -(-steps // protocol.eval_every) - begin // protocol.eval_every if protocol.eval_every else 0
    episode = config.max_episode_steps or _EPISODE_FRAMES // (config.action_repeat or 1)
    evaluated = evaluations * protocol.eval_episodes * episode
    return Cost(updates=updates, played_steps=steps - begin + evaluated, **seconds)


def _median_seconds(act: Callable[[], None]) -> float:
    """Of one act; the first is left out unless acts are so slow that there is only one."""
    times: list[float] = []
    while len(times) < _UPDATES and sum(times) < _UPDATE_SECONDS:
        began = time.perf_counter()
        act()
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:] or times)


def duration(seconds: float) -> str:
    """Days, hours or minutes, whichever gives a small number."""
    unit, size = next(
        ((unit, size) for unit, size in (("day", 86_400), ("hour", 3_600)) if seconds >= 1.5 * size), ("minute", 60)
    )
    count = max(1, round(seconds / size))
    return f"{count} {unit}{'s' * (count > 1)}"
