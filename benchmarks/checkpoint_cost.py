"""What checkpoints cost a long run: TD3's networks and a replay of a million rows, 17 + 6 dimensions.

    python benchmarks/checkpoint_cost.py

The replay fills as in a run: 6,000 rows between checkpoints, a minute's worth at 100 steps a second, until it is full
and a tenth of it is overwritten. Timed: each `Checkpoints.save`, fsync included, as a share of that minute; and going
on from the last checkpoint, which reads and checks every byte. The table and `results/checkpoint_cost.json` hold
seconds, the number of replay segments, and megabytes on the disk. `--folder` chooses the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from peer_rl.agents.make import build_agent
from peer_rl.envs.spec import EnvSpec
from peer_rl.replay.make import make_replay
from peer_rl.replay.replay import Replay
from peer_rl.rng import Stream
from peer_rl.settings import configure
from peer_rl.settings.run import LearningConfig
from peer_rl.training.checkpoint import Checkpoints

OBS, ACTION, SECONDS = 17, 6, 60.0
CPU = torch.device("cpu")
SPEC = EnvSpec((OBS,), "float32", action_shape=(ACTION,), action_low=(-1.0,) * ACTION, action_high=(1.0,) * ACTION)
RESULT = Path(__file__).parent / "results" / "checkpoint_cost.json"


def empty_replay(rows: int) -> Replay:
    return make_replay(LearningConfig(buffer_size=rows, batch_size=256), SPEC, CPU)


def play(replay: Replay, rows: int, rng: np.random.Generator) -> None:
    obs = rng.standard_normal((rows + 1, OBS), np.float32)
    action = rng.uniform(-1, 1, (rows, ACTION)).astype(np.float32)
    for i in range(rows):
        last = i == rows - 1
        replay.add(obs=obs[i], action=action[i], reward=1.0, next_obs=obs[i + 1], discount=1.0, last=last)


def trained_agent(replay: Replay):
    """TD3 after two updates, so that Adam's state exists."""
    agent = build_agent(configure("td3", "gym/HalfCheetah-v5"), SPEC, CPU)
    rng = Stream(0, "benchmark", device=CPU)
    for index in range(2):
        agent.update(replay.sample(rng.numpy), index=index, rng=rng)
    return agent


def measure(folder: Path, rows: int, between: int) -> dict[str, float]:
    torch.set_num_threads(1)
    replay, rng = empty_replay(rows), np.random.default_rng(0)
    play(replay, between, rng)
    agent, checkpoints = trained_agent(replay), Checkpoints(folder / "checkpoint")
    seconds, segments = [], []
    while replay.ring.total < 1.1 * rows:
        play(replay, between, rng)
        components = {"agent": agent.state_dict(), "loop": {"step": replay.ring.total}, "replay": replay.state_dict()}
        began = time.perf_counter()
        checkpoints.save(replay.ring.total, components, replay.ring, {})
        seconds.append(time.perf_counter() - began)
        segments.append(len(list((folder / "checkpoint" / "replay").iterdir())))
    disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    again = empty_replay(rows)
    began = time.perf_counter()
    Checkpoints(folder / "checkpoint").load(again.ring)
    resume = time.perf_counter() - began
    for name, column in replay.ring.columns.items():
        if not np.array_equal(column, again.ring.columns[name]):
            raise SystemExit(f"{name} did not come back as it was")
    tenth = len(seconds) // 10
    return {
        "checkpoints": len(seconds),
        "save_seconds_median": statistics.median(seconds),
        "save_seconds_largest": max(seconds),
        "save_seconds_median_first_tenth": statistics.median(seconds[:tenth]),
        "save_seconds_median_last_tenth": statistics.median(seconds[-tenth:]),
        "share_of_a_minute_percent": 100 * statistics.mean(seconds) / (SECONDS + statistics.mean(seconds)),
        "segments_most": max(segments),
        "segments_last": segments[-1],
        "disk_megabytes": disk / 1e6,
        "resume_seconds": resume,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What checkpoints cost a long run.")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the replay")
    parser.add_argument("--between", type=int, default=6_000, help="rows between checkpoints")
    parser.add_argument("--folder", type=Path, default=None, help="where to write; a temporary folder by default")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        result = measure(Path(folder), options.rows, options.between)
    for name, value in result.items():
        print(f"{name:<34}{value:>10.3f}")
    record = {
        "what": f"TD3, {options.rows} rows of {OBS} + {ACTION}, {options.between} rows between checkpoints",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "torch": torch.__version__,
        **result,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
