"""Two updates of every pixel agent with the paper's settings on each of DMControl's 16 tasks.

    python benchmarks/dmc_paper_updates.py [--cells N]

Not a whole run: the trainer of `peer-rl train AGENT --task dmc/NAME`, frames, networks, batch and all, with 60
random steps where the paper has 1,000 or 2,000, stopped after its second update (the first that moves the actor), so
that a user with a GPU can trust the command. Writes results/dmc_paper_updates.json after every cell, leaves out
cells that are there already, and stops after N new ones.
"""

import argparse
import json
import math
import platform
import sys
import tempfile
import time
from pathlib import Path

from peer_rl.launch.api import train
from peer_rl.packages import version_of
from peer_rl.settings import configure
from peer_rl.settings.tasks import TASKS
from peer_rl.training.files import read_json_lines
from peer_rl.training.loop import Trainer

RESULTS = Path(__file__).parent / "results" / "dmc_paper_updates.json"
AGENTS = ("curl-sac", "drq-sac", "sac-ae", "drq-v2")
RANDOM_STEPS, UPDATES = 60, 2


def measure(agent: str, task: str) -> dict[str, object]:
    """One run of two updates; raises if it fails or a number of it is not finite."""
    every = configure(agent, task).learning.update_every
    short = {"start_steps": RANDOM_STEPS, "steps": RANDOM_STEPS + UPDATES * every}
    config = configure(agent, task, eval_every=0, diagnose_every=0, **short)
    seconds: list[float] = []
    learn = Trainer.learn

    def timed(trainer: Trainer) -> None:
        before, began = trainer.progress.updates, time.perf_counter()
        learn(trainer)
        if trainer.progress.updates > before:
            seconds.append(time.perf_counter() - began)

    Trainer.learn = timed  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as runs:
            path = train(config, runs=runs)
            manifest = json.loads((path / "manifest.json").read_text())
            losses = [row for row in read_json_lines(path / "metrics.jsonl") if "td_loss" in row][-1]
    finally:
        Trainer.learn = learn  # type: ignore[method-assign]
    known = ("td_loss", "regularizer", "q", "actor_loss", "auxiliary_loss")
    found = {name: losses[name] for name in known if name in losses}
    if len(seconds) != UPDATES or not all(map(math.isfinite, found.values())):
        raise RuntimeError(f"{agent} on {task}: {len(seconds)} updates, {found}")
    return {
        "agent": agent,
        "task": task,
        "observation": manifest["spec"]["observation_shape"],
        "action_repeat": config.action_repeat,
        "batch": config.learning.batch_size,
        "environment": manifest["environment"],
        "seconds_per_update": sum(seconds) / len(seconds),
        **found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=None, help="new cells to measure; all by default")
    wanted = parser.parse_args().cells
    known = json.loads(RESULTS.read_text())["cells"] if RESULTS.exists() else []
    found = {(cell["agent"], cell["task"]): cell for cell in known}
    tasks = [name for name, task in TASKS.items() if task.suite == "dmc"]
    everything = [(agent, task) for task in tasks for agent in AGENTS]
    missing = [cell for cell in everything if cell not in found][:wanted]
    for number, (agent, task) in enumerate(missing, start=1):
        print(f"{number} of {len(missing)}: {agent} {task}", file=sys.stderr, flush=True)
        found[agent, task] = measure(agent, task)
        versions = {name: version_of(name) for name in ("torch", "dm_control", "mujoco")}
        machine = {"processor": platform.processor() or platform.machine(), "versions": versions}
        cells = [found[cell] for cell in everything if cell in found]
        RESULTS.write_text(json.dumps({"machine": machine, "cells": cells}, indent=2) + "\n")
    print(f"{len(found)} of {len(everything)} cells are in {RESULTS}")


if __name__ == "__main__":
    main()
