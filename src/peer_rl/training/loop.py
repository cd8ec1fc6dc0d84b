"""The loop that trains every agent: it owns when things happen; the agent owns what is learned."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from peer_rl.agents import Agent, Array
from peer_rl.configs import find_agent
from peer_rl.configs.run import AnyRunConfig
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import CheckpointError, ConfigError
from peer_rl.plugins import load_object
from peer_rl.regularizers import make
from peer_rl.replay.uniform import UniformReplay
from peer_rl.training.inspect import inspect
from peer_rl.training.metrics import Window
from peer_rl.training.rundir import LOGS, RunDirectory
from peer_rl.training.runner import Progress, Runner, due
from peer_rl.training.seeding import Stream, Streams, episode_seed
from peer_rl.training.trees import all_finite


class Trainer(Runner):
    """One run: environment, agent, replay, streams and logs, resumed from the newest checkpoint if there is one."""

    def __init__(
        self,
        config: AnyRunConfig,
        run: RunDirectory,
        *,
        checkpoint_seconds: float = 60.0,
        show: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        super().__init__(config, run, show)
        self.checkpoint_seconds = checkpoint_seconds
        self.streams = Streams(config.seed, self.device)
        self.agent: Agent = build_agent(config, self.spec, self.device)
        self.replay = self._make_replay()
        self.probe = load_object(self.task.probe) if self.task.probe else None
        self.window = Window()
        self.updates = 0
        self.inspected_at = -1
        self._saved = time.monotonic()

    def _make_replay(self) -> UniformReplay:
        learning = self.config.learning
        return UniformReplay(
            learning.buffer_size,
            (self.spec.observation_shape, self.spec.observation_dtype),
            self.spec.action_column,
            gamma=learning.gamma,
            n_step=learning.n_step,
            batch_size=learning.batch_size,
            device=self.device,
        )

    # -- the run ---------------------------------------------------------------------------------------------------

    def train(self) -> None:
        """Train until the budget is used up; a run that is finished already is left as it is."""
        self._resume()
        if self.finished():
            if self.run.state() != "finished":  # killed between the last checkpoint and the last status
                self._count()
                self._write_status("finished")
            return
        self.run.write_manifest(self.spec.as_json())
        while not self.finished():
            self.play_episode()
            if time.monotonic() - self._saved >= self.checkpoint_seconds and not self.finished():
                self.save()
        self._observe(final=True)
        self.save()
        self._tell(final=True)

    def play_episode(self) -> None:
        """One episode, learning along the way. Its environment seed depends on nothing but its number."""
        seed = episode_seed(self.config.seed, "environment", self.episode)
        observation, _ = self.env.reset(seed=seed)
        obs = self._see(observation)
        total, length, over = 0.0, 0, False
        while not over:
            action = self.choose(obs, first=length == 0)
            observation, given, terminated, truncated, _ = self.env.step(self.spec.decode(action))
            reward, next_obs = float(given), self._see(observation)
            if not math.isfinite(reward):
                raise self._stop(f"the environment gave the reward {reward}")
            self.replay.add(
                obs=obs,
                action=action,
                reward=reward,
                next_obs=next_obs,
                terminated=terminated,
                truncated=truncated,
            )
            obs, over = next_obs, terminated or truncated
            total, length = total + reward, length + 1
            self.step += 1
            self.learn()
            if self.config.steps is not None and self.finished() and not over:
                return  # the budget ends inside an episode, which then has no return
            if not over:
                self._observe()
        self.episode += 1
        self.progress.last_return = total
        self._write("metrics", {"return": total, "length": length})
        self._observe()

    def _see(self, observation: Any) -> Array:
        """The observation as the agent reads it; one NaN in the replay would come back for ever."""
        obs = self.spec.encode(observation)
        if not np.isfinite(obs).all():
            raise self._stop("the environment gave an observation that is not finite")
        return obs

    def choose(self, obs: Array, *, first: bool) -> Any:
        """A random action in the random phase, the agent's with exploration after it."""
        if self.step < self.config.learning.start_steps:
            return self.spec.random_action(self.streams.explore.numpy)
        return self.agent.act(obs[None], first=np.array([first]), explore=True, rng=self.streams.explore)[0]

    def learn(self) -> None:
        """The updates that are due after this step."""
        learning = self.config.learning
        if self.step <= learning.start_steps or self.step % learning.update_every:
            return
        for _ in range(learning.updates):
            batch = self.replay.sample(self.streams.replay.numpy)
            try:
                update = self.agent.update(batch, index=self.updates, rng=self.streams.update)
            except ValueError as error:  # the regularizer's checks: features or loss that are not finite
                raise self._stop(str(error)) from error
            self.window.add(update.metrics)
            self.updates += 1

    # -- observers: none of these may change what is learned (law 2) ------------------------------------------------

    def _observe(self, *, final: bool = False) -> None:
        """Whatever is due at this step: metrics, diagnostics, evaluation, the progress bar."""
        protocol = self.config.protocol
        if self.step % protocol.log_every == 0 or final:
            self._log_window()
        if due(self.step, protocol.diagnose_every, final) and self.updates and self.inspected_at != self.step:
            self._inspect()
        if due(self.step, protocol.eval_every, final) and self.evaluated_at != self.step:
            self._evaluate()
        self._tell()

    def _log_window(self) -> None:
        means = self._finite_means()
        if means:
            self._write("metrics", {"updates": self.updates, **means})
            self.window.clear()

    def _finite_means(self) -> dict[str, float]:
        means = self.window.means()
        for name, value in means.items():
            if not math.isfinite(value):
                raise self._stop(f"{name} became {value}")
        return means

    def _inspect(self) -> None:
        self.inspected_at = self.step
        try:
            found = inspect(self.agent, self.replay, self.streams.diagnose)
            if self.probe is not None:
                found |= self.probe(self.agent, self.streams.diagnose)
        except ValueError as error:  # features that are not finite
            raise self._stop(str(error)) from error
        self.progress.cosine = found["cosine"] if found["cosine"] is not None else math.nan
        self._write("diagnostics", found)

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Publish a checkpoint, between episodes only; never one whose losses or weights are not finite."""
        self._finite_means()
        began = time.monotonic()
        agent = self.agent.state_dict()
        if not all_finite(agent):
            raise self._stop("a weight became NaN or infinite")
        loop = {
            "step": self.step,
            "episode": self.episode,
            "updates": self.updates,
            "evaluated_at": self.evaluated_at,
            "inspected_at": self.inspected_at,
            "streams": self.streams.state_dict(),
            "window": self.window.state_dict(),
        }
        components = {"agent": agent, "loop": loop, "replay": self.replay.state_dict()}
        lengths = {name: self.run.logs[name].commit() for name in LOGS}
        self.run.checkpoints.save(self.step, components, self.replay.ring, lengths)
        self._saved = time.monotonic()
        self._checkpoint_time += self._saved - began

    def _resume(self) -> None:
        checkpoint = self.run.open()
        if checkpoint is None:
            return
        loop = checkpoint.components["loop"]
        try:
            self.agent.load_state_dict(checkpoint.components["agent"])
            self.streams.load_state_dict(loop["streams"])
            self.window.load_state_dict(loop["window"], self.device)
            for name in ("step", "episode", "updates", "evaluated_at", "inspected_at"):
                setattr(self, name, loop[name])
            checkpoint.restore_replay(self.replay.ring)
            self.replay.load_state_dict(checkpoint.components["replay"])
        except (KeyError, ValueError, RuntimeError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise CheckpointError(f"{checkpoint.folder} does not fit this version of the agent: {reason}") from error
        self._first_step = self.step


def build_agent(config: AnyRunConfig, spec: EnvSpec, device: torch.device) -> Agent:
    """The config's agent, freshly initialised. Nothing here depends on beta but the regularizer (law 1)."""
    entry = find_agent(config.agent)
    if entry.actions == "discrete" and not spec.actions:
        raise ConfigError(f"{config.agent} needs discrete actions, but {config.task} has continuous ones")
    try:
        regularizer = make(config.regularizer, config.beta)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    rng = Stream(config.seed, "initialise", device=torch.device("cpu"))
    agent: Agent = load_object(entry.build)(config.settings, spec, regularizer=regularizer, rng=rng, device=device)
    return agent
