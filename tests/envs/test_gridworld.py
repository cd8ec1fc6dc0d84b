"""The paper's grid world, against the design's description of it."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from peer_rl.envs import gridworld
from peer_rl.envs.gridworld import COLUMNS, GOAL, S1, S2, START
from peer_rl.envs.make import make_env, spec_of
from peer_rl.settings.tasks import find_task

UP, DOWN, LEFT, RIGHT = range(4)


def test_passes_gymnasiums_checker():
    check_env(gym.make("peer_rl.envs.gridworld:peer-rl/GridWorld-v0", render_mode="rgb_array").unwrapped)


def test_layout():
    assert (gridworld.ROWS, COLUMNS, gridworld.STATES) == (4, 5, 20)
    assert START == 0
    assert GOAL == 19
    assert gridworld.move(S2, RIGHT) == S1
    assert gridworld.move(S1, RIGHT) == GOAL


@pytest.mark.parametrize(
    ("state", "action", "expected"),
    [(0, UP, 0), (0, LEFT, 0), (0, RIGHT, 1), (0, DOWN, 5), (4, RIGHT, 4), (7, UP, 2), (15, DOWN, 15), (12, LEFT, 11)],
)
def test_moves_and_walls(state, action, expected):
    assert gridworld.move(state, action) == expected


def test_the_shortest_way_pays_10_and_terminates():
    env = make_env(find_task("gridworld/paper"))
    env.reset(seed=0)
    rewards = []
    for action in [DOWN] * 3 + [RIGHT] * 4:
        _, reward, terminated, truncated, _ = env.step(action)
        rewards.append(reward)
    assert rewards == [0.0] * 6 + [10.0]
    assert terminated
    assert not truncated
    assert len(rewards) == gridworld.SHORTEST


def test_truncated_not_terminated_after_100_steps():
    env = make_env(find_task("gridworld/paper"))
    env.reset(seed=0)
    ends = [env.step(UP)[2:4] for _ in range(100)]
    assert ends[-1] == (False, True)
    assert not any(any(end) for end in ends[:-1])


def test_states_are_integers_and_reach_the_agent_as_one_hot_vectors():
    env = make_env(find_task("gridworld/paper"))
    spec = spec_of(env)
    assert spec.observation_shape == (20,)
    assert spec.actions == 4
    observation, _ = env.reset(seed=0)
    assert observation == 0
    np.testing.assert_array_equal(spec.encode(observation), np.eye(20, dtype=np.float32)[0])
    np.testing.assert_array_equal(spec.encode(np.array([3, 19])), np.eye(20, dtype=np.float32)[[3, 19]])


def test_pictures():
    env = gym.make("peer-rl/GridWorld-v0", render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (128, 160, 3)
    text = gym.make("peer-rl/GridWorld-v0", render_mode="ansi")
    text.reset(seed=0)
    assert text.render() == "A....\n.....\n.....\n....T"
