"""Episodes of a trained Stable-Baselines3 agent, in order, as the features of its critic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize
from torch import nn

from peer_rl.errors import ConfigError, RunError
from peer_rl.plugin import Features
from peer_rl.rng import untouched_generators
from peer_rl.sb3.callback import representation
from peer_rl.sb3.hooks import critic_and_target

MOST_STEPS = 2_000


@dataclass(frozen=True)
class Rollout:
    """The transitions of an agent's episodes, and its critic's features of them."""

    features: Features
    """phi is (heads, rows, dim) or (rows, dim)."""
    critic: nn.Module
    target: nn.Module
    inputs: tuple[Any, ...]
    """What the critic was given."""
    episode: np.ndarray[Any, Any]
    """Of each row, from 0."""
    returns: list[float]
    """Of the episodes that ended."""


class _InOrder:
    """Makes a replay buffer give all of its rows, in the order in which they came."""

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> Any:
        """Return every row; ``batch_size`` is ignored."""
        del batch_size
        buffer: Any = self
        return buffer._get_samples(np.arange(buffer.size()), env=env)


class _Rows(_InOrder, ReplayBuffer):
    """Rows with plain observations."""


class _DictRows(_InOrder, DictReplayBuffer):
    """Rows with dictionaries of observations."""


def play(model: BaseAlgorithm, env: gym.Env[Any, Any] | VecEnv | str, *, episodes: int = 3, seed: int = 0) -> Rollout:
    """Play episodes without exploration, at most 2,000 steps, and run critic and target on every transition.

    The model, its replay buffer and the global generators are afterwards as before.
    """
    critic, target = critic_and_target(model)
    agent: Any = model
    vector = _vector_env(model, env)
    normaliser = unwrap_vec_normalize(vector)
    training = normaliser.training if normaliser else False
    before = (getattr(agent, "replay_buffer", None), agent._vec_normalize_env)
    if normaliser:
        normaliser.training = False
    try:
        with untouched_generators():
            vector.seed(seed)
            rows, episode, returns = _collect(agent, vector, normaliser, episodes)
            agent.replay_buffer, agent._vec_normalize_env = rows, normaliser
            features = representation(model, rows.size(), seed=seed)
            batch: Any = rows.sample(0, env=normaliser)
    finally:
        agent.replay_buffer, agent._vec_normalize_env = before
        if normaliser:
            normaliser.training = training
        if not isinstance(env, VecEnv):
            vector.close()
    discrete = isinstance(model.action_space, spaces.Discrete)
    inputs = (batch.observations,) if discrete else (batch.observations, batch.actions)
    return Rollout(features, critic, target, inputs, episode, returns)


def make_env(name: str) -> gym.Env[Any, Any]:
    """A Gymnasium environment, by its id or by our name of the task, gym/ID."""
    try:
        return gym.make(name.removeprefix("gym/"))
    except (gym.error.Error, ModuleNotFoundError) as error:
        raise ConfigError(f"cannot make the environment {name!r}: {' '.join(str(error).split())}") from error


def _describe(space: spaces.Space[Any]) -> str:
    return f"{type(space).__name__}{space.shape}" if space.shape else str(space)


def _vector_env(model: BaseAlgorithm, env: gym.Env[Any, Any] | VecEnv | str) -> VecEnv:
    if isinstance(env, str):
        env = make_env(env)
    vector = model._wrap_env(env, verbose=0)
    if vector.num_envs != 1:
        raise ConfigError(f"xray plays in one environment, not in {vector.num_envs} at once")
    for name, mine, theirs in (
        ("observations", model.observation_space, vector.observation_space),
        ("actions", model.action_space, vector.action_space),
    ):
        if mine.shape != theirs.shape or type(mine) is not type(theirs):
            raise ConfigError(
                f"the model's {name} are {_describe(mine)}, but the environment's are {_describe(theirs)}: "
                "name the environment that it was trained in"
            )
    return vector


def _collect(
    agent: Any, env: VecEnv, normaliser: VecNormalize | None, episodes: int
) -> tuple[Any, np.ndarray[Any, Any], list[float]]:
    kind = _DictRows if isinstance(agent.observation_space, spaces.Dict) else _Rows
    rows: Any = kind(MOST_STEPS, agent.observation_space, agent.action_space, device=agent.device)
    number: list[int] = []
    returns: list[float] = []
    total, obs = 0.0, env.reset()
    plain = normaliser.get_original_obs() if normaliser else obs
    while len(returns) < episodes and len(number) < MOST_STEPS:
        action, _ = agent.predict(obs, deterministic=True)
        obs, reward, done, infos = env.step(action)
        given = normaliser.get_original_reward() if normaliser else reward
        plain_next = normaliser.get_original_obs() if normaliser else obs
        after = plain_next
        if done[0] and "terminal_observation" in infos[0]:
            after = _terminal(infos[0]["terminal_observation"], plain_next, normaliser)
        stored = agent.policy.scale_action(action) if isinstance(agent.action_space, spaces.Box) else action
        rows.add(plain, after, stored, given, done, infos)
        plain = plain_next
        number.append(len(returns))
        total += float(given[0])
        if done[0]:
            returns.append(total)
            total = 0.0
    if len(number) < 2:
        raise RunError("the episodes have fewer than two steps in total, which is too few to analyse")
    return rows, np.array(number), returns


def _terminal(last: Any, like: Any, normaliser: VecNormalize | None) -> Any:
    """The observation that an episode ended with, as a batch of one, not normalised."""
    if normaliser:
        last = normaliser.unnormalize_obs(last)
    if isinstance(like, dict):
        return {name: np.asarray(last[name])[None] for name in like}
    return np.asarray(last)[None]
