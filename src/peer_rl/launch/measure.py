"""How long a run takes on this machine: from runs that are there already, or from a few seconds of a real one.

Measured in a process of its own (``python -m peer_rl.launch.measure``), in a folder that is thrown away: a
simulator may crash, and what it leaves in memory is nobody's.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from peer_rl.settings import as_dict, from_dict
from peer_rl.settings.environment import task_of
from peer_rl.settings.run import AnyRunConfig
from peer_rl.settings.tasks import find_task

Kind = tuple[str, str, str]
"""(agent, suite, profile): runs of one kind take about the same time for a step."""
_SECONDS = 3.0
"""Of learning, and of playing, that are measured."""
_RANDOM_STEPS = 300
_TIMEOUT = 180.0
_SHORTEST_SESSION = 20.0
_EPISODE_FRAMES = {"pybullet": 1_000, "mujoco": 1_000, "dmc": 1_000, "atari": 4_000, "gridworld": 10}
"""Of one evaluation episode, about. The robots may fall earlier."""


@dataclass(frozen=True)
class Pace:
    """What the steps of one kind of run cost."""

    train_seconds: float
    """One agent step of training."""
    play_seconds: float
    """One agent step of an evaluation; 0 if ``train_seconds`` has its share of them."""
    source: str
    """Where it comes from, for people."""

    def seconds(self, config: AnyRunConfig) -> float:
        """Of a whole run."""
        frames = _EPISODE_FRAMES.get(find_task(config.task).suite, 1_000)
        episode = max(1, frames // task_of(config).action_repeat)
        steps = config.steps or (config.episodes or 0) * episode
        protocol = config.protocol
        every: int = protocol.eval_every
        played: int = (steps // every if every else 0) * protocol.eval_episodes * episode
        final = max(getattr(protocol, "final_episodes", 0) * episode, getattr(protocol, "final_steps", 0))
        return steps * self.train_seconds + (played + final) * self.play_seconds


def kind_of(config: AnyRunConfig) -> Kind:
    """What decides how long a step takes, roughly."""
    return config.agent, find_task(config.task).suite, config.profile


def find_paces(configs: Sequence[AnyRunConfig], runs: Path) -> dict[Kind, Pace | None]:
    """The pace of every kind among ``configs``; None where a run could not even be tried."""
    examples = {kind_of(config): config for config in reversed(configs)}
    found: dict[Kind, Pace | None] = {kind: _past_pace(kind, runs) for kind in examples}
    unknown = [kind for kind, pace in found.items() if pace is None]
    if unknown:
        names = ", ".join(f"{agent} on {suite}" for agent, suite, _ in unknown)
        print(f"  measuring a few seconds of {names} ...", file=sys.stderr, flush=True)
    measured = _ask([as_dict(examples[kind]) for kind in unknown])
    return found | dict(zip(unknown, measured, strict=True))


def _past_pace(kind: Kind, runs: Path) -> Pace | None:
    agent, suite, profile = kind
    speeds = []
    for path in runs.glob(f"{profile}/{suite}-*/{agent}*/seed*/timing.jsonl"):
        if path.parents[1].name.split("+")[0] == agent:
            lines = path.read_bytes().splitlines()
            try:
                row = json.loads(lines[-1])
                if row["seconds"] >= _SHORTEST_SESSION and row["steps_per_second"] > 0:
                    speeds.append(float(row["steps_per_second"]))
            except (IndexError, KeyError, TypeError, ValueError):  # half a line of a killed run
                continue
    if not speeds:
        return None
    return Pace(1 / statistics.median(speeds), 0.0, f"from {len(speeds)} run{'s' * (len(speeds) > 1)} in {runs}")


def _ask(questions: list[dict[str, Any]]) -> list[Pace | None]:
    """One process measures all, one after the other, as a training would run alone."""
    answers: list[Pace | None] = []
    for question in questions:
        command = [sys.executable, "-m", "peer_rl.launch.measure"]
        try:
            found = subprocess.run(
                command, input=json.dumps(question), capture_output=True, text=True, timeout=_TIMEOUT
            )
            train, play = json.loads(found.stdout.splitlines()[-1])
            answers.append(Pace(train, play, "measured just now"))
        except (subprocess.TimeoutExpired, IndexError, ValueError):
            answers.append(None)
    return answers


class _Enough(Exception):
    """Enough was seen."""


class _Watch:
    """Ends a training when enough of its learning was timed."""

    def __init__(self) -> None:
        self.began: tuple[float, int, int] | None = None
        self.step_seconds = 0.0

    def __call__(self, progress: Any) -> None:
        now = time.monotonic()
        if self.began is None:
            self.began = (now, progress.step, progress.updates) if progress.updates else None
            return
        clock, step, updates = self.began
        if progress.step > step and progress.updates > updates:
            self.step_seconds = (now - clock) / (progress.step - step)
            if now - clock >= _SECONDS:
                raise _Enough


def _shorten(config: AnyRunConfig) -> AnyRunConfig:
    """The same run, learning soon and watched by nobody."""
    learning = config.learning
    if hasattr(learning, "start_steps"):
        learning = replace(learning, start_steps=min(learning.start_steps, _RANDOM_STEPS))
    changes = {name: 0 for name in ("eval_every", "diagnose_every") if hasattr(config.protocol, name)}
    return replace(config, learning=learning, protocol=replace(config.protocol, **changes))


def _measure(config: AnyRunConfig) -> tuple[float, float]:
    from peer_rl.launch.api import resolve_device, trainer_of
    from peer_rl.training.memory import keep_freed_memory
    from peer_rl.training.processor import processor
    from peer_rl.training.rundir import RunDirectory

    config = _shorten(replace(config, device=resolve_device(config.device)))
    keep_freed_memory()
    watch = _Watch()
    with processor(config.threads), tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder) / "run", config)
        trainer = trainer_of(config.agent)(config, run, checkpoint_seconds=1e9, show=watch)
        with run, trainer:
            with contextlib.suppress(_Enough):
                trainer.train()
            return watch.step_seconds, _play_seconds(trainer)


def _play_seconds(trainer: Any) -> float:
    """One step of the policy in the environment of the evaluations."""
    from peer_rl.rng import Stream
    from peer_rl.training.evaluate import Evaluation, evaluate

    recorder = getattr(trainer, "observers", None) or trainer.recorder
    began, steps = time.monotonic(), 0

    def count(played: Evaluation) -> None:
        nonlocal steps
        steps += 1
        if time.monotonic() - began >= _SECONDS / 3:
            raise _Enough

    rng = Stream(0, "measure", device=recorder.agent.device)
    with contextlib.suppress(_Enough):
        evaluate(recorder.agent, recorder.env, recorder.spec, seeds=range(1_000), rng=rng, show=count)
    return (time.monotonic() - began) / max(1, steps)


if __name__ == "__main__":
    print("\n" + json.dumps(_measure(from_dict(json.load(sys.stdin)))), flush=True)
