"""What one update and one action of the model-based agents cost on cartpole-swingup, and what a run would take.

    python benchmarks/model_costs.py

One thread, the processor's time, medians of a few; in the small profile and at the published size. A run has 100,000
environment steps and all of its evaluations; nothing is simulated or rendered. Writes results/model_costs.json.
"""

import json
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from peer_rl.agents.make import build_agent
from peer_rl.bench.planning import STATE
from peer_rl.envs.spec import EnvSpec
from peer_rl.launch.cost import count_cost
from peer_rl.launch.random_batches import random_sequences
from peer_rl.plugin import SignedFeaturesWarning
from peer_rl.rng import Stream
from peer_rl.settings import configure
from peer_rl.settings.run import AnyRunConfig
from peer_rl.training.process import keep_freed_memory, processor

RESULTS = Path(__file__).parent / "results" / "model_costs.json"
TASK, FRAMES = "dmc/cartpole-swingup", 100_000
CPU = torch.device("cpu")
ROWS = (  # agent, profile, updates that are timed
    ("td-mpc", "small", 20),
    ("planet", "small", 9),
    ("dreamer", "small", 5),
    ("dreamer-v2", "small", 5),
    ("td-mpc-pixels", "small", 9),
    ("planet-pixels", "small", 3),
    ("dreamer-pixels", "small", 3),
    ("dreamer-v2-pixels", "small", 3),
    ("td-mpc", "paper", 5),
    ("td-mpc-pixels", "paper", 1),
    ("planet-pixels", "paper", 1),
    ("dreamer-v2-pixels", "paper", 1),
    ("dreamer-pixels", "paper", 1),
)


def median_ms(act: Callable[[], object], times: int) -> float:
    """Of the processor's time; the first act is not counted."""
    act()
    found = []
    for _ in range(times):
        began = time.process_time()
        act()
        found.append(time.process_time() - began)
    return round(1_000 * statistics.median(found), 1)


def spec_of(config: AnyRunConfig) -> EnvSpec:
    """Cartpole's state, or its frames."""
    if not config.agent.endswith("-pixels"):
        return STATE
    stack, side = config.frame_stack or 1, config.image_size or 84
    return replace(STATE, observation_shape=(3 * stack, side, side), observation_dtype="uint8", stack=stack)


def measure(agent: str, profile: str, times: int) -> dict[str, Any]:
    """Milliseconds of an update and of an action, for TD-MPC with each horizon of its plans."""
    config = configure(agent, TASK, profile=profile, device="cpu")
    spec = spec_of(config)
    built: Any = build_agent(config, spec, CPU)
    batch, rng = random_sequences(spec, config.learning, CPU), Stream(0, "cost", device=CPU)
    row: dict[str, Any] = {"agent": agent, "profile": profile}
    row["update_ms"] = median_ms(lambda: built.update(batch, index=1, rng=rng), times)
    obs = np.zeros((1, *spec.observation_shape), spec.observation_dtype)
    act = lambda: built.act(obs, first=np.array([True]), explore=True, rng=rng)  # noqa: E731
    if agent.startswith("td-mpc"):
        row["plan_ms"] = {}
        for horizon in range(1, config.settings.planner.horizon + 1):
            risen = (horizon - 1) / (config.settings.planner.horizon - 1)
            built.updates = round(risen * config.settings.schedule_steps)
            row["plan_ms"][str(built.horizon())] = median_ms(act, 5)
        row["action_ms"] = max(row["plan_ms"].values())
    else:
        row["action_ms"] = median_ms(act, 3)
    short = replace(config, steps=FRAMES // (config.action_repeat or 1))
    cost = count_cost(short, 0, update_seconds=row["update_ms"] / 1e3, step_seconds=row["action_ms"] / 1e3)
    return row | {"updates": cost.updates, "actions": cost.played_steps, "hours": round(cost.seconds / 3_600, 2)}


def main() -> None:
    """Measure, smallest first, and write."""
    warnings.simplefilter("ignore", SignedFeaturesWarning)
    keep_freed_memory()
    rows = []
    with processor(threads=1):
        for agent, profile, times in ROWS:
            rows.append(measure(agent, profile, times))
            print(rows[-1], flush=True)
            RESULTS.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
