"""Tiny Stable-Baselines3 agents, stock and ours, with the same weights and rows for the same seed."""

import gymnasium as gym
import numpy as np
import sb3_contrib
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger

from peer_rl.integrations import sb3

STOCK = {
    "TD3": stable_baselines3.TD3,
    "SAC": stable_baselines3.SAC,
    "DQN": stable_baselines3.DQN,
    "TQC": sb3_contrib.TQC,
    "QRDQN": sb3_contrib.QRDQN,
}
OURS = {name: getattr(sb3, name) for name in STOCK}
ROWS = 64


class Drift(gym.Env):
    """Three features that wander, pushed a little by the action; ten steps an episode, then it terminates."""

    def __init__(self, discrete: bool) -> None:
        self.observation_space = spaces.Box(-10.0, 10.0, (3,), np.float32)
        self.action_space = spaces.Discrete(2) if discrete else spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.place, self.count = np.zeros(3), 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.count = self.np_random.normal(size=3), 0
        return np.float32(self.place), {}

    def step(self, action):
        self.place = 0.9 * self.place + 0.5 * self.np_random.normal(size=3) + 0.2 * float(np.sum(action))
        self.count += 1
        return np.float32(self.place), float(self.place[0]), self.count == 10, False, {}


def env_for(name: str) -> Drift:
    return Drift(discrete=name.endswith("DQN"))


def tiny(kind: type[BaseAlgorithm], env=None, policy: str = "MlpPolicy", **settings):
    """An agent with 8 and 5 hidden units, seed 0, quiet."""
    name = next(base.__name__ for base in kind.__mro__ if base.__module__.startswith(("stable", "sb3_contrib")))
    policy_kwargs = {"net_arch": [8, 5], **settings.pop("policy_kwargs", {})}
    if name in ("TQC", "QRDQN"):
        policy_kwargs["n_quantiles"] = 4
    defaults = {"batch_size": 16, "learning_starts": 20, "buffer_size": 500, "seed": 0, "device": "cpu"}
    env = env_for(name) if env is None else env
    return kind(policy, env, policy_kwargs=policy_kwargs, **{**defaults, **settings})


def with_rows(model, seed: int = 0):
    """Fill the replay buffer with random transitions; make ``train`` ready to be called."""
    rng, buffer = np.random.default_rng(seed), model.replay_buffer
    for column in (buffer.observations, buffer.next_observations):
        if column.dtype == np.uint8:
            column[:ROWS] = rng.integers(256, size=column[:ROWS].shape)
        else:
            column[:ROWS] = rng.normal(size=column[:ROWS].shape)
    if isinstance(model.action_space, spaces.Discrete):
        buffer.actions[:ROWS] = rng.integers(model.action_space.n, size=buffer.actions[:ROWS].shape)
    else:
        buffer.actions[:ROWS] = rng.uniform(-1, 1, buffer.actions[:ROWS].shape)
    buffer.rewards[:ROWS] = rng.normal(size=buffer.rewards[:ROWS].shape)
    buffer.dones[:ROWS] = rng.random(buffer.dones[:ROWS].shape) < 0.2
    buffer.pos = ROWS
    model.set_logger(Logger(folder=None, output_formats=[]))
    return model


def seeded(seed: int = 5) -> None:
    np.random.seed(seed)  # noqa: NPY002 - Stable-Baselines3 draws from the global generators
    torch.manual_seed(seed)


def weights(model) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.policy.state_dict().items()}


def assert_same_bits(first, second) -> None:
    first, second = weights(first), weights(second)
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name


def furthest(first, second) -> float:
    """The largest difference between two agents' weights."""
    first, second = weights(first), weights(second)
    return max((first[name] - second[name]).abs().max().item() for name in first)
