"""Observers of our own loop: metrics, diagnostics, evaluation. None may change what is learned (law 2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from peer_rl.agents import Agent, CriticAgent
from peer_rl.envs.spec import EnvSpec
from peer_rl.replay.replay import Replay
from peer_rl.rng import Stream
from peer_rl.settings import find_agent
from peer_rl.settings.run import AnyRunConfig
from peer_rl.settings.tasks import find_task
from peer_rl.training.gridworld_probe import probe
from peer_rl.training.loggers import Mirror
from peer_rl.training.metrics import Window
from peer_rl.training.recorder import Progress, Recorder, due
from peer_rl.training.representation import measure
from peer_rl.training.rundir import RunDirectory


class Observers(Recorder):
    """``Recorder`` with windows of metrics, and diagnostics."""

    agent: Agent

    def __init__(
        self,
        config: AnyRunConfig,
        run: RunDirectory,
        progress: Progress,
        *,
        agent: Agent,
        replay: Replay,
        spec: EnvSpec,
        rng: Stream,
        show: Callable[[Progress], None],
        mirrors: Sequence[Mirror],
    ) -> None:
        super().__init__(config, run, progress, spec=spec, show=show, mirrors=mirrors)
        self.agent, self.replay, self.rng = agent, replay, rng
        self.probe = probe if find_task(config.task).suite == "gridworld" else None
        self.window = Window()
        self.diagnosed_at = -1
        self.has_critic = find_agent(config.agent).td_target

    def add(self, metrics: dict[str, Tensor]) -> None:
        """Add one update's metrics to the current window."""
        self.window.add(metrics)

    def observe(self, *, final: bool = False) -> None:
        """Whatever is due at this step: metrics, diagnostics, evaluation, the progress bar."""
        step, protocol = self.progress.step, self.config.protocol
        if step % protocol.log_every == 0 or final:
            self._log_window()
        diagnose = due(step, protocol.diagnose_every, final) and self.diagnosed_at != step
        if diagnose and self.has_critic and self.progress.updates:
            self._diagnose()
        if self.evaluation_due(final=final):
            self.evaluate(final=final)
        self.report()

    def _log_window(self) -> None:
        if means := self.finite_means():
            self.write("metrics", {"updates": self.progress.updates, **means})
            self.window.clear()

    def finite_means(self) -> dict[str, float]:
        """The unfinished window's means; the run stops here if one of them is not finite."""
        means = self.window.means()
        for name, value in means.items():
            if not math.isfinite(value):
                raise self.run.stopped(self.progress.step, f"{name} became {value}")
        return means

    def _diagnose(self) -> None:
        self.diagnosed_at = self.progress.step
        agent = cast(CriticAgent, self.agent)
        try:
            found = measure(agent, self.replay, self.rng)
            if self.probe is not None:
                found |= self.probe(agent, self.spec, self.rng)
        except ValueError as error:  # features that are not finite
            raise self.run.stopped(self.progress.step, str(error)) from error
        for name in ("cosine", "drd"):
            setattr(self.progress, name, math.nan if found[name] is None else found[name])
        self.write("diagnostics", found)

    def state_dict(self) -> dict[str, Any]:
        """What was written last, and the metrics not yet written."""
        written = {"evaluated_at": self.evaluated_at, "inspected_at": self.diagnosed_at}
        return {**written, "last_return": self.progress.last_return, "window": self.window.state_dict()}

    def load_state_dict(self, state: dict[str, Any], device: torch.device) -> None:
        """The inverse of ``state_dict``; ``progress`` is already at the checkpoint's step."""
        self.evaluated_at, self.diagnosed_at = state["evaluated_at"], state["inspected_at"]
        self.window.load_state_dict(state["window"], device)
        self._first_step = self.progress.step
        self.progress.last_return = state.get("last_return", math.nan)  # peer-rl 0.1 did not keep it
