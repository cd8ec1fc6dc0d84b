"""What one update and one plan of TD-MPC cost on cartpole-swingup, and what a run of 100k environment steps would take.

    python benchmarks/td_mpc_costs.py

One thread, the processor's time, medians of a few; from state and from frames, in the small profile and at the
published size. Nothing is rendered. Writes results/td_mpc_costs.json.
"""

import json
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from peer_rl.agents.make import build_agent
from peer_rl.bench.passes import cartpole
from peer_rl.bench.planning import STATE
from peer_rl.launch.cost import count_cost
from peer_rl.launch.random_batches import random_sequences
from peer_rl.plugin import SignedFeaturesWarning
from peer_rl.rng import Stream
from peer_rl.settings import configure
from peer_rl.training.memory import keep_freed_memory
from peer_rl.training.processor import processor

RESULTS = Path(__file__).parent / "results" / "td_mpc_costs.json"
TASK, FRAMES = "dmc/cartpole-swingup", 100_000
CPU = torch.device("cpu")


def median_ms(act: Callable[[], object], times: int) -> float:
    """Of the processor's time; the first act is not counted."""
    act()
    found = []
    for _ in range(times):
        began = time.process_time()
        act()
        found.append(time.process_time() - began)
    return round(1_000 * statistics.median(found), 1)


def measure(agent: str, profile: str, times: int) -> dict[str, object]:
    """Milliseconds of an update, and of a plan with each horizon."""
    config = configure(agent, TASK, profile=profile, device="cpu")
    spec = STATE if agent == "td-mpc" else cartpole(config.image_size or 84)
    built = build_agent(config, spec, CPU)
    batch, rng = random_sequences(spec, config.learning, CPU), Stream(0, "cost", device=CPU)
    row: dict[str, object] = {"agent": agent, "profile": profile}
    row["update_ms"] = median_ms(lambda: built.update(batch, index=1, rng=rng), times)
    obs, plans = np.zeros((1, *spec.observation_shape), spec.observation_dtype), {}
    for horizon in range(1, config.settings.planner.horizon + 1):
        built.updates = round((horizon - 1) / (config.settings.planner.horizon - 1) * config.settings.schedule_steps)
        act = lambda: built.act(obs, first=np.array([True]), explore=True, rng=rng)  # noqa: E731
        plans[str(built.horizon())] = median_ms(act, 5)
    row["plan_ms"] = plans
    short = replace(config, steps=FRAMES // (config.action_repeat or 1))
    longest = max(plans.values())
    cost = count_cost(short, 0, update_seconds=float(str(row["update_ms"])) / 1e3, step_seconds=longest / 1e3)
    return row | {"updates": cost.updates, "plans": cost.played_steps, "hours_at_most": round(cost.seconds / 3_600, 2)}


def main() -> None:
    """Measure, smallest first, and write."""
    warnings.simplefilter("ignore", SignedFeaturesWarning)
    keep_freed_memory()
    rows = []
    with processor(threads=1):
        for agent, profile, times in (
            ("td-mpc", "small", 20),
            ("td-mpc-pixels", "small", 9),
            ("td-mpc", "paper", 7),
            ("td-mpc-pixels", "paper", 1),
        ):
            rows.append(measure(agent, profile, times))
            print(rows[-1], flush=True)
    RESULTS.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
