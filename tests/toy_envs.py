"""Tiny environments that tests name as ``toy_envs:factory``."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Counter(gym.Env):
    """One feature, reward 1 a step. Ends after ``length`` steps, by termination or by truncation."""

    def __init__(self, *, length: int, terminates: bool) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.length, self.terminates = length, terminates
        self.count = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self._look(), {}

    def step(self, action):
        self.count += 1
        over = self.count >= self.length
        return self._look(), 1.0, over and self.terminates, over and not self.terminates, {}

    def _look(self) -> np.ndarray:
        return np.array([1.0, 0.0], np.float32)  # time is hidden, so every state has the same value


def truncating() -> gym.Env:
    return Counter(length=2, terminates=False)


def terminating() -> gym.Env:
    return Counter(length=1, terminates=True)


class Choice(gym.Env):
    """A random sign is shown; the action that matches it pays 1. One step an episode, seeded by reset."""

    def __init__(self, start: int = 0) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Discrete(2, start=start)
        self.start = start
        self.sign = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.sign = int(self.np_random.integers(2))
        return self._look(), {}

    def step(self, action):
        return self._look(), float(int(action) - self.start == self.sign), True, False, {}

    def _look(self) -> np.ndarray:
        return np.array([2.0 * self.sign - 1.0, self.np_random.uniform(-1, 1)], np.float32)


def choice() -> gym.Env:
    return Choice()


def choice_from_five() -> gym.Env:
    return Choice(start=5)


class Poisonous(Choice):
    """Gives a NaN reward once ``after`` steps were taken in the whole process."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        self.left -= 1
        return obs, reward if self.left > 0 else float("nan"), terminated, truncated, info


def nan_reward() -> gym.Env:
    return Poisonous(after=250)


class NanOnce(Choice):
    """One NaN in an observation, after 250 steps."""

    left = 250

    def step(self, action):
        obs, *rest = super().step(action)
        self.left -= 1
        return (obs if self.left else obs * np.float32("nan")), *rest


def nan_observation() -> gym.Env:
    return NanOnce()


class Alias(Counter):
    """Writes every observation into one and the same array."""

    def __init__(self) -> None:
        super().__init__(length=50, terminates=True)
        self.observation_space = spaces.Box(0.0, 100.0, (2,), np.float32)
        self.array = np.zeros(2, np.float32)

    def _look(self) -> np.ndarray:
        self.array[:] = self.count
        return self.array


def alias() -> gym.Env:
    return Alias()


def raises() -> gym.Env:
    raise OSError("no such robot")


def vector_regularizer(phi, phi_next):
    return (phi * phi_next).sum(-1)


def mean_inner_product(phi, phi_next):
    return (phi * phi_next).sum(-1).mean(-1).sum()


def nan_gradient(phi, phi_next):
    return (phi * 0.0).sum().sqrt()


def not_an_env() -> int:
    return 3


class Odd(Choice):
    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Dict({"a": self.observation_space})


def dict_observations() -> gym.Env:
    return Odd()


class Continuous(Choice):
    def __init__(self, space: spaces.Space | None = None) -> None:
        super().__init__()
        self.action_space = space or spaces.Box(-1.0, 1.0, (1,), np.float32)


def continuous() -> gym.Env:
    return Continuous()


def unbounded_actions() -> gym.Env:
    return Continuous(spaces.Box(-np.inf, np.inf, (1,), np.float32))


def half_bounded_actions() -> gym.Env:
    return Continuous(spaces.Box(np.float32([0, 0]), np.float32([1, np.inf])))


def integer_actions() -> gym.Env:
    return Continuous(spaces.Box(0, 3, (1,), np.int64))


def multi_discrete_actions() -> gym.Env:
    return Continuous(spaces.MultiDiscrete([2, 3]))


class Drawn(Choice):
    """Renders frames of an odd size, or of the size given; rewards are random."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None, picture: object = "random") -> None:
        super().__init__()
        self.render_mode, self.picture = render_mode, picture

    def step(self, action):
        observation = self._look()
        return observation, float(observation[1]), True, False, {}

    def render(self):
        if self.picture != "random":
            return self.picture
        return np.random.default_rng(0).integers(256, size=(33, 47, 3), dtype=np.uint8)


def drawn(render_mode: str | None = None) -> gym.Env:
    return Drawn(render_mode)


def not_drawn(render_mode: str | None = None) -> gym.Env:
    return Drawn(render_mode, picture=None)


class Steered(gym.ActionWrapper):
    """An environment of two actions, steered by the sign of one number."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def action(self, action):
        return int(action[0] > 0)


def continuous_truncating() -> gym.Env:
    return Steered(truncating())


def continuous_terminating() -> gym.Env:
    return Steered(terminating())


def continuous_choice() -> gym.Env:
    return Steered(choice())


def continuous_nan_reward() -> gym.Env:
    return Steered(nan_reward())


def continuous_nan_observation() -> gym.Env:
    return Steered(nan_observation())


def continuous_nan_in_evaluation() -> gym.Env:
    return Steered(nan_in_evaluation())


class Endless(Counter):
    def __init__(self) -> None:
        super().__init__(length=10**9, terminates=True)


def endless() -> gym.Env:
    return Endless()


class GlobalNoise(Choice):
    """Draws from numpy's global generator, as careless environments do."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def step(self, action):
        reward = float(action[0] * (2 * self.sign - 1) + np.random.normal())  # noqa: NPY002
        return self._look(), reward, True, False, {}


def global_noise() -> gym.Env:
    return GlobalNoise()


class Reach(Choice):
    """A number in [-1, 1] is shown; the action, in [-4, 2], should name it. The return is 1 minus the error."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Box(-4.0, 2.0, (1,), np.float32)
        self.number = 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.number = self.np_random.uniform(-1, 1)
        return self._look(), {}

    def step(self, action):
        return self._look(), 1.0 - abs(float(action[0]) - self.number), True, False, {}

    def _look(self) -> np.ndarray:
        return np.array([getattr(self, "number", 0.0)], np.float32)


def reach() -> gym.Env:
    return Reach()


class FixedDiscrete(gym.Env):
    """Nothing happens: spaces for agents that are updated with rows made elsewhere."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = spaces.Discrete(4)


class FixedBox(Counter):
    """Three features, two action units in [-1, 1]: the spaces of tests/continuous.py."""

    def __init__(self) -> None:
        super().__init__(length=10, terminates=True)
        self.observation_space = spaces.Box(-10.0, 10.0, (3,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def _look(self) -> np.ndarray:
        return np.zeros(3, np.float32)


class Bait(gym.Env):
    """A side is shown; the first push, of four, decides the last reward: from 1, to that side, to -1, away.

    Each push away pays 0.1 at once. The best policy pushes first to the side and then three times away from it: 1.2.
    One that looks only at the next reward gets -0.6.
    """

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (6,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.side, self.pushed, self.count = 1.0, 0.0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.side = float(self.np_random.choice([-1.0, 1.0]))
        self.pushed, self.count = 0.0, 0
        return self._look(), {}

    def step(self, action):
        push = self.side * float(action[0])
        if self.count == 0:
            self.pushed = push
        self.count += 1
        over = self.count == 4
        return self._look(), self.pushed * over - 0.1 * push, over, False, {}

    def _look(self) -> np.ndarray:
        phase = np.arange(4) == self.count
        return np.array([*phase, self.side, self.pushed], np.float32)


def bait() -> gym.Env:
    return Bait()


class Recall(gym.Env):
    """A side is shown in the first observation alone; each of four pushes pays its size to that side.

    The best return is 4. One that sees only the current observation gets 1: it knows the side once.
    """

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-2.0, 2.0, (5,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.side, self.count = 1.0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.side, self.count = float(self.np_random.choice([-1.0, 1.0])), 0
        return self._look(), {}

    def step(self, action):
        self.count += 1
        return self._look(), self.side * float(action[0]), self.count == 4, False, {}

    def _look(self) -> np.ndarray:
        phase = np.arange(4) == self.count
        return np.array([*phase, 2 * self.side * (self.count == 0)], np.float32)


def recall() -> gym.Env:
    return Recall()


class NanWhenWatched(Choice):
    """Only the second environment made, which is the one for evaluation, gives a NaN observation."""

    made = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).made += 1
        self.bad = type(self).made % 2 == 0

    def _look(self) -> np.ndarray:
        return super()._look() * np.float32("nan" if self.bad else 1)


def nan_in_evaluation() -> gym.Env:
    return NanWhenWatched()
