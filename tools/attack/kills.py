"""Kills and signals at random moments: a run that is killed and resumed, again and again, ends as if undisturbed."""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from attack.cases import Outcome, Result, ask, command, finish, peer_rl, start
from attack.damaged import differing, digests, the_run

SUMMARY = "runs are killed (at a file operation, also inside a checkpoint's write, or at a moment) and resumed"
PER_CASE = 8
AGENTS = ("dqn", "td3", "sac", "metd3", "rainbow", "drq-v2", "td-mpc", "ppo")
"""Rainbow keeps priorities; it and DrQ-v2 learn from frames."""
_TESTS = Path(__file__).parents[2] / "tests"
_KINDS = ["operation", "operation", "SIGKILL", "SIGTERM", "SIGINT", "SIGTERM twice"]
_ENDINGS = (0, -signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGINT, 128 + signal.SIGTERM)


def words_of(agent: str) -> list[str]:
    """The command that trains the tests' tiny run of the agent, with a checkpoint after every episode."""
    from running import tiny_config

    from peer_rl.training.rundir import command_of

    return [*command_of(tiny_config(agent))[1:], "--threads", "1", "--checkpoint-seconds", "0", "--quiet"]


def prepare(base: Path) -> None:
    """Each agent's run, undisturbed."""
    sys.path.append(str(_TESTS))
    for name in ("gymnasium.envs.classic_control", "gymnasium.envs.mujoco", "peer_rl.sb3.trainer"):
        importlib.import_module(name)
    found = {}
    for agent in AGENTS:
        home, began = base / agent, time.monotonic()
        whole = peer_rl(home, *words_of(agent), "--runs", home / "runs")
        assert whole.code == 0, whole
        seconds = time.monotonic() - began
        sums, faults = ask(home, lambda home=home: digests(the_run(home)))
        assert not faults, faults
        found[agent] = {"operations": whole.operations, "seconds": seconds, "sums": sums, "status": _status(home)}
    (base / "kills.json").write_text(json.dumps(found))


def _status(home: Path) -> dict[str, Any]:
    status: dict[str, Any] = json.loads((the_run(home) / "status.json").read_text())
    status["logs"].pop("timing")
    return {name: value for name, value in status.items() if name != "sha256"}


def attack(dice: random.Random, home: Path, base: Path) -> Result:
    """One agent's run, killed eight times; one that comes to its end is compared, and another begins."""
    agent = dice.choice(AGENTS)
    whole = json.loads((base / "kills.json").read_text())[agent]
    failures: list[str] = []
    kills = commands = 0
    how = []
    while kills < PER_CASE:
        kind = dice.choice(_KINDS)
        outcome = strike(dice, home, words_of(agent), kind, whole)
        commands += 1
        failures += outcome.faults(codes=_ENDINGS)
        if outcome.code == 0 or len(failures) > 3:
            failures += compare(home, whole)
            shutil.rmtree(home / "runs")
            if len(failures) > 3:
                break
            continue
        kills += 1
        how.append(kind)
        if "no checkpoint yet" in outcome.errors and list((home / "runs").glob("*/*/*/*/checkpoint/0*")):
            failures.append(f"it said that there is no checkpoint, but there is: {outcome.errors}")
    last = peer_rl(home, *words_of(agent), "--runs", home / "runs")
    failures += last.faults(codes=(0,)) or compare(home, whole)
    return Result(f"{agent}: {', '.join(how)}", failures, cases=kills, commands=commands + 1)


def strike(dice: random.Random, home: Path, words: list[str], kind: str, whole: dict[str, Any]) -> Outcome:
    """Start or resume the run, and kill it somewhere."""
    line = (*words, "--runs", str(home / "runs"))
    if kind == "operation":
        return peer_rl(home, *line, die_at=dice.randint(1, whole["operations"]))
    child = start(home, command(line))
    time.sleep(dice.uniform(0.05, 1.0) * whole["seconds"])
    for _ in range(2 if kind == "SIGTERM twice" else 1):
        os.kill(child, signal.Signals[kind.split()[0]])
        time.sleep(0.01)
    return finish(child, home, ("peer-rl", *line))


def compare(home: Path, whole: dict[str, Any]) -> list[str]:
    """What differs from the undisturbed run: logs, weights, the loop's state, the replay, the status."""
    sums, faults = ask(home, lambda: digests(the_run(home)))
    different = [f"{name} differs" for name in differing(sums, whole["sums"])]
    if not faults and _status(home) != whole["status"]:
        different.append(f"status.json differs: {_status(home)} was {whole['status']}")
    return faults + different
