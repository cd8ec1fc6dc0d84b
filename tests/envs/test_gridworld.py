"""The paper's grid world, against the design's description of it."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from peer_rl.envs import gridworld
from peer_rl.envs.gridworld import COLUMNS, GOAL, S1, S2, START
from peer_rl.envs.make import env_of, make_env, spec_of
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.settings import as_dict, configure, from_dict, variant
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


def test_states_are_integers_and_reach_the_agent_as_they_are():
    env = env_of(configure("dqn", "gridworld/paper"))
    spec = spec_of(env)
    assert spec.observation_shape == (1,)
    assert spec.actions == 4
    observation, _ = env.reset(seed=0)
    assert observation == 0
    for given, wanted in ((observation, [0.0]), (np.array([3, 19]), [[3.0], [19.0]]), (np.array([[7.0]]), [[7.0]])):
        np.testing.assert_array_equal(spec.encode(given), np.array(wanted, dtype=np.float32))
        assert spec.encode(given).dtype == np.float32
    assert EnvSpec.from_json(spec.as_json()) == spec


def test_with_one_hots_states_reach_the_agent_as_vectors():
    env = env_of(configure("dqn", "gridworld/paper", encoding="one-hot"))
    spec = spec_of(env)
    assert spec.observation_shape == (20,)
    assert spec.actions == 4
    observation, _ = env.reset(seed=0)
    assert observation == 0
    np.testing.assert_array_equal(spec.encode(observation), np.eye(20, dtype=np.float32)[0])
    np.testing.assert_array_equal(spec.encode(np.array([3, 19])), np.eye(20, dtype=np.float32)[[3, 19]])


def test_runs_from_before_the_encodings_had_one_hots():
    """Their config.toml names no encoding; they are another variant than today's default, and stay readable."""
    stored = as_dict(configure("dqn", "gridworld/paper", beta=0))
    del stored["encoding"]
    assert from_dict(stored) == configure("dqn", "gridworld/paper", beta=0, encoding="one-hot")
    assert variant(from_dict(stored)) == "dqn+beta0+encoding-one-hot"


def test_a_task_that_does_not_number_its_states_has_no_integers():
    with pytest.raises(ConfigError, match="gym/CartPole-v1 has no numbered states; leave out --encoding"):
        env_of(configure("dqn", "gym/CartPole-v1", steps=10, encoding="integer"))


def test_images():
    env = gym.make("peer-rl/GridWorld-v0", render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (128, 160, 3)
    text = gym.make("peer-rl/GridWorld-v0", render_mode="ansi")
    text.reset(seed=0)
    assert text.render() == "A....\n.....\n.....\n....T"
