"""Writes the run directory of a user's script: its logs, counters and state, while the script trains.

Nothing of a script can be checkpointed, so a run that was not finished starts again; a finished one is left alone.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import time
from collections.abc import Callable
from typing import Any

from peer_rl.errors import ConfigError, PeerError, RunError
from peer_rl.settings import as_dict
from peer_rl.settings.run import AnyRunConfig
from peer_rl.training.rundir import LOGS, RunDirectory, read_config
from peer_rl.training.script_loader import Script

DIAGNOSED = frozenset(
    {
        "drd",
        "drd_head0",
        "drd_share_positive",
        "bellman_gap",
        "cosine",
        "inner_product",
        "feature_norm",
        "next_feature_norm",
        "head_norm",
        "effective_rank",
        "dormant_fraction",
        "signed_fraction",
        "gradient_ratio",
        "rows",
        "drd_rows",
    }
)
"""Numbers of `diagnose` that a script logs under their own names."""
_STATUS_SECONDS, _TIMING_SECONDS = 1.0, 10.0


class BudgetSpentError(BaseException):
    """Ends a training function that logs a step beyond the budget; no ``except Exception`` of its own catches it."""


class ScriptDirectory(RunDirectory):
    """A run directory whose unfinished run starts again, with the settings and the code as they are now."""

    def _check_config(self) -> None:
        config = self.path / "config.toml"
        if self.state() != "finished" and config.exists():
            (self.path / "status.json").unlink(missing_ok=True)  # it holds the checksum of this config
            try:
                same = as_dict(read_config(self.path)) == as_dict(self.config)
            except RunError:  # half written
                same = False
            if not same:
                shutil.rmtree(self.path / "checkpoint", ignore_errors=True)
                config.unlink()
        super()._check_config()


class ScriptRun:
    """One run of a script: a context manager around the training."""

    def __init__(self, config: AnyRunConfig, run: RunDirectory) -> None:
        self.config, self.run = config, run
        self.step = self.episode = self.evaluations = 0
        self.last_return = math.nan
        self._began = self._stated = self._timed = time.monotonic()

    @property
    def budget(self) -> int:
        """Agent steps to train for."""
        assert self.config.steps is not None
        return self.config.steps

    def begin(self, script: Script, command: list[str], **about: Any) -> None:
        """The run starts from nothing: what an unfinished one left behind is dropped."""
        self.run.write_manifest({"script": script.spec, "function": script.name, **about}, again=True, command=command)
        self.write_status("running")

    def __enter__(self) -> ScriptRun:
        return self

    def __exit__(self, *problem: object) -> None:
        for log in self.run.logs.values():
            log.flush()
        if problem[0] is not None:
            with contextlib.suppress(PeerError, OSError):  # whatever stops the run matters more than its status
                self.run.check_lock()
                self.write_status("stopped")

    def advance(self, step: int, *, last_return: float | None = None) -> None:
        """The training stands at ``step``; now and then other processes hear of it."""
        self.step = step
        if last_return is not None:
            self.last_return = last_return
        now = time.monotonic()
        if now - self._stated >= _STATUS_SECONDS:
            self._stated = now
            self.write_status("running")
        if now - self._timed >= _TIMING_SECONDS:
            self._write_time(now)

    def write(self, log: str, row: dict[str, Any]) -> None:
        """Append a line, with both counters; a script counts agent steps alone, so frames are the same."""
        self.run.logs[log].write({"step": self.step, "frame": self.step, "episode": self.episode, **row})

    def evaluation(self, returns: list[float], lengths: list[int], seeds: list[int], *, final: bool = False) -> None:
        """Append the returns of an evaluation, or one return that a training function logged."""
        mean = sum(returns) / len(returns)
        if not math.isfinite(mean):
            raise RunError(f"{self.run.path} stopped at step {self.step}: a return is {mean}")
        self.evaluations += 1
        row = {"mean": mean, "returns": returns, "lengths": lengths, "seeds": seeds}
        self.write("eval", {**row, "final": True} if final else row)

    def finish(self) -> None:
        """Everything is written: from now on the run counts."""
        if not self.evaluations:
            raise RunError(
                f"{self.run.path} logged no return_, so there is nothing to compare: log(step=..., return_=...)"
            )
        self._write_time(time.monotonic())
        for name in LOGS:
            self.run.logs[name].commit()
        self.write_status("finished")

    def write_status(self, state: str) -> None:
        """Where the run stands."""
        self.run.write_status(
            state,
            step=self.step,
            frame=self.step,
            episode=self.episode,
            done=self.budget if state == "finished" else min(self.step, self.budget),
            total=self.budget,
            unit="steps",
            last_return=self.last_return if math.isfinite(self.last_return) else None,
        )

    def _write_time(self, now: float) -> None:
        self._timed = now
        seconds = max(now - self._began, 1e-9)
        self.write("timing", {"seconds": seconds, "checkpoint_seconds": 0.0, "steps_per_second": self.step / seconds})
        for log in self.run.logs.values():
            log.flush()


class ScriptLog:
    """What a training function is given as ``log``: ``log(step=..., return_=..., **numbers)``.

    return_ is an episode's or an evaluation's return; the run's score is the mean of the last ten. Numbers with the
    names of `diagnose` are the representation's, all others the training's; a tensor with one entry is a number.
    """

    def __init__(self, run: ScriptRun) -> None:
        self._run = run

    def __call__(self, step: int, return_: Any = None, **numbers: Any) -> None:
        """Append what is known at ``step``. A step beyond the budget ends the training."""
        run = self._run
        step = int(step)
        if step < run.step:
            raise ConfigError(f"log was given step {step} after step {run.step}: steps never go back")
        if step > run.budget:
            raise BudgetSpentError
        found = {name: _number(name, value) for name, value in numbers.items()}
        returned = None if return_ is None else _number("return_", return_)
        run.advance(step, last_return=returned)
        if returned is not None:
            run.episode += 1
            run.evaluation([returned], [], [])
        for log, names in (("diagnostics", found.keys() & DIAGNOSED), ("metrics", found.keys() - DIAGNOSED)):
            if names:
                run.write(log, {name: value for name, value in found.items() if name in names})


def train_function(script: Script, run: ScriptRun) -> None:
    """Call a training function once; it ends by itself, or at the first log beyond the budget."""
    config = run.config
    options = {"regularizer": config.regularizer, "control": config.settings.control, "steps": run.budget}
    with contextlib.suppress(BudgetSpentError):
        script.call(config.seed, float(config.beta), ScriptLog(run), **options)


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    read: Callable[[], Any] | None = getattr(value, "item", None)
    try:
        return float(read() if read else value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"log takes numbers, but {name} is {value!r}") from error
