"""A task that takes its time without using the processor, so that a test can come in between."""

import time

import gymnasium as gym

from peer_rl.envs.gridworld import GridWorld


class Unhurried(gym.Wrapper):
    """3 ms a step."""

    def step(self, action):
        time.sleep(0.003)
        return super().step(action)


def grid_world() -> gym.Env:
    return gym.wrappers.TimeLimit(Unhurried(GridWorld()), 50)
