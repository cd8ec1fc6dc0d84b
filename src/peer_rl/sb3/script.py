"""Trains a Stable-Baselines3 model that a user's script makes, under the protocol of ``peer-rl compare``.

The model learns as it would without us: evaluation and diagnosis leave weights and random generators as they were.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, sync_envs_normalization

from peer_rl.errors import ConfigError, RunError
from peer_rl.plugin.diagnostics import diagnose_features
from peer_rl.rng import episode_seed, untouched_generators
from peer_rl.sb3.algorithms import Regularized
from peer_rl.sb3.callback import representation
from peer_rl.sb3.hooks import critic_and_target
from peer_rl.sb3.layer_norm import normalise_critic
from peer_rl.settings.run import AnyRunConfig
from peer_rl.training.script_loader import Script
from peer_rl.training.script_run import ScriptRun
from peer_rl.training.trees import all_finite


def train_model(script: Script, run: ScriptRun) -> BaseAlgorithm:
    """Make the script's model, train it for the budget, evaluate it, and publish its weights."""
    config = run.config
    with untouched_generators():
        eval_env = _make(script, config).get_env()
    model = _make(script, config)
    if eval_env is None or model.get_env() is None:
        raise ConfigError(f"{script.name} returned a model without an environment: give it one")
    _check_apart(script, model, eval_env)
    watch = _Watch(run, eval_env)
    model.learn(run.budget, callback=watch)
    run.advance(model.num_timesteps)
    watch.diagnose()
    watch.evaluate(final=True)
    eval_env.close()
    weights = dict(model.policy.state_dict())
    if not all_finite(weights):
        raise run.run.stopped(run.step, "a weight became NaN or infinite")
    counters = {"step": run.step, "episode": run.episode}
    lengths = {name: log.commit() for name, log in run.run.logs.items() if name != "timing"}
    run.run.checkpoints.save(run.step, {"agent": weights, "loop": counters, "replay": {}}, None, lengths)
    return model


def describe(model: Any) -> dict[str, str]:
    """What the manifest says about the model."""
    return {"model": f"{type(model).__module__}.{type(model).__qualname__}"}


def _make(script: Script, config: AnyRunConfig) -> BaseAlgorithm:
    """The script's model; refuses one that does not use what it is given."""
    beta, control = float(config.beta), config.settings.control
    try:
        model = script.call(config.seed, beta, regularizer=config.regularizer, control=control, steps=config.steps)
    except TypeError as error:
        if "unexpected keyword argument 'beta'" not in str(error):
            raise
        raise ConfigError(f"{error}: import the class from peer_rl.integrations.sb3, where it takes beta") from error
    if not isinstance(model, BaseAlgorithm):
        raise ConfigError(
            f"{script.name} returned {type(model).__name__}, not a Stable-Baselines3 model; a function that trains by "
            f"itself takes a third argument: {script.name}(seed, beta, log)"
        )
    used = model.beta if isinstance(model, Regularized) else None
    if beta and used is None:
        critic_and_target(model)  # refuses PPO and others, which have no class of ours
        raise ConfigError(
            f"{script.name} returned {type(model).__module__.partition('.')[0]}'s {type(model).__name__}, which takes "
            f"no beta: import {type(model).__name__} from peer_rl.integrations.sb3"
        )
    if isinstance(used, int | float) and used != beta:
        raise ConfigError(
            f"{script.name} was given beta {beta:g}, but its model has {used:g}: pass beta on to the model"
        )
    if control == "layer-norm" and "control" not in script.accepts:
        normalise_critic(model)
    return model


def _check_apart(script: Script, model: BaseAlgorithm, eval_env: VecEnv) -> None:
    """Evaluating in the environment that is trained in would change the training."""
    mine, theirs = (getattr(getattr(env, "unwrapped", env), "envs", []) for env in (model.get_env(), eval_env))
    if any(one.unwrapped is other.unwrapped for one in mine for other in theirs):
        raise ConfigError(f"{script.name} must make its environment itself: two of its models share one")


class _Watch(BaseCallback):
    """Evaluates and diagnoses at evenly spaced steps, and writes what the training logs by itself."""

    def __init__(self, run: ScriptRun, eval_env: VecEnv) -> None:
        super().__init__()
        self.run, self.eval_env = run, eval_env
        self.protocol, self.seed = run.config.protocol, run.config.seed
        self._evaluated = self._diagnosed = 0
        self._can_diagnose = True
        self._passes: Any = None

    def _init_callback(self) -> None:
        try:
            critic_and_target(self.model)
        except ConfigError:  # PPO and others without a target critic have no representation to show
            self._can_diagnose = False
        if self._can_diagnose and self.protocol.diagnoses:
            self._passes = getattr(self.model, "_passes", None)
            self._ask()

    def _ask(self) -> None:
        """Have the model measure the gradient ratio in its next update, which leaves that update as it is."""
        if self._passes is not None:
            self._passes.measure = True

    def _on_step(self) -> bool:
        step = self.num_timesteps
        for info in self.locals.get("infos", ()):
            if "episode" in info:
                self.run.episode += 1
                self.run.advance(step, last_return=float(info["episode"]["r"]))
                self.run.write("metrics", {"return": float(info["episode"]["r"]), "length": int(info["episode"]["l"])})
        self.run.advance(step)
        due = step * self.protocol.diagnoses // self.run.budget
        if due > self._diagnosed and step < self.run.budget:
            self._diagnosed = due
            self.diagnose()
        due = step * self.protocol.evaluations // self.run.budget
        if due > self._evaluated and step < self.run.budget:
            self._evaluated = due
            self.evaluate()
        return True

    def diagnose(self) -> None:
        """The representation on a batch of the replay, and the training's own losses."""
        model: Any = self.model
        if not (self.protocol.diagnoses and self._can_diagnose) or self.run.step <= getattr(
            model, "learning_starts", 0
        ):
            return
        try:
            features = representation(model, seed=episode_seed(self.seed, "diagnose", self.run.step))
        except RunError:  # no transition yet, or a HerReplayBuffer without a whole episode
            return
        ratio = getattr(self._passes, "gradient_ratio", None) if self.run.config.beta else 0.0
        self.run.write("diagnostics", {**diagnose_features(features).as_dict(), "gradient_ratio": ratio})
        self._ask()
        logged = {name: value for name, value in model.logger.name_to_value.items() if name.startswith("train/")}
        losses = {
            name.removeprefix("train/"): float(value)
            for name, value in logged.items()
            if isinstance(value, int | float | np.number)
        }
        if losses:
            self.run.write("metrics", losses)

    def evaluate(self, *, final: bool = False) -> None:
        """The policy without exploration, in an environment of its own, on seeds that depend on run and step alone."""
        episodes = self.protocol.final_episodes if final else self.protocol.eval_episodes
        seed = episode_seed(self.seed, "evaluate", self.run.step)
        with untouched_generators():
            if isinstance(self.eval_env, VecNormalize):
                sync_envs_normalization(self.training_env, self.eval_env)
                self.eval_env.training = self.eval_env.norm_reward = False
            self.eval_env.seed(seed)
            returns, lengths = evaluate_policy(
                self.model, self.eval_env, n_eval_episodes=episodes, return_episode_rewards=True, warn=False
            )
        assert isinstance(returns, list)
        assert isinstance(lengths, list)
        self.run.evaluation([float(one) for one in returns], [int(one) for one in lengths], [seed], final=final)
