"""The training loop of every agent. The loop decides when things happen, the agent what is learned."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from peer_rl.agents import Agent, Array
from peer_rl.agents.make import build_agent
from peer_rl.envs.make import env_of, spec_of
from peer_rl.errors import CheckpointError
from peer_rl.replay.make import make_replay, replay_size
from peer_rl.rng import Streams, episode_seed
from peer_rl.settings.run import AnyRunConfig
from peer_rl.training.loggers import Mirror
from peer_rl.training.observers import Observers
from peer_rl.training.recorder import Progress
from peer_rl.training.rundir import RunDirectory
from peer_rl.training.trees import all_finite

_COUNTERS = ("step", "episode", "updates")


class Trainer:
    """One run: environment, agent, replay, streams and logs, resumed from the newest checkpoint if there is one."""

    def __init__(
        self,
        config: AnyRunConfig,
        run: RunDirectory,
        *,
        checkpoint_seconds: float = 60.0,
        show: Callable[[Progress], None] = lambda progress: None,
        mirrors: Sequence[Mirror] = (),
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.config, self.run, self.checkpoint_seconds, self.stop = config, run, checkpoint_seconds, stop
        self.device = torch.device(config.device)
        self.env = env_of(config)
        self.spec = spec_of(self.env)
        self.streams = Streams(config.seed, self.device)
        self.agent: Agent = build_agent(config, self.spec, self.device)
        self.replay_size = replay_size(config.learning, self.spec, config.steps)
        self.replay = make_replay(config.learning, self.spec, self.device, steps=config.steps)
        self.progress = Progress.of(config)
        if self.replay_size.large:
            self.progress.plan = f"the replay grows to {self.replay_size}"
        self.observers = Observers(
            config,
            run,
            self.progress,
            agent=self.agent,
            replay=self.replay,
            spec=self.spec,
            rng=self.streams.diagnose,
            show=show,
            mirrors=mirrors,
        )
        self._saved = time.monotonic()

    @property
    def step(self) -> int:
        """Agent steps so far."""
        return self.progress.step

    def train(self) -> None:
        """Train until the budget is spent, or, after an episode, a checkpoint and a KeyboardInterrupt if ``stop()``."""
        self._resume()
        if self.finished():
            if self.run.state() != "finished":  # killed between the last checkpoint and the last status
                self.observers.write_status("finished")
            return
        self.run.write_manifest(self.spec.as_json(), replay=asdict(self.replay_size))
        self.observers.begin()
        while not self.finished():
            self.play_episode()
            stop = self.stop()
            if (stop or time.monotonic() - self._saved >= self.checkpoint_seconds) and not self.finished():
                self.save()
                if stop:
                    raise KeyboardInterrupt
        self.observers.observe(final=True)
        self.save()
        self.observers.report(final=True)

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *problem: object) -> None:
        self.observers.close(failed=problem[0] is not None)  # first: an environment may fail to close
        self.env.close()

    def finished(self) -> bool:
        """Whether the budget, in steps or episodes, is spent."""
        return self.progress.done >= self.progress.total

    def play_episode(self) -> None:
        """Play one episode and learn. Its environment seed depends only on the run's seed and the episode's number."""
        learning = self.config.learning
        observation, _ = self.env.reset(seed=episode_seed(self.config.seed, "environment", self.progress.episode))
        obs = self._see(observation)
        total, length, over = 0.0, 0, False
        while not over:
            action = self.choose(obs, first=length == 0)
            observation, given, terminated, truncated, info = self.env.step(self.spec.decode(action))
            reward, next_obs, over = float(given), self._see(observation), terminated or truncated
            if not math.isfinite(reward):
                raise self.run.stopped(self.step, f"the environment gave the reward {reward}")
            self.replay.add(
                obs=obs,
                action=action,
                reward=min(max(reward, -1.0), 1.0) if learning.clip_rewards else reward,
                next_obs=next_obs,
                discount=0.0 if terminated or (learning.lost_life_ends and info.get("lost_life")) else 1.0,
                last=over,
            )
            obs, total, length = next_obs, total + reward, length + 1
            self.progress.step += 1
            self.learn()
            if not over:
                if self.finished():
                    return  # the budget ends inside an episode, which has no return
                self.observers.observe()
        if learning.update_after_episodes:
            self._update(length // learning.update_every * learning.updates)
        self.progress.episode += 1
        self.observers.episode(total, length)
        if not self.finished():  # otherwise train() makes the final observation
            self.observers.observe()

    def _see(self, observation: Any) -> Array:
        """The observation as the agent reads it. A NaN stops the run before it reaches the replay."""
        obs = self.spec.encode(observation)
        if not np.isfinite(obs).all():
            raise self.run.stopped(self.step, "the environment gave an observation that is not finite")
        return obs

    def choose(self, obs: Array, *, first: bool) -> Any:
        """A random action in the random phase, the agent's with exploration after it."""
        if self.step < self.config.learning.start_steps:
            return self.spec.random_action(self.streams.explore.numpy)
        action = self.agent.act(obs[None], first=np.array([first]), explore=True, rng=self.streams.explore)[0]
        if not np.isfinite(action).all():  # some simulators crash on a NaN
            raise self.run.stopped(self.step, f"the agent's action became {action}")
        return action

    def learn(self) -> None:
        """The updates that are due after this step."""
        learning = self.config.learning
        if not (self.step % learning.update_every or learning.update_after_episodes):
            self._update(learning.updates)

    def _update(self, count: int) -> None:
        """A round of updates; none in the random phase."""
        learning = self.config.learning
        if self.step <= learning.start_steps:
            return
        if self.progress.updates == 0:
            count = learning.pretrain or count
        for index in range(count):
            if index % 100 == 99:  # a long round
                self.progress.note = f"update {index + 1}/{count}"
                self.observers.report()
            batch = self.replay.sample(self.streams.replay.numpy)
            try:
                update = self.agent.update(batch, index=self.progress.updates, rng=self.streams.update)
                if update.priorities is not None:
                    self.replay.update_priorities(update.priorities)
                adapted = self.agent.regularizer.adapt()
            except ValueError as error:  # features, a loss or a priority that is not finite
                raise self.run.stopped(self.step, str(error)) from error
            self.observers.add({**update.metrics, **adapted})
            self.progress.updates += 1
        self.progress.note = ""

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Publish a checkpoint, between episodes only; never one whose losses or weights are not finite."""
        self.run.check_lock()
        self.observers.finite_means()
        began = time.monotonic()
        agent, regularizer = self.agent.state_dict(), self.agent.regularizer.state_dict()
        if not (all_finite(agent) and all_finite(regularizer)):
            raise self.run.stopped(self.step, "a weight became NaN or infinite")
        loop = {name: getattr(self.progress, name) for name in _COUNTERS} | self.observers.state_dict()
        loop |= {"streams": self.streams.state_dict(), "regularizer": regularizer}  # a policy is loaded without one
        components = {"agent": agent, "loop": loop, "replay": self.replay.state_dict()}
        self.run.checkpoints.save(self.step, components, self.replay.ring, self.observers.commit())
        self._saved = time.monotonic()
        self.observers.checkpoint_seconds += self._saved - began

    def _resume(self) -> None:
        checkpoint = self.run.open(self.replay.ring)
        if checkpoint is None:
            return
        loop = checkpoint.components["loop"]
        try:
            self.agent.load_state_dict(checkpoint.components["agent"])
            self.agent.regularizer.load_state_dict(loop.get("regularizer", {}))
            self.streams.load_state_dict(loop["streams"])
            for name in _COUNTERS:
                setattr(self.progress, name, loop[name])
            self.observers.load_state_dict(loop, self.device)
            self.replay.load_state_dict(checkpoint.components["replay"])
        except (KeyError, ValueError, RuntimeError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise CheckpointError(f"{checkpoint.folder} does not fit this version of the agent: {reason}") from error
