"""Tiny environments that give single frames of 21x21, which make_env stacks; tests name them ``pixel_envs:factory``."""

import gymnasium as gym
import numpy as np
import toy_envs
from gymnasium import spaces

SIZE, DOT, SPEED = 21, 3, 2


class Dot(gym.Env):
    """A dot moves left or right for ever, round the edges; naming its direction pays 1, the other -1.

    Where it starts and where it goes are independent, so one frame shows nothing. It turns round now and then.
    """

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 255, (SIZE, SIZE), np.uint8)
        self.action_space = spaces.Discrete(2)
        self.place, self.direction, self.count = 0, 0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.direction = (int(self.np_random.integers(highest)) for highest in (SIZE, 2))
        self.count = 0
        return self.frame(), {}

    def step(self, action):
        pay = 1.0 if int(action) == self.direction else -1.0
        if self.np_random.random() < 0.2:
            self.direction = 1 - self.direction
        self.move()
        return self.frame(), pay, False, False, {}

    def move(self) -> None:
        self.count += 1
        self.place = (self.place + (SPEED if self.direction else -SPEED)) % SIZE

    def frame(self) -> np.ndarray:
        frame = np.zeros((SIZE, SIZE), np.uint8)
        frame[9 : 9 + DOT, (self.place + np.arange(DOT)) % SIZE] = 255
        return frame


class Bait(Dot):
    """Two frames show the direction, then the action names it. The wrong one pays 0.2 at once, the right one -0.2.

    The next frame shows a bar if it was right, and the last step pays 1 with the bar and -1 without. The best policy
    gets 0.8, one that looks only at the next reward -0.8, one that cannot see the direction 0.
    """

    right = False

    def reset(self, *, seed=None, options=None):
        self.right = False
        return super().reset(seed=seed)

    def step(self, action):
        pay = 0.0
        if self.count == 1:
            self.right = int(action) == self.direction
            pay = -0.2 if self.right else 0.2
        elif self.count == 2:
            pay = 1.0 if self.right else -1.0
        self.move()
        return self.frame(), pay, self.count == 3, False, {}

    def frame(self) -> np.ndarray:
        frame = super().frame()
        frame[3:6, 5:16] = 255 * self.right
        return frame


def dot() -> gym.Env:
    return Dot()


def bait() -> gym.Env:
    return Bait()


class Painted(gym.ObservationWrapper):
    """A toy's two numbers in [-1, 1] as the grey of a frame's left and right half."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.observation_space = spaces.Box(0, 255, (SIZE, SIZE), np.uint8)

    def observation(self, observation):
        return np.repeat(127.5 * (observation[None] + 1), (11, 10), axis=1).repeat(SIZE, axis=0).astype(np.uint8)


def truncating() -> gym.Env:
    """Long enough for every frame of the stack to be one of the episode before it is cut off."""
    return Painted(toy_envs.Counter(length=8, terminates=False))


def terminating() -> gym.Env:
    return Painted(toy_envs.terminating())


def choice() -> gym.Env:
    return Painted(toy_envs.choice())


def nan_reward() -> gym.Env:
    return Painted(toy_envs.nan_reward())


class Dial(Dot):
    """Bait for one number in [-1, 1]: two frames show the direction, then the action says how far to go with it.

    Going with it costs 0.2 at once, against it pays 0.2, in proportion; the bar's grey then shows how far it went, and
    the last step pays that. The best policy gets 0.8, one that looks only at the next reward -0.8.
    """

    along = -1.0

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        self.along = -1.0
        return super().reset(seed=seed)

    def step(self, action):
        pay = 0.0
        if self.count == 1:
            self.along = float(action[0]) * (1 if self.direction else -1)
            pay = -0.2 * self.along
        elif self.count == 2:
            pay = self.along
        self.move()
        return self.frame(), pay, self.count == 3, False, {}

    def frame(self) -> np.ndarray:
        frame = super().frame()
        frame[3:6, 5:16] = round(127.5 * (self.along + 1))
        return frame


def dial() -> gym.Env:
    return Dial()


def continuous_dot() -> gym.Env:
    return toy_envs.Steered(Dot())


def continuous_truncating() -> gym.Env:
    return toy_envs.Steered(truncating())


def continuous_terminating() -> gym.Env:
    return toy_envs.Steered(terminating())


def continuous_choice() -> gym.Env:
    return toy_envs.Steered(choice())


def continuous_nan_reward() -> gym.Env:
    return toy_envs.Steered(nan_reward())
