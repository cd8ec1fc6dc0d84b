"""Runs ``ppo`` and ``trpo`` of Stable-Baselines3 and sb3-contrib under our protocol.

Their code is unchanged: they get the task as an environment, and a callback writes our run directory. They use the
global generators of torch and numpy, which are restored afterwards. A stopped run starts again.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from sb3_contrib import TRPO
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from peer_rl.agents import Array
from peer_rl.agents.checks import check_vectors
from peer_rl.envs.make import Env, env_of, spec_of
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import RunError
from peer_rl.rng import episode_seed, untouched_generators
from peer_rl.sb3.on_policy import OnPolicyPolicy, OnPolicySettings, network_options, spaces_of
from peer_rl.settings.beta import check_beta
from peer_rl.settings.ppo import PPOConfig
from peer_rl.settings.run import AnyRunConfig
from peer_rl.training.loggers import Mirror
from peer_rl.training.recorder import Progress, Recorder
from peer_rl.training.rundir import RunDirectory
from peer_rl.training.trees import all_finite

_COUNTERS = ("step", "episode", "updates")
_MAY_BE_NAN = "explained_variance"  # undefined where all returns of a batch are the same


class OnPolicyTrainer:
    """One run of ``ppo`` or ``trpo``."""

    model: OnPolicyAlgorithm

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
        del checkpoint_seconds, stop  # the one checkpoint is the final policy
        check_beta(config)
        self.config, self.run = config, run
        self.settings: OnPolicySettings = config.settings
        self.env = env_of(config)
        self.spec = spec_of(self.env)
        check_vectors(config.agent, self.spec)
        self.progress = Progress.of(config)
        self.recorder = Recorder(config, run, self.progress, spec=self.spec, show=show, mirrors=mirrors)

    def __enter__(self) -> OnPolicyTrainer:
        return self

    def __exit__(self, *problem: object) -> None:
        self.recorder.close(failed=problem[0] is not None)  # first: an environment may fail to close
        self.env.close()

    def train(self) -> None:
        """Train until the budget is used up; a run that is finished already is left as it is."""
        checkpoint = self.run.open()
        if checkpoint is not None:
            if self.run.state() != "finished":  # killed between the checkpoint and the last status
                for name in _COUNTERS:
                    setattr(self.progress, name, checkpoint.components["loop"][name])
                self.progress.last_return = checkpoint.components["loop"].get("last_return", math.nan)
                self.recorder.write_status("finished")
            return
        self.run.write_manifest(self.spec.as_json(), again=True)
        self.recorder.begin()
        with untouched_generators():
            self._learn()
        self._observe(final=True)
        self.save()
        self.recorder.report(final=True)

    def _learn(self) -> None:
        view = AgentView(self.env, self.spec, self.config.seed, self._stopped)
        normalised = normalise(view, self.settings, self.config.learning.gamma)
        self.model = make_model(self.config, normalised)
        self.model.set_logger(Logger(folder=None, output_formats=[]))
        moments: Any = normalised.obs_rms if self.settings.observation_clip else None
        self.agent = OnPolicyPolicy(self.model.policy, moments, self.settings.observation_clip)
        self.recorder.agent = self.agent
        try:
            self.model.learn(self.config.steps or sys.maxsize, callback=_Watch(self), log_interval=sys.maxsize)
        except ValueError as error:
            if not str(error).startswith(
                "Expected parameter"
            ):  # torch's message for a mean or deviation that is not finite
                raise
            what = "the policy's distribution is not finite; a smaller --learning-rate may help"
            raise self._stopped(what) from error
        self.learned()

    def _stopped(self, what: str) -> RunError:
        return self.run.stopped(self.progress.step, what)

    def _finished(self) -> bool:
        return self.progress.done >= self.progress.total

    # -- called while Stable-Baselines3 learns ---------------------------------------------------------------------

    def played(self, episode: dict[str, Any] | None) -> bool:
        """Called after each step; ``episode`` is set at an episode's last one. Returns whether to continue."""
        self.progress.step = self.model.num_timesteps
        if episode is not None:
            self.progress.episode += 1
            self.recorder.episode(episode["r"], episode["l"])
        batch_is_full = self.progress.step % self.settings.batch_steps == 0
        if self._finished():
            return batch_is_full and self.config.steps is not None  # learn() ends by itself, after the last update
        if not batch_is_full:
            self._observe()  # else after the update, in learned()
        return True

    def learned(self) -> None:
        """Called after each round of learning: log Stable-Baselines3's metrics and evaluate if due."""
        logged = {name.removeprefix("train/"): value for name, value in self.model.logger.name_to_value.items()}
        updates = int(logged.pop("n_updates", 0))
        if updates == self.progress.updates:
            return
        self.progress.updates = updates
        row = {name: float(logged[name]) for name in sorted(logged)}
        for name, value in row.items():
            if not math.isfinite(value) and name != _MAY_BE_NAN:
                raise self._stopped(f"{name} became {value}; a smaller --learning-rate may help")
        self.recorder.write("metrics", {"updates": updates, **row})
        if not self._finished():
            self._observe()

    def _observe(self, *, final: bool = False) -> None:
        if self.recorder.evaluation_due(final=final):
            with untouched_generators():
                self.recorder.evaluate(final=final)
        self.recorder.report()

    def save(self) -> None:
        """Publish the final policy."""
        self.run.check_lock()
        agent = self.agent.state_dict()
        if not all_finite(agent):
            raise self._stopped("a weight became NaN or infinite")
        loop = {name: getattr(self.progress, name) for name in (*_COUNTERS, "last_return")}
        components = {"agent": agent, "loop": loop, "replay": {}}
        self.run.checkpoints.save(self.progress.step, components, None, self.recorder.commit())


class _Watch(BaseCallback):
    """Forwards Stable-Baselines3's progress to the runner."""

    def __init__(self, runner: OnPolicyTrainer) -> None:
        super().__init__()
        self.runner = runner

    def _on_rollout_start(self) -> None:
        self.runner.learned()

    def _on_step(self) -> bool:
        return self.runner.played(self.locals["infos"][0].get("episode"))


class AgentView(gym.Env[Array, Any]):
    """The task as an environment for Stable-Baselines3.

    Observations are vectors, actions integers from 0 or vectors in [-1, 1]; each episode's seed derives from the run's
    seed and the episode's number, as in our own loop; the last step of an episode reports its return and length.
    """

    def __init__(self, env: Env, spec: EnvSpec, seed: int, stop: Callable[[str], RunError]) -> None:
        self.env, self.shapes, self.run_seed, self.stop = env, spec, seed, stop
        self.observation_space, self.action_space = spaces_of(spec)
        self.begun, self.total, self.length = 0, 0.0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin the next episode. Stable-Baselines3's seed, for the first one only, is not used."""
        del seed, options
        observation, _ = self.env.reset(seed=episode_seed(self.run_seed, "environment", self.begun))
        self.begun, self.total, self.length = self.begun + 1, 0.0, 0
        return self._see(observation), {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """One agent step."""
        observation, given, terminated, truncated, _ = self.env.step(self.shapes.decode(action))
        reward = float(given)
        if not math.isfinite(reward):
            raise self.stop(f"the environment gave the reward {reward}")
        self.total, self.length = self.total + reward, self.length + 1
        info = {"episode": {"r": self.total, "l": self.length}} if terminated or truncated else {}
        return self._see(observation), reward, terminated, truncated, info

    def _see(self, observation: Any) -> Array:
        obs = self.shapes.encode(observation)
        if not np.isfinite(obs).all():
            raise self.stop("the environment gave an observation that is not finite")
        return obs


def normalise(env: gym.Env[Array, Any], settings: OnPolicySettings, gamma: float) -> VecNormalize:
    """The environment as a VecEnv, with running normalisation where the settings ask for it."""
    return VecNormalize(
        DummyVecEnv([lambda: env]),
        norm_obs=settings.observation_clip > 0,
        norm_reward=settings.reward_clip > 0,
        clip_obs=settings.observation_clip,
        clip_reward=settings.reward_clip,
        gamma=gamma,
    )


def make_model(config: AnyRunConfig, env: VecNormalize) -> OnPolicyAlgorithm:
    """Their agent with our settings."""
    settings: OnPolicySettings = config.settings
    common: dict[str, Any] = {
        "learning_rate": settings.learning_rate,
        "n_steps": settings.batch_steps,
        "gamma": config.learning.gamma,
        "gae_lambda": settings.gae_lambda,
        "policy_kwargs": network_options(settings),
        "seed": config.seed,
        "device": config.device,
    }
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="You are trying to run"
        )  # a small network on a GPU: the user's choice
        if isinstance(settings, PPOConfig):
            return _make_ppo(settings, env, common)
        return TRPO(
            "MlpPolicy",
            env,
            batch_size=settings.value_minibatch,
            cg_max_steps=settings.cg_iterations,
            cg_damping=settings.cg_damping,
            line_search_shrinking_factor=settings.line_search_shrink,
            line_search_max_iter=settings.line_search_tries,
            n_critic_updates=settings.value_epochs,
            target_kl=settings.max_kl,
            **common,
        )


def _make_ppo(settings: PPOConfig, env: VecNormalize, common: dict[str, Any]) -> PPO:
    model = PPO(
        "MlpPolicy",
        env,
        batch_size=settings.minibatch_size,
        n_epochs=settings.epochs,
        clip_range=settings.clip_range,
        ent_coef=settings.entropy_weight,
        vf_coef=settings.value_weight,
        max_grad_norm=settings.max_grad_norm,
        **common,
    )

    def learning_rate(_: float) -> float:
        """Ignore Stable-Baselines3's remaining fraction of --steps: the schedule has its own horizon."""
        left: float = 1.0 - model.num_timesteps / settings.lr_decay_steps
        return settings.learning_rate * max(0.0, left)

    model.lr_schedule = learning_rate
    return model
