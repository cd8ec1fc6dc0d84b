"""Estimates of a run's time and memory, before it starts.

Time: from earlier runs of its kind, else from a few seconds of a real one (``find_paces``); `cost` times the updates of
a slow run. Memory: the replay, an update's batches and the program
(``estimate_memory``). Whatever is measured uses agents and environments of its own, which are thrown away, so a run
never notices (law 2). Simulators keep memory and may crash: they are asked in a process of their own
(``python -m peer_rl.launch.estimate``).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peer_rl.errors import PeerError
from peer_rl.launch.jobs import Job
from peer_rl.settings import as_dict, find_agent, from_dict
from peer_rl.settings.environment import task_of
from peer_rl.settings.run import AnyRunConfig
from peer_rl.settings.tasks import find_task
from peer_rl.training.rundir import read_json

if TYPE_CHECKING:
    from peer_rl.envs.spec import EnvSpec

Kind = tuple[str, str, str]
"""(agent, suite, profile): runs of one kind take about the same time per step."""
PROGRAM_BYTES = 500_000_000
"""The program itself, its simulator and networks on vectors: measured, 320 to 410 MB."""
_BATCHES = 21
"""Batches of observations, as float32, that an update holds at once: DrQ's, the most of our agents."""
_ENVIRONMENT = (
    "task", "agent", "max_episode_steps", "action_repeat", "image_size", "frame_stack", "render_quality",
    "encoding", "mujoco_version",
)  # fmt: skip
_EPISODE_FRAMES = {"pybullet": 1_000, "mujoco": 1_000, "dmc": 1_000, "atari": 4_000, "gridworld": 10}
"""Of one evaluation episode, about. The robots may fall earlier."""
_LEARNING_SECONDS = 3.0
_RANDOM_STEPS = 300
_SHORTEST_SESSION = 20.0
_PACE_TIMEOUT, _MEMORY_TIMEOUT = 180.0, 300.0


# -- time of a run, from its pace ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pace:
    """What the steps of one kind of run cost."""

    train_seconds: float
    """One agent step of training."""
    play_seconds: float
    """One agent step of an evaluation; 0 if ``train_seconds`` includes evaluations."""
    source: str
    """Where the numbers come from, for the terminal."""

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
    """The pace of every kind among ``configs``; None where even a few seconds fail."""
    examples = {kind_of(config): config for config in reversed(configs)}
    found: dict[Kind, Pace | None] = {kind: _past_pace(kind, runs) for kind in examples}
    unknown = [kind for kind, pace in found.items() if pace is None]
    if unknown:
        names = ", ".join(f"{agent} on {suite}" for agent, suite, _ in unknown)
        print(f"  measuring a few seconds of {names} ...", file=sys.stderr, flush=True)
    for kind in unknown:  # one after the other, as a run would train alone
        answer = _ask("pace", as_dict(examples[kind]), _PACE_TIMEOUT)
        found[kind] = Pace(answer[0], answer[1], "measured just now") if answer else None
    return found


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


class _Enough(Exception):
    """Enough was measured."""


class _Watch:
    """Ends a run once enough of its updates were timed."""

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
            if now - clock >= _LEARNING_SECONDS:
                raise _Enough


def _measure_pace(config: AnyRunConfig) -> tuple[float, float]:
    """Seconds per step of training and of evaluation, from a real run that learns early and is not evaluated."""
    from peer_rl.launch.api import resolve_device, trainer_of
    from peer_rl.training.process import keep_freed_memory, processor
    from peer_rl.training.rundir import RunDirectory

    learning = config.learning
    if hasattr(learning, "start_steps"):
        learning = replace(learning, start_steps=min(learning.start_steps, _RANDOM_STEPS), pretrain=0)
    none = {name: 0 for name in ("eval_every", "diagnose_every") if hasattr(config.protocol, name)}
    device, protocol = resolve_device(config.device), replace(config.protocol, **none)
    config = replace(config, device=device, learning=learning, protocol=protocol)
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
        if time.monotonic() - began >= _LEARNING_SECONDS / 3:
            raise _Enough

    rng = Stream(0, "measure", device=recorder.agent.device)
    with contextlib.suppress(_Enough):
        evaluate(recorder.agent, recorder.env, recorder.spec, seeds=range(1_000), rng=rng, show=count)
    return (time.monotonic() - began) / max(1, steps)


# -- memory ------------------------------------------------------------------------------------------------------------


def estimate_memory(jobs: Sequence[Job]) -> None:
    """Fill in ``memory`` of the jobs that have none; the program alone where the replay's size is unknown."""
    alike: dict[str, list[Job]] = {}
    for job in jobs:
        if not job.memory:
            job.memory = PROGRAM_BYTES
            if find_agent(job.config.agent).resumes:  # Stable-Baselines3's agents keep no replay
                alike.setdefault(json.dumps(_replay_settings(job.config), sort_keys=True), []).append(job)
    sizes = {key: _size_in_manifest(group) for key, group in alike.items()}
    unknown = [key for key, size in sizes.items() if size is None]
    answers = _ask("memory", [json.loads(key) for key in unknown], _MEMORY_TIMEOUT) if unknown else []
    sizes |= zip(unknown, answers or [0] * len(unknown), strict=True)
    for key, group in alike.items():
        for job in group:
            job.memory += sizes[key] or 0


def resident_memory(pid: int) -> int:
    """Bytes of memory that a process holds; 0 where the system does not say."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def amount(size: int) -> str:
    """Bytes in gigabytes."""
    return f"{size / 1e9:.1f} GB"


def _size_in_manifest(jobs: Sequence[Job]) -> int | None:
    """Replay and batches, from the manifest of a run of this kind that has begun."""
    for job in jobs:
        try:
            manifest = read_json(job.path / "manifest.json")
            return int(manifest["replay"]["bytes"]) + _batch_bytes(job.config, manifest["spec"]["observation_shape"])
        except (PeerError, OSError, KeyError, TypeError):
            continue
    return None


def _batch_bytes(config: AnyRunConfig, observation_shape: Sequence[int]) -> int:
    return 4 * _BATCHES * int(config.learning.batch_size) * math.prod(observation_shape)


def _replay_settings(config: AnyRunConfig) -> dict[str, Any]:
    """What the memory depends on; it is the same for every seed and beta."""
    return {
        path: value
        for path, value in as_dict(config).items()
        if path in (*_ENVIRONMENT, "steps", "episodes", "profile") or path.startswith("learning.")
    }


def _measure_memory(questions: Sequence[dict[str, Any]]) -> list[int]:
    """Replay and batches; 0 for an environment that cannot be made, which its run then reports in full."""
    from peer_rl.envs.make import env_of, spec_of
    from peer_rl.replay.make import replay_size

    sizes = []
    specs: dict[str, EnvSpec] = {}
    for question in questions:
        key = json.dumps([question.get(name) for name in _ENVIRONMENT])
        try:
            config = from_dict(question)
            if key not in specs:
                env = env_of(config)
                specs[key] = spec_of(env)
                env.close()
            replay = replay_size(config.learning, specs[key], config.steps).bytes
            sizes.append(replay + _batch_bytes(config, specs[key].observation_shape))
        except Exception:
            sizes.append(0)
    return sizes


# -- the other process -------------------------------------------------------------------------------------------------


def _ask(what: str, question: Any, timeout: float) -> list[Any] | None:
    """The answer of a process of its own; None if it crashed or took too long."""
    command = [sys.executable, "-m", "peer_rl.launch.estimate", what]
    try:
        done = subprocess.run(command, input=json.dumps(question), capture_output=True, text=True, timeout=timeout)
        answer: list[Any] = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        return None
    return answer


def _answer(what: str, question: Any) -> Sequence[float]:
    return _measure_memory(question) if what == "memory" else _measure_pace(from_dict(question))


if __name__ == "__main__":
    print("\n" + json.dumps(_answer(sys.argv[1], json.load(sys.stdin))), flush=True)
