"""What every training loop records: evaluations, logs, progress. Nothing here changes what is learned (law 2)."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from peer_rl.agents import Actor
from peer_rl.envs.make import env_of
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import PeerError, RunError
from peer_rl.rng import Stream, episode_seed
from peer_rl.settings.environment import task_of
from peer_rl.settings.run import AnyRunConfig
from peer_rl.training.evaluate import Evaluation, Quota, evaluate
from peer_rl.training.files import Committed
from peer_rl.training.loggers import Mirror
from peer_rl.training.rundir import LOGS, RunDirectory

_SHOW_SECONDS, _STATUS_SECONDS, _TIMING_SECONDS = 0.2, 1.0, 10.0


@dataclass
class Progress:
    """A run's counters: the loop writes them, everything else reads. ``total`` is in the budget's unit."""

    unit: str
    total: int
    action_repeat: int = 1
    step: int = 0
    episode: int = 0
    updates: int = 0
    last_return: float = math.nan
    evaluation: float = math.nan
    cosine: float = math.nan
    drd: float = math.nan
    note: str = ""
    """What is happening while no steps are counted."""
    plan: str = ""
    """Something to know before the run starts."""
    resumed_at: int = 0
    """Step of the checkpoint that the run continues from; 0 if it starts from the beginning."""

    @classmethod
    def of(cls, config: AnyRunConfig) -> Progress:
        """Of a run that has not begun."""
        unit = "episodes" if config.episodes else "steps"
        return cls(unit, config.episodes or config.steps or 0, task_of(config).action_repeat)

    @property
    def frame(self) -> int:
        """Environment frames so far."""
        return self.step * self.action_repeat

    @property
    def done(self) -> int:
        """How much of ``total`` is spent."""
        return self.episode if self.unit == "episodes" else self.step


class Recorder:
    """Evaluates a run, writes its logs and reports its progress, whichever loop trains."""

    agent: Actor

    def __init__(
        self,
        config: AnyRunConfig,
        run: RunDirectory,
        progress: Progress,
        *,
        spec: EnvSpec,
        show: Callable[[Progress], None],
        mirrors: Sequence[Mirror],
    ) -> None:
        self.config, self.run, self.progress = config, run, progress
        self.spec, self.show, self.mirrors = spec, show, mirrors
        self.env = env_of(config)
        self.evaluated_at = -1
        self.checkpoint_seconds = 0.0
        self._started = self._shown = self._timed = self._stated = time.monotonic()
        self._first_step = 0
        self._begun = False

    def begin(self) -> None:
        """Start or resume at ``progress.step``."""
        self._begun = True
        self.progress.resumed_at = self.progress.step
        self.write_status("running")  # at once: it holds the checksums of settings and manifest
        self.show(self.progress)
        for mirror in self.mirrors:
            mirror.open(self.run.path, self.config, self.progress.step)

    def episode(self, total: float, length: int) -> None:
        """A training episode has ended."""
        self.progress.last_return = total
        self.write("metrics", {"return": total, "length": length})

    def evaluation_due(self, *, final: bool = False) -> bool:
        """Whether an evaluation is due at this step and not done yet."""
        step = self.progress.step
        return due(step, self.config.protocol.eval_every, final) and self.evaluated_at != step

    def evaluate(self, *, final: bool = False) -> None:
        """Play episodes without exploration and log them. The ``final`` evaluation has its own quota."""
        self.evaluated_at = step = self.progress.step
        seed, quota = self.config.seed, self._quota(final=final)

        def show(played: Evaluation) -> None:
            self.progress.note = f"{'final ' * final}evaluation {quota.share(played)}"
            self.report()

        try:
            result = evaluate(
                self.agent,
                self.env,
                self.spec,
                seeds=(episode_seed(seed, "evaluate", step, index) for index in count()),
                rng=Stream(seed, "evaluate-act", step, device=self.agent.device),
                enough=quota.met,
                show=show,
            )
        except RunError as error:
            raise self.run.stopped(step, str(error)) from error
        self.progress.note = ""
        # episodes beyond the quota are left out of the score, so that every run averages over the same number
        self.progress.evaluation = mean = float(np.mean(result.returns[: quota.episodes]))
        row = {"mean": mean, "returns": result.returns, "lengths": result.lengths, "seeds": result.seeds}
        self.write("eval", {**row, "final": True} if final else row)

    def _quota(self, *, final: bool) -> Quota:
        protocol = self.config.protocol
        if final:
            return Quota(protocol.final_episodes or protocol.eval_episodes, protocol.final_steps)
        return Quota(protocol.eval_episodes)

    def write(self, log: str, row: dict[str, Any]) -> None:
        """Append a line with both counters (law 7), also to the mirrors."""
        progress = self.progress
        line = {"step": progress.step, "frame": progress.frame, "episode": progress.episode, **row}
        self.run.logs[log].write(line)
        if log in LOGS:
            for mirror in self.mirrors:
                mirror.write(log, line)

    def commit(self) -> dict[str, Committed]:
        """Make every line so far durable; returns the lengths and checksums for a checkpoint to remember."""
        for mirror in self.mirrors:
            mirror.flush()
        return {name: self.run.logs[name].commit() for name in LOGS}

    def report(self, *, final: bool = False) -> None:
        """Report progress, by the clock; law 3 covers nothing that is written here."""
        now = time.monotonic()
        if now - self._shown < _SHOW_SECONDS and not final:
            return
        self._shown = now
        self.show(self.progress)
        if now - self._timed >= _TIMING_SECONDS or final:
            self._timed = now
            seconds = now - self._started
            speed = (self.progress.step - self._first_step) / seconds
            row = {"seconds": seconds, "checkpoint_seconds": self.checkpoint_seconds, "steps_per_second": speed}
            self.write("timing", row)
            for log in self.run.logs.values():
                log.flush()
        if now - self._stated >= _STATUS_SECONDS or final:
            self._stated = now
            self.write_status("finished" if final else "running")

    def write_status(self, state: str) -> None:
        """Write status.json for other processes."""
        progress = self.progress
        self.run.write_status(
            state,
            step=progress.step,
            frame=progress.frame,
            episode=progress.episode,
            done=progress.done,
            total=progress.total,
            unit=progress.unit,
            last_return=progress.last_return if math.isfinite(progress.last_return) else None,
        )

    def close(self, *, failed: bool) -> None:
        """Close the evaluation's environment and the mirrors; a run that ends early is stopped, not running."""
        if failed and self._begun:
            with contextlib.suppress(PeerError, OSError):  # whatever stops the run matters more than its status
                self.run.check_lock()
                self.write_status("stopped")
        self.env.close()
        for mirror in self.mirrors:
            mirror.close(failed=failed)


def due(step: int, every: int, final: bool) -> bool:
    """Whether something that happens every so many steps, 0 for never, happens at this one."""
    return every > 0 and (step % every == 0 or final)
