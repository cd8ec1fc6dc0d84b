"""The memory that a run grows to: its replay, what an update makes of a batch, and a base for the program.

The replay's size depends on what the environment shows, so environments are made to find out: in a process of their
own (``python -m peer_rl.launch.needs``), because simulators keep memory and may crash.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peer_rl.errors import PeerError
from peer_rl.launch.jobs import Job
from peer_rl.settings import as_dict, find_agent, from_dict
from peer_rl.settings.run import AnyRunConfig
from peer_rl.training.rundir import read_json

BASE = 500_000_000
"""Bytes of the program itself, its simulator and networks on vectors: measured, 320 to 410 MB."""
_BATCHES = 21
"""Batches of observations, as float32, that an update holds at a time: those of DrQ, the most that we measured."""
_TIMEOUT = 300.0
_ENVIRONMENT = (
    "task",
    "agent",
    "max_episode_steps",
    "action_repeat",
    "image_size",
    "frame_stack",
    "render_quality",
    "encoding",
    "mujoco_version",
)


def estimate_memory(jobs: Sequence[Job]) -> None:
    """Fill in ``memory`` of the jobs that have none. Where nobody can tell the size of the replay, it is the base."""
    alike: dict[str, list[Job]] = {}
    for job in jobs:
        if not job.memory:
            job.memory = BASE
            if find_agent(job.config.agent).resumes:  # somebody else's agent keeps no replay
                alike.setdefault(json.dumps(_question(job.config), sort_keys=True), []).append(job)
    sizes = {key: _written_down(group) for key, group in alike.items()}
    unknown = [key for key, size in sizes.items() if size is None]
    sizes |= zip(unknown, _ask([json.loads(key) for key in unknown]), strict=True)
    for key, group in alike.items():
        for job in group:
            job.memory += sizes[key] or 0


def resident_memory(pid: int) -> int:
    """Bytes of memory that a process holds; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def amount(size: int) -> str:
    """Bytes for people."""
    return f"{size / 1e9:.1f} GB"


def _written_down(jobs: Sequence[Job]) -> int | None:
    """What a run of this kind that has begun says of itself."""
    for job in jobs:
        try:
            manifest = read_json(job.path / "manifest.json")
            return int(manifest["replay"]["bytes"]) + _batches(job.config, manifest["spec"]["observation_shape"])
        except (PeerError, OSError, KeyError, TypeError):
            continue
    return None


def _batches(config: AnyRunConfig, observation_shape: Sequence[int]) -> int:
    return 4 * _BATCHES * int(config.learning.batch_size) * math.prod(observation_shape)


def _question(config: AnyRunConfig) -> dict[str, Any]:
    """What the memory depends on; the answer is the same for every seed and beta."""
    return {
        path: value
        for path, value in as_dict(config).items()
        if path in (*_ENVIRONMENT, "steps", "episodes", "profile") or path.startswith("learning.")
    }


def _ask(questions: list[dict[str, Any]]) -> list[int]:
    """Replay and batches; 0 for an environment that cannot be made, which its training then tells."""
    if not questions:
        return []
    command = [sys.executable, "-m", "peer_rl.launch.needs"]
    try:
        found = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True, timeout=_TIMEOUT)
        sizes = json.loads(found.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        return [0] * len(questions)
    return [int(size) for size in sizes]


def _answer(questions: list[dict[str, Any]]) -> list[int]:
    from peer_rl.envs.make import env_of, spec_of
    from peer_rl.replay.make import replay_size

    sizes = []
    specs: dict[str, Any] = {}
    for question in questions:
        key = json.dumps([question.get(name) for name in _ENVIRONMENT])
        try:
            config = from_dict(question)
            if key not in specs:
                env = env_of(config)
                specs[key] = spec_of(env)
                env.close()
            replay = replay_size(config.learning, specs[key], config.steps).bytes
            sizes.append(replay + _batches(config, specs[key].observation_shape))
        except Exception:  # whatever it is, the training will meet it again and report it in full
            sizes.append(0)
    return sizes


if __name__ == "__main__":
    print("\n" + json.dumps(_answer(json.load(sys.stdin))), flush=True)
