"""What PEER adds to an update of Stable-Baselines3's TD3: 400x300 networks, batch 256, 17 + 6 inputs, one thread.

    python benchmarks/sb3_overhead.py

Timed is ``train`` with two gradient steps, one of which updates the actor, too: TD3's cycle. The rest of ``learn``,
steps of the environment above all, comes on top, and PEER adds nothing to it. Times are CPU times. All arms train the
same networks. They alternate call by call, in random order, because the machine's speed drifts; before each timed call
its arm makes one that is not counted. `added` is the median over rounds of an arm's time over the stock arm's in the
same round, with a bootstrap interval. The second arm, our class with beta 0, should read 0.

Measured in two processes: with glibc's default, which is what a script of yours gets, and after
``peer_rl.training.process.keep_freed_memory()``.
"""

from __future__ import annotations

import json
import os
import platform
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import stable_baselines3
import torch
from gymnasium import spaces
from peer_overhead import Row, added, by_allocator, read_options, table
from stable_baselines3.common.logger import Logger

from peer_rl.bench.updates import in_turns
from peer_rl.integrations.sb3 import TD3

BATCH, OBS, ACTION, ROWS = 256, 17, 6, 10_000
RESULT = Path(__file__).parent / "results" / "sb3_overhead.json"
ALLOCATORS = {"glibc's default": [], "memory kept": ["--keep"]}
ARMS = {
    "plain": (stable_baselines3.TD3, {}),
    "beta 0": (TD3, {"beta": 0.0}),
    "PEER": (TD3, {}),
    "CosinePEER": (TD3, {"regularizer": "cosine-peer"}),
}


class Spaces(gym.Env):
    """HalfCheetah's observations and actions; the rows are random numbers, because only time is of interest."""

    observation_space = spaces.Box(-np.inf, np.inf, (OBS,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (ACTION,), np.float32)


def agents() -> dict[str, stable_baselines3.TD3]:
    """One agent per arm; all of them train the same networks on the same rows, so that only the update differs."""
    found = {}
    for name, (kind, settings) in ARMS.items():
        model = kind("MlpPolicy", Spaces(), buffer_size=ROWS, device="cpu", seed=0, **settings)
        model.set_logger(Logger(folder=None, output_formats=[]))
        first = found.setdefault("plain", model)
        model.policy, model.replay_buffer = first.policy, first.replay_buffer
        model._create_aliases()
        found[name] = model
    rng, buffer = np.random.default_rng(0), found["plain"].replay_buffer
    for column in (buffer.observations, buffer.next_observations, buffer.rewards):
        column[:] = rng.normal(size=column.shape)
    buffer.actions[:] = rng.uniform(-1, 1, buffer.actions.shape)
    buffer.full = True
    return found


def measure(rounds: int) -> dict[str, Row]:
    calls = {name: partial(model.train, gradient_steps=2, batch_size=BATCH) for name, model in agents().items()}
    return added(in_turns(calls, rounds, untimed=1))


def main() -> None:
    options = read_options("What PEER adds to an update of Stable-Baselines3's TD3.", rounds=600, out=RESULT)
    results = {}
    for name, found in by_allocator(__file__, options, ALLOCATORS, measure):
        results[name] = found
        print(f"two gradient steps, {name}:\n{table(found)}\n", flush=True)
    record = {
        "what": "Stable-Baselines3's TD3, 400x300, batch 256, 17 + 6 inputs, two gradient steps, one thread, CPU time",
        "calls_per_arm": options.rounds,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "load_average": os.getloadavg()[1],
        "torch": torch.__version__,
        "stable_baselines3": stable_baselines3.__version__,
        "allocators": results,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
