"""What every runner needs, whoever learns: environments, counters, evaluation, logs and progress."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch

from peer_rl.agents import Actor
from peer_rl.configs.run import AnyRunConfig
from peer_rl.envs.make import make_env, spec_of
from peer_rl.envs.tasks import find_task
from peer_rl.errors import RunError
from peer_rl.training.evaluate import evaluate
from peer_rl.training.rundir import RunDirectory
from peer_rl.training.seeding import Stream, episode_seed

_SHOW_SECONDS, _STATUS_SECONDS, _TIMING_SECONDS = 0.2, 1.0, 10.0


@dataclass
class Progress:
    """Where a run stands. ``done`` counts towards ``total`` in the budget's own unit."""

    unit: str
    total: int
    done: int = 0
    step: int = 0
    frame: int = 0
    episode: int = 0
    last_return: float = math.nan
    evaluation: float = math.nan
    cosine: float = math.nan


class Runner:
    """One run's environments, counters and logs. Nothing here may change what is learned (law 2)."""

    agent: Actor

    def __init__(self, config: AnyRunConfig, run: RunDirectory, show: Callable[[Progress], None]) -> None:
        self.config, self.run, self.show = config, run, show
        self.device = torch.device(config.device)
        self.task = find_task(config.task)
        self.env = make_env(self.task, max_episode_steps=config.max_episode_steps)
        self.eval_env = make_env(self.task, max_episode_steps=config.max_episode_steps)
        self.spec = spec_of(self.env)
        self.step = self.episode = 0
        self.evaluated_at = -1
        unit = "episodes" if config.episodes else "steps"
        self.progress = Progress(unit=unit, total=config.episodes or config.steps or 0)
        self._started = self._shown = self._timed = self._stated = time.monotonic()
        self._first_step, self._checkpoint_time = 0, 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.env.close()
        self.eval_env.close()

    def finished(self) -> bool:
        """Whether the budget, in steps or episodes, is used up."""
        if self.config.episodes is not None:
            return self.episode >= self.config.episodes
        return self.step >= (self.config.steps or 0)

    def _evaluate(self) -> None:
        self.evaluated_at = self.step
        seeds = [
            episode_seed(self.config.seed, "evaluate", self.step, index)
            for index in range(self.config.protocol.eval_episodes)
        ]
        rng = Stream(self.config.seed, "evaluate-act", self.step, device=self.device)
        result = evaluate(self.agent, self.eval_env, self.spec, seeds=seeds, rng=rng)
        self.progress.evaluation = result.mean
        row = {
            "mean": result.mean,
            "returns": result.returns,
            "lengths": result.lengths,
            "seeds": result.seeds,
        }
        self._write("eval", row)

    def _write(self, log: str, row: dict[str, Any]) -> None:
        """Both counters on every line (law 7)."""
        frame = self.step * self.task.action_repeat
        self.run.logs[log].write({"step": self.step, "frame": frame, "episode": self.episode, **row})

    def _tell(self, *, final: bool = False) -> None:
        """Progress for people, by the clock; nothing that law 3 covers is written here."""
        now = time.monotonic()
        if now - self._shown < _SHOW_SECONDS and not final:
            return
        self._count()
        self._shown = now
        self.show(self.progress)
        if now - self._stated >= _STATUS_SECONDS or final:
            self._stated = now
            self._write_status("finished" if final else "running")
        if now - self._timed >= _TIMING_SECONDS or final:
            self._timed = now
            seconds = now - self._started
            speed = (self.step - self._first_step) / seconds
            row = {"seconds": seconds, "checkpoint_seconds": self._checkpoint_time, "steps_per_second": speed}
            self._write("timing", row)
            for log in self.run.logs.values():
                log.flush()

    def _count(self) -> None:
        progress = self.progress
        progress.step, progress.frame = self.step, self.step * self.task.action_repeat
        progress.episode = self.episode
        progress.done = self.episode if progress.unit == "episodes" else self.step

    def _write_status(self, state: str) -> None:
        progress = self.progress
        self.run.write_status(
            state,
            step=self.step,
            frame=progress.frame,
            episode=self.episode,
            done=progress.done,
            total=progress.total,
            unit=progress.unit,
            last_return=progress.last_return if math.isfinite(progress.last_return) else None,
        )

    def _stop(self, what: str) -> RunError:
        steps = self.run.checkpoints.steps()
        kept = f"the last good checkpoint, at step {steps[-1]}, is kept" if steps else "there is no checkpoint yet"
        return RunError(f"stopped at step {self.step}: {what}; {kept} in {self.run.path}")


def due(step: int, every: int, final: bool) -> bool:
    """Whether something that happens every so many steps, and once more at the end, happens now."""
    return every > 0 and (step % every == 0 or final)
