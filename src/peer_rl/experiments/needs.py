"""The memory that a run grows to: its replay, and a base for the program, the networks and a batch.

The replay's size depends on what the environment shows, so environments are made to find out: in a process of their
own (``python -m peer_rl.experiments.needs``), because simulators keep memory and may crash.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peer_rl.configs import as_dict, find_agent, from_dict
from peer_rl.configs.run import AnyRunConfig
from peer_rl.envs.tasks import find_task
from peer_rl.errors import PeerError
from peer_rl.experiments.jobs import Job
from peer_rl.training.rundir import read_json

_BASE = {"vectors": 500_000_000, "frames": 1_500_000_000}
"""A run without its replay, by what the agent reads: measured peaks, rounded up (docs/sweeps.md)."""
_TIMEOUT = 300.0
_ENVIRONMENT = ("task", "agent", "max_episode_steps", "action_repeat", "image_size", "frame_stack", "render_quality")


def estimate_memory(jobs: Sequence[Job]) -> None:
    """Fill in ``memory`` of the jobs that have none. A replay that nobody can tell the size of counts as nothing."""
    asked: dict[str, list[Job]] = {}
    for job in jobs:
        if job.memory:
            continue
        job.memory = base_memory(job.config)
        known = _from_manifest(job)
        if known is not None:
            job.memory += known
        elif find_agent(job.config.agent).resumes:  # somebody else's agent keeps no replay
            asked.setdefault(json.dumps(_question(job.config), sort_keys=True), []).append(job)
    for size, group in zip(_ask([json.loads(key) for key in asked]), asked.values(), strict=True):
        for job in group:
            job.memory += size


def base_memory(config: AnyRunConfig) -> int:
    """What a run takes beside its replay."""
    return _BASE["frames" if sees_frames(config) else "vectors"]


def sees_frames(config: AnyRunConfig) -> bool:
    """Whether the agent reads pictures, as far as can be told without making the environment."""
    return find_agent(config.agent).observations == "frames" or find_task(config.task).suite == "atari"


def resident_memory(pid: int) -> int:
    """Bytes of memory that a process holds; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def amount(size: int) -> str:
    """Bytes for people."""
    return f"{size / 1e9:.1f} GB"


def _from_manifest(job: Job) -> int | None:
    """A run that has begun has written down what its replay grows to."""
    try:
        size = (read_json(job.path / "manifest.json").get("replay") or {}).get("bytes")
    except PeerError:
        return None
    return size if isinstance(size, int) else None


def _question(config: AnyRunConfig) -> dict[str, Any]:
    """What a replay's size depends on; the answer is the same for every seed and beta."""
    return {
        path: value
        for path, value in as_dict(config).items()
        if path in (*_ENVIRONMENT, "steps", "episodes", "profile") or path.startswith("learning.")
    }


def _ask(questions: list[dict[str, Any]]) -> list[int]:
    """The replays' sizes; 0 for an environment that cannot be made, which its training then tells."""
    if not questions:
        return []
    command = [sys.executable, "-m", "peer_rl.experiments.needs"]
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
            sizes.append(replay_size(config.learning, specs[key], config.steps).bytes)
        except Exception:  # whatever it is, the training will meet it again and report it in full
            sizes.append(0)
    return sizes


if __name__ == "__main__":
    print("\n" + json.dumps(_answer(json.load(sys.stdin))), flush=True)
