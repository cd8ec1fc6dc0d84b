"""What numbers below 1.2e-38 cost an update, which training flushes to zero (`peer_rl/training/process.py`).

    python benchmarks/subnormals.py

Each agent is trained for a while without that, so that its optimizer holds as many of them as it would. Then two copies
of it are updated in turns, one as it is, the other with subnormal numbers flushed to zero. The table and
`results/subnormals.json` hold the fraction of Adam's two moments that is subnormal, milliseconds of processor time of
an update, and the median of paired ratios with its 95 % interval.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from peer_rl.agents import Agent
from peer_rl.bench.updates import in_turns, ratio
from peer_rl.networks.optimizer import Adam
from peer_rl.settings import configure
from peer_rl.training.loop import Trainer
from peer_rl.training.process import keep_freed_memory
from peer_rl.training.rundir import RunDirectory

CASES = {
    "dqn": ("gym/CartPole-v1", 8_000),
    "td3": ("mujoco/half-cheetah", 8_000),
    "curl-rainbow": ("atari/road-runner", 4_000),
    "drq-dqn": ("atari/road-runner", 4_000),
}
SMALLEST_NORMAL = torch.finfo(torch.float32).tiny
RESULT = Path(__file__).parent / "results" / "subnormals.json"


def trainer_of(agent: str, folder: Path) -> Trainer:
    task, steps = CASES[agent]
    quiet = {"eval_every": 0, "diagnose_every": 0, "final_steps": 0}
    config = configure(agent, task, beta=0.0, steps=steps, start_steps=1_000, device="cpu", **quiet)
    return Trainer(config, RunDirectory(folder, config), checkpoint_seconds=1e9)


def share(agent: Agent) -> float:
    """Of the moments' numbers, those that are neither zero nor normal."""
    optimizers = [part for part in vars(agent).values() if isinstance(part, Adam)]
    moments = [moment for adam in optimizers for moment in (*adam.means, *adam.squares)]
    subnormal = sum(int(((moment != 0) & (moment.abs() < SMALLEST_NORMAL)).sum()) for moment in moments)
    return subnormal / sum(moment.numel() for moment in moments)


def two_updates(trainer: Trainer, *, flush: bool) -> Callable[[], None]:
    def update() -> None:
        torch.set_flush_denormal(flush)
        trainer.learn()
        trainer.learn()  # TD3's actor learns every second time

    return update


def measure(agent: str, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        first, second = (trainer_of(agent, Path(folder) / name) for name in ("first", "second"))
        with first.run, first:
            first.train()
            found = share(first.agent)
            second.agent.load_state_dict(first.agent.state_dict())
            second.replay, second.progress = first.replay, first.progress
            times = in_turns({"kept": two_updates(first, flush=False), "zero": two_updates(second, flush=True)}, rounds)
    return {
        "agent": agent,
        "task": CASES[agent][0],
        "steps": CASES[agent][1],
        "subnormal_share": found,
        "kept_ms": 500 * statistics.median(times["kept"]),
        "zero_ms": 500 * statistics.median(times["zero"]),
        "zero_adds": ratio(times["zero"], times["kept"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What subnormal numbers cost an update.")
    parser.add_argument("--agents", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--rounds", type=int, default=200, help="timed pairs of updates of each copy")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(1)
    rows = []
    for agent in options.agents:
        row = measure(agent, options.rounds)
        rows.append(row)
        adds = {name: f"{100 * value:+.1f}" for name, value in row["zero_adds"].items()}
        print(
            f"{agent:<14}{row['steps']:>6} steps {row['subnormal_share']:>6.1%} subnormal: {row['kept_ms']:6.2f} ms, "
            f"flushed to zero {row['zero_ms']:6.2f} ms, {adds['median']} % [{adds['low']}, {adds['high']}]",
            flush=True,
        )
    record = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "torch": torch.__version__,
        "rounds": options.rounds,
        "agents": rows,
    }
    options.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
