"""Tiny environments that show pictures, or have lives, named in tests as ``picture_envs:factory``."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

HEIGHT, WIDTH, LENGTH = 5, 7, 6


class Pictures(gym.Env):
    """Picture t has 30 t + 10 everywhere, plus the number of the channel, plus 5 in the second pixel of row 0.

    Every picture is written into one and the same array, as careless environments do.
    """

    def __init__(self, shape: tuple[int, ...], dtype: type = np.uint8) -> None:
        self.observation_space = spaces.Box(0, 255, shape, dtype)
        self.action_space = spaces.Discrete(2)
        self.array = np.zeros(shape, dtype)
        self.count = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self._look(), {}

    def step(self, action):
        self.count += 1
        return self._look(), 1.0, self.count == LENGTH, False, {}

    def _look(self) -> np.ndarray:
        self.array[...] = 30 * self.count + 10
        if self.array.ndim == 3 and self.array.shape[2] <= 3:
            self.array += np.arange(self.array.shape[2], dtype=self.array.dtype)
        self.array[0, 1] += 5
        return self.array


def grey() -> gym.Env:
    return Pictures((HEIGHT, WIDTH))


def grey_with_axis() -> gym.Env:
    return Pictures((HEIGHT, WIDTH, 1))


def colour() -> gym.Env:
    return Pictures((HEIGHT, WIDTH, 3))


def channels_first() -> gym.Env:
    return Pictures((3, HEIGHT, WIDTH))


def floats() -> gym.Env:
    return Pictures((HEIGHT, WIDTH), np.float32)


class Lives(gym.Env):
    """Six steps, which pay -5, 0.5, 3, -0.25, 0 and 7; the second and fourth cost a life, the sixth the game."""

    rewards = (-5.0, 0.5, 3.0, -0.25, 0.0, 7.0)

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 10.0, (1,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.count = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.count += 1
        over = self.count == len(self.rewards)
        seen = np.full(1, self.count, np.float32)
        return seen, self.rewards[self.count - 1], over, False, {"lost_life": self.count in (2, 4)}


def lives() -> gym.Env:
    return Lives()
