"""Whole training loops that stop after every so many steps, each in a process of its own, to be timed in turns."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from peer_rl.errors import RunError

_HALF_CHEETAH, _ROAD_RUNNER = "mujoco/half-cheetah", "atari/road-runner"
TASKS = {"td3": _HALF_CHEETAH, "sac": _HALF_CHEETAH, "curl-rainbow": _ROAD_RUNNER, "drq-dqn": _ROAD_RUNNER}
"""What each agent is timed on."""
START_STEPS = 1_000
_FOR_EVER = 10**9


class Over(Exception):
    """Stops a contender that has been timed long enough."""


class Pace:
    """Called by a loop after each step; holds it at the end of a turn until the bench says go."""

    def __init__(self, connection: Connection, turn_steps: int) -> None:
        self.connection, self.turn_steps = connection, turn_steps
        self.steps, self.began = 0, time.perf_counter()

    def __call__(self, learning: bool) -> None:
        """One step was taken; those of the random phase do not count."""
        self.steps += learning
        if learning and self.steps % self.turn_steps == 0:
            self.connection.send(time.perf_counter() - self.began)
            if self.connection.recv() == "stop":
                raise Over
            self.began = time.perf_counter()


def run_ours(agent: str, threads: int, pace: Pace) -> None:
    """Our trainer as ``peer-rl train --beta 0`` runs it: run directory, metrics and diagnostics; evaluation off."""
    from peer_rl.settings import configure
    from peer_rl.training.loop import Trainer
    from peer_rl.training.process import keep_freed_memory, processor
    from peer_rl.training.rundir import RunDirectory

    keep_freed_memory()
    settings: dict[str, Any] = {"start_steps": START_STEPS, "eval_every": 0, "device": "cpu", "threads": threads}
    if agent == "sac":
        settings["target_every"] = 1  # as in Stable-Baselines3
    config = configure(agent, TASKS[agent], beta=0.0, steps=_FOR_EVER, **settings)

    class Paced(Trainer):
        def learn(self) -> None:
            super().learn()
            pace(self.step > START_STEPS)

    with processor(threads), tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder) / "run", config)
        with run, Paced(config, run, checkpoint_seconds=_FOR_EVER) as trainer:
            trainer.train()


def run_theirs(library: str, agent: str, threads: int, pace: Pace) -> None:
    """Stable-Baselines3's or SBX's loop with our networks, batch, buffer and schedule."""
    import numpy as np
    import torch
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.noise import NormalActionNoise

    from peer_rl.envs.make import make_env
    from peer_rl.settings.tasks import find_task

    torch.set_num_threads(threads)
    algorithms: Any = __import__(library)

    class Paced(BaseCallback):
        def _on_step(self) -> bool:
            pace(self.num_timesteps > START_STEPS)
            return True

    env = make_env(find_task(TASKS[agent]))  # the very same environment
    noise = {"action_noise": NormalActionNoise(np.zeros(6), 0.1 * np.ones(6))} if agent == "td3" else {}
    model = getattr(algorithms, agent.upper())(
        "MlpPolicy",
        env,
        learning_rate=3e-4,
        buffer_size=1_000_000,
        learning_starts=START_STEPS,
        batch_size=256,
        train_freq=1,
        gradient_steps=1,
        policy_kwargs={"net_arch": [256, 256]},
        device="cpu",
        **noise,
    )
    model.learn(_FOR_EVER, callback=Paced())


LIBRARIES: dict[str, tuple[str, Callable[[str, int, Pace], None]]] = {
    "peer-rl": ("torch", run_ours),
    "stable-baselines3": (
        "stable_baselines3",
        lambda agent, threads, pace: run_theirs("stable_baselines3", agent, threads, pace),
    ),
    "sbx": ("sbx", lambda agent, threads, pace: run_theirs("sbx", agent, threads, pace)),
}
"""By name: the package that must be there, and the loop."""


def installed(agent: str) -> list[str]:
    """The libraries that can be measured here; for pixels there is only ours."""
    names = LIBRARIES if TASKS[agent] == _HALF_CHEETAH else ("peer-rl",)
    return [name for name in names if find_spec(LIBRARIES[name][0])]


def _contend(connection: Connection, library: str, agent: str, cores: list[int], turn_steps: int) -> None:
    os.sched_setaffinity(0, cores)  # before any library makes its threads
    try:
        LIBRARIES[library][1](agent, len(cores), Pace(connection, turn_steps))
    except (Over, EOFError, KeyboardInterrupt):
        pass
    except Exception as error:
        connection.send(error.__class__(f"{library}: {error}"))


@dataclass
class Contender:
    """One loop in a process of its own, held after its first turn, which is not counted."""

    library: str
    agent: str
    cores: list[int]
    turn_steps: int

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        arguments = (theirs, self.library, self.agent, self.cores, self.turn_steps)
        self._process = context.Process(target=_contend, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    def go(self) -> None:
        """Begin a turn."""
        self._connection.send("go")

    def seconds(self) -> float:
        """Wait for the turn's end; how long it took."""
        try:
            answer = self._connection.recv()
        except EOFError as error:
            raise RunError(f"{self.library} {self.agent} died while it was measured") from error
        if isinstance(answer, Exception):
            raise RunError(f"{self.library} {self.agent} cannot be measured: {answer}") from answer
        return float(answer)

    def stop(self) -> None:
        """End the process."""
        try:
            self._connection.send("stop")
        except OSError:  # it is gone already
            return
        self._process.join(10)
        self._process.kill()
