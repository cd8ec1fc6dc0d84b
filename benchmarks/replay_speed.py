"""What the replay costs: milliseconds of a draw, and memory really used against the formula.

    python benchmarks/replay_speed.py

Every replay is filled first (100,000 frames; a million transitions of vectors). A draw is timed as the loop makes it:
one step is added, a batch is drawn and dropped, and a prioritised replay gets new priorities; one thread. Memory is the
growth of a fresh process's resident set from before the replay is made until it is full. The table and
`results/replay_speed.json` hold the median and the least of many draws, and gigabytes; limits are the design's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from peer_rl.configs.run import LearningConfig, PrioritisedConfig
from peer_rl.envs.spec import EnvSpec
from peer_rl.replay.make import make_replay, replay_size
from peer_rl.replay.replay import Replay
from peer_rl.training.memory import keep_freed_memory

CPU = torch.device("cpu")
RESULT = Path(__file__).parent / "results" / "replay_speed.json"
BOX = {"action_shape": (6,), "action_low": (-1.0,) * 6, "action_high": (1.0,) * 6}
ATARI = EnvSpec((4, 84, 84), "uint8", stack=4, actions=18)
DMCONTROL = EnvSpec((9, 100, 100), "uint8", stack=3, **BOX)
CHEETAH = EnvSpec((17,), "float32", **BOX)


@dataclass(frozen=True)
class Case:
    spec: EnvSpec
    learning: LearningConfig
    episode: int
    """Steps of an episode."""
    limit_ms: float | None = None
    limit_gb: float | None = None


RAINBOW = {"n_step": 20, "batch_size": 32, "buffer_size": 100_000}
CASES = {
    "atari, uniform": Case(ATARI, LearningConfig(**RAINBOW), 900, 1.0, 0.75),
    "atari, prioritised": Case(ATARI, PrioritisedConfig(**RAINBOW), 900, 1.0, 0.75),
    "dmcontrol, 1 step": Case(DMCONTROL, LearningConfig(batch_size=512, buffer_size=100_000), 250, 15.0, 3.1),
    "dmcontrol, 3 steps": Case(
        DMCONTROL, LearningConfig(batch_size=512, buffer_size=100_000, n_step=3), 250, None, 3.1
    ),
    "vectors of 17": Case(CHEETAH, LearningConfig(batch_size=256, buffer_size=1_000_000), 1_000),
}


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
        self.action = 0 if case.spec.actions else np.zeros(6, np.float32)

    def step(self) -> None:
        place, count = self.count % self.case.episode, self.count
        obs = self.observations[count % 64] if place else self.first
        following = self.observations[(count + 1) % 64]
        discount, last = float(place % 300 != 299), place == self.case.episode - 1
        self.replay.add(obs=obs, action=self.action, reward=1.0, next_obs=following, discount=discount, last=last)
        self.count += 1

    def fill(self) -> None:
        self.replay = make_replay(self.case.learning, self.case.spec, CPU)
        while self.replay.ring.total < self.replay.ring.capacity:
            self.step()


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def filled(name: str) -> tuple[Player, int]:
    """A player with a full replay, and the bytes by which the process has grown."""
    player = Player(CASES[name])
    before = resident()
    player.fill()
    return player, resident() - before


def time_draws(player: Player, draws: int) -> list[float]:
    """Milliseconds of each; the step that is added before it is not counted."""
    rng, priorities = np.random.default_rng(0), torch.rand(player.case.learning.batch_size)
    times = []
    for _ in range(draws):
        player.step()
        began = time.perf_counter()
        batch = player.replay.sample(rng)
        if batch.weight is not None:
            player.replay.update_priorities(priorities)
        times.append(1e3 * (time.perf_counter() - began))
        del batch
    return times[draws // 10 :]


def measure(name: str, draws: int) -> dict[str, float | None]:
    """One case, in a process of its own."""
    keep_freed_memory()
    torch.set_num_threads(1)
    case = CASES[name]
    player, grown = filled(name)
    times = time_draws(player, draws)
    size = replay_size(case.learning, case.spec)
    return {
        "ms_median": statistics.median(times),
        "ms_least": min(times),
        "ms_limit": case.limit_ms,
        "bytes_per_row": size.bytes / size.rows,
        "bytes_per_transition": size.bytes / len(player.replay),
        "gigabytes_formula": size.bytes / 1e9,
        "gigabytes_measured": grown / 1e9,
        "gigabytes_limit": case.limit_gb,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What the replay costs.")
    parser.add_argument("--draws", type=int, default=1_000, help="draws to time, of each case")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--case", choices=CASES, help="measure this one here, and print it")
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(options.case, options.draws)))
        return
    results = {}
    for name, case in CASES.items():
        draws = options.draws if case.learning.batch_size < 512 else max(20, options.draws // 5)
        command = [sys.executable, __file__, "--case", name, "--draws", str(draws)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        results[name] = found = json.loads(done.stdout)
        speed = f"{found['ms_median']:7.3f} ms (least {found['ms_least']:.3f})"
        memory = f"{found['gigabytes_measured']:.3f} GB, formula {found['gigabytes_formula']:.3f} GB"
        print(f"{name:<20} {speed}, {memory}, {found['bytes_per_transition']:.0f} bytes a transition")
    record = {
        "what": "draws from a full replay: stacks of 4x84x84 and 9x100x100, vectors of 17",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "torch": torch.__version__,
        "numpy": np.__version__,
        "cases": results,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
