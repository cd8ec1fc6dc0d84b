"""What the replay costs: milliseconds of a draw, and memory really used against the formula.

Every replay is filled first. A draw is timed as the loop makes it: one step is added, a batch is drawn and dropped, and
a prioritised replay gets new priorities; one thread, processor time. Memory is the growth of a fresh process's resident
set from before the replay is made until it is full.
"""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

from peer_rl.bench.passes import cartpole
from peer_rl.bench.pixel_updates import ATARI
from peer_rl.envs.spec import EnvSpec
from peer_rl.launch.estimate import resident_memory
from peer_rl.replay.make import make_replay, replay_size
from peer_rl.replay.replay import Replay
from peer_rl.settings.replay import PrioritisedConfig
from peer_rl.settings.run import LearningConfig
from peer_rl.training.process import keep_freed_memory

_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Case:
    """A replay as an agent uses it."""

    spec: EnvSpec
    learning: LearningConfig
    episode: int
    """Steps of an episode."""


CASES = {
    "curl-rainbow": Case(ATARI, PrioritisedConfig(n_step=20, batch_size=32, buffer_size=100_000), 900),
    "drq-dqn": Case(ATARI, LearningConfig(n_step=10, batch_size=32, buffer_size=100_000), 900),
    "curl-sac": Case(cartpole(100), LearningConfig(batch_size=512, buffer_size=100_000), 250),
}
"""By agent: those whose replay is large."""


class Player:
    """Adds steps of random observations."""

    replay: Replay

    def __init__(self, case: Case) -> None:
        self.case, self.count = case, 0
        rng = np.random.default_rng(0)
        shape = case.spec.observation_shape
        self.observations = rng.integers(1, 256, (64, *shape), dtype=np.uint8).astype(case.spec.observation_dtype)
        self.first = self.observations[0].copy()
        self.first[: shape[0] - shape[0] // case.spec.stack] = 0  # blanks, as an environment pads its first stack
        self.action = np.zeros(*case.spec.action_column)

    def step(self) -> None:
        """Add one."""
        place, count = self.count % self.case.episode, self.count
        obs = self.observations[count % 64] if place else self.first
        following = self.observations[(count + 1) % 64]
        discount, last = float(place % 300 != 299), place == self.case.episode - 1
        self.replay.add(obs=obs, action=self.action, reward=1.0, next_obs=following, discount=discount, last=last)
        self.count += 1

    def fill(self) -> None:
        """Add until the ring is full."""
        self.replay = make_replay(self.case.learning, self.case.spec, _CPU)
        while self.replay.ring.total < self.replay.ring.capacity:
            self.step()


def filled(case: Case) -> tuple[Player, int]:
    """A player with a full replay, and the bytes by which the process has grown."""
    player = Player(case)
    before = resident_memory(os.getpid())
    player.fill()
    return player, resident_memory(os.getpid()) - before


def time_draws(player: Player, draws: int) -> list[float]:
    """Milliseconds of each; the step that is added before it is not counted."""
    rng, priorities = np.random.default_rng(0), torch.rand(player.case.learning.batch_size)
    times = []
    for _ in range(draws):
        player.step()
        began = time.process_time()
        batch = player.replay.sample(rng)
        if batch.weight is not None:
            player.replay.update_priorities(priorities)
        times.append(1e3 * (time.process_time() - began))
        del batch
    return times[draws // 10 :]


def measure_replay(agent: str, draws: int, rows: int | None = None) -> dict[str, Any]:
    """The agent's replay, or one of ``rows``, full, in a process of its own, so that the memory is its own too."""
    with get_context("spawn").Pool(1) as process:
        return process.apply(_measure, (agent, draws, rows))


def _measure(agent: str, draws: int, rows: int | None) -> dict[str, Any]:
    keep_freed_memory()
    torch.set_num_threads(1)
    case = CASES[agent]
    if rows:
        case = replace(case, learning=replace(case.learning, buffer_size=rows))
    player, grown = filled(case)
    times = time_draws(player, draws)
    size = replay_size(case.learning, case.spec)
    return {
        "agent": agent,
        "what": str(size),
        "ms_median": statistics.median(times),
        "ms_least": min(times),
        "bytes_per_row": size.bytes / size.rows,
        "bytes_per_transition": size.bytes / len(player.replay),
        "gigabytes_formula": size.bytes / 1e9,
        "gigabytes_measured": grown / 1e9,
    }
