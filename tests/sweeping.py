"""Helpers for tests of sweeps: start one, watch what it does from outside, find its training processes."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from running import leavings, surroundings

GRID = """
agent = "dqn"
task = "slow_envs:grid_world"
device = "cpu"
steps = 1200
start-steps = 300
epsilon-steps = 1000
eval-every = 400
eval-episodes = 2
diagnose-every = 500
seeds = 3
checkpoint-seconds = 0.1
"""
PATIENCE = 600.0


def write_grid(folder: Path) -> Path:
    """Three runs of several seconds, with a checkpoint every 0.1 s."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "sweep.toml"
    file.write_text(GRID)
    return file


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "peer_rl", "sweep", *map(str, arguments)]


def start(*arguments: object, **options) -> subprocess.Popen:
    return subprocess.Popen(command(*arguments), env=surroundings(), **options)


def wait_until(condition: Callable[[], object], why: str, seconds: float = PATIENCE) -> Any:
    """What the condition gives once it gives something."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, why
        time.sleep(0.02)
    return found


def runs_below(runs: Path) -> dict[str, Path]:
    return {str(file.parent.relative_to(runs)): file.parent for file in sorted(runs.glob("*/*/*/*/config.toml"))}


def assert_same(runs: Path, others: Path) -> None:
    """Every run left the same bytes behind, evaluations and weights alike."""
    mine, theirs = runs_below(runs), runs_below(others)
    assert mine.keys() == theirs.keys()
    assert len(mine) == 3
    for name, path in mine.items():
        assert (path / "eval.jsonl").read_bytes() == (theirs[name] / "eval.jsonl").read_bytes(), name
        assert leavings(path) == leavings(theirs[name]), name


def newest_checkpoints(runs: Path) -> dict[str, int]:
    """Step of the newest checkpoint of each run that has one and is not finished."""
    found = {}
    for name, path in runs_below(runs).items():
        steps = [int(folder.name) for folder in path.glob("checkpoint/*") if folder.name.isdigit()]
        if steps and b'"finished"' not in _bytes(path / "status.json"):
            found[name] = max(steps)
    return found


def training_processes(runs: Path) -> dict[int, list[str]]:
    """The processes that train runs below ``runs``, and their command lines."""
    found = {}
    for folder in Path("/proc").iterdir():
        words = _bytes(folder / "cmdline").decode(errors="replace").rstrip("\0").split("\0")
        if "peer_rl.cli.child" in words and str(runs) in words:
            found[int(folder.name)] = words
    return found


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
