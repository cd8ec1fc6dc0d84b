"""Where the time of a TD3 update goes: ours and Stable-Baselines3's.

    python benchmarks/update_profile.py

For one and two threads, half-cheetah's size (17 + 6 inputs, two layers of 256, batch 256), medians over turns:

- products: the update's matrix products alone (peer_rl.bench.updates), which no library can avoid;
- calls: the same update with networks of 4 units and a batch of 2, where arithmetic is nothing: the fixed price of
  Python and of calls into torch;
- passes: the rest: biases, ReLUs, losses, their gradients, Adam and the targets, each a pass over memory.

`bound` is how many times Stable-Baselines3's speed an update would have that did nothing but products and our calls.
Results go to benchmarks/results/update_profile.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import TD3

from peer_rl.agents.make import build_agent
from peer_rl.bench.updates import ACTIONS, BATCH, OBS, WIDTH, td3_products
from peer_rl.envs.spec import EnvSpec
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings import configure
from peer_rl.training.process import keep_freed_memory

RESULT = Path(__file__).parent / "results" / "update_profile.json"
CPU = torch.device("cpu")


class Nowhere(gym.Env[Any, Any]):
    """Half-cheetah's spaces without a simulator: Stable-Baselines3 wants an environment."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (OBS,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (ACTIONS,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(OBS, np.float32), {}


def ours(width: int, rows: int) -> Callable[[], None]:
    """Two updates of our TD3, the second with the actor's."""
    limits = (1.0,) * ACTIONS
    spec = EnvSpec((OBS,), "float32", action_shape=(ACTIONS,), action_low=tuple(-x for x in limits), action_high=limits)
    networks = {"settings.actor.hidden": (width, width), "settings.critic.hidden": (width, width)}
    agent = build_agent(configure("td3", "mujoco/half-cheetah", beta=0.0, device="cpu", **networks), spec, CPU)
    draw, rng = torch.Generator().manual_seed(0), Stream(0, "profile", device=CPU)
    batch = Batch(
        obs=torch.randn(rows, OBS, generator=draw),
        action=torch.rand(rows, ACTIONS, generator=draw) * 2 - 1,
        reward=torch.randn(rows, generator=draw),
        discount=torch.full((rows,), 0.99),
        next_obs=torch.randn(rows, OBS, generator=draw),
    )

    def updates() -> None:
        for index in range(2):
            agent.update(batch, index=index, rng=rng)

    return updates


def theirs(width: int, rows: int) -> Callable[[], None]:
    """Two updates of Stable-Baselines3's TD3, its sampling included."""
    net = {"net_arch": [width, width]}
    model = TD3("MlpPolicy", Nowhere(), batch_size=rows, policy_kwargs=net, buffer_size=2_000, device="cpu")
    model._setup_learn(1)
    rng = np.random.default_rng(0)
    for _ in range(1_000):
        seen, seen_next = rng.normal(size=(2, 1, OBS)).astype(np.float32)
        action = rng.uniform(-1, 1, (1, ACTIONS)).astype(np.float32)
        model.replay_buffer.add(seen, seen_next, action, np.zeros(1), np.zeros(1), [{}])
    return lambda: model.train(2, rows)


def medians(arms: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Milliseconds of one update, each arm in turn."""
    times: dict[str, list[float]] = {name: [] for name in arms}
    for index in range(rounds + 10):
        for name, arm in arms.items():
            began = time.perf_counter()
            arm()
            if index >= 10:
                times[name].append(time.perf_counter() - began)
    return {name: 500 * statistics.median(found) for name, found in times.items()}


def profile(threads: int, rounds: int) -> dict[str, Any]:
    """Where an update's time goes with this many threads."""
    torch.set_num_threads(threads)
    whole = medians({"ours": ours(WIDTH, BATCH), "theirs": theirs(WIDTH, BATCH), "products": td3_products()}, rounds)
    fixed = medians({"ours": ours(4, 2), "theirs": theirs(4, 2)}, rounds)
    rows = {
        name: {
            "update_ms": whole[name],
            "products_ms": whole["products"],
            "calls_ms": fixed[name],
            "passes_ms": whole[name] - whole["products"] - fixed[name],
        }
        for name in ("ours", "theirs")
    }
    return {
        "threads": threads,
        **rows,
        "ratio": whole["theirs"] / whole["ours"],
        "bound": whole["theirs"] / (whole["products"] + fixed["ours"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    keep_freed_memory()
    found = [profile(threads, rounds) for threads in (1, 2)]
    RESULT.write_text(json.dumps({"rounds": rounds, "profiles": found}, indent=2) + "\n")
    for row in found:
        print(f"{row['threads']} thread(s): ratio {row['ratio']:.2f}, bound {row['bound']:.2f}")
        for name in ("ours", "theirs"):
            print("  ", name, {key: round(value, 2) for key, value in row[name].items()})


if __name__ == "__main__":
    main()
