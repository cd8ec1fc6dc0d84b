"""Any Gymnasium environment, or the user's own; what cannot be used is refused with a clear message."""

import gymnasium as gym
import numpy as np
import pytest

from peer_rl.envs.make import TIME_LIMIT, make_env, spec_of
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.settings.tasks import TASKS, find_task


def limit_of(env: gym.Env) -> int:
    env.reset(seed=0)
    steps, over = 0, False
    while not over:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        steps, over = steps + 1, terminated or truncated
    assert truncated
    return steps


def test_every_task_of_the_table_can_be_made_and_probed():
    for task in TASKS.values():
        if task.suite == "atari":  # 26 more: tests/envs/test_atari.py
            continue
        assert spec_of(make_env(task)).observation_shape


def test_an_environment_without_a_limit_gets_ours_and_a_given_one_wins():
    assert limit_of(make_env(find_task("toy_envs:endless"))) == TIME_LIMIT == 10_000
    assert limit_of(make_env(find_task("toy_envs:endless"), max_episode_steps=7)) == 7
    assert limit_of(make_env(find_task("gridworld/paper"), max_episode_steps=5)) == 5


@pytest.mark.parametrize("name", ["gym/CartPole-v1", "gym/FrozenLake-v1", "gym/Pendulum-v1"])
def test_box_and_discrete_spaces_are_taken_as_they_are(name):
    env = make_env(find_task(name))
    spec = spec_of(env)
    observation, _ = env.reset(seed=0)
    assert spec.encode(observation).shape == spec.observation_shape
    action = spec.decode(spec.random_action(np.random.default_rng(0)))
    assert env.action_space.contains(action)
    env.step(action)


def test_a_registered_limit_is_kept():
    assert make_env(find_task("gym/CartPole-v1")).spec.max_episode_steps == 500


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gym/CartPoleee-v1", "CartPoleee"),
        ("gym/no_such_module:Thing-v0", "no_such_module"),
        ("gym/TheirEnv-v0", "name that too: gym/PACKAGE:TheirEnv-v0$"),
        ("gym/their/Env-v0", "name that too: gym/PACKAGE:their/Env-v0$"),
        ("gym/Penduum-v1", "Did you mean: `Pendulum`[?]$"),
        ("no_such_module:make", "PYTHONPATH"),
        ("toy_envs:missing", "missing"),
        ("toy_envs:raises", "OSError: no such robot"),
        ("gym/a:b:c", "cannot make task gym/a:b:c"),
        ("toy_envs:not_an_env", "must return a gymnasium.Env, but returned int"),
        ("toy_envs:dict_observations", "has a Dict observation space"),
        ("toy_envs:multi_discrete_actions", "has a MultiDiscrete action space, but only Box and Discrete"),
        ("toy_envs:unbounded_actions", "only Box of floats with finite bounds is supported"),
        ("toy_envs:half_bounded_actions", "only Box of floats with finite bounds is supported"),
        ("toy_envs:integer_actions", "only Box of floats with finite bounds is supported"),
    ],
)
def test_what_cannot_be_made_is_said_in_one_sentence(name, words):
    with pytest.raises(ConfigError, match=words) as caught:
        make_env(find_task(name))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"), [("gridworld/paperr", "gridworld/paper"), ("gridwrld/paper", "gridworld/paper")]
)
def test_unknown_tasks_suggest_the_nearest(name, meant):
    with pytest.raises(ConfigError, match=f"did you mean '{meant}'"):
        find_task(name)


def test_a_spec_survives_json_and_refuses_wrong_shapes():
    spec = spec_of(make_env(find_task("gym/CartPole-v1")))
    assert EnvSpec.from_json(spec.as_json()) == spec
    assert spec.encode(np.zeros(4)).dtype == np.float32
    assert spec.encode(np.zeros((3, 4))).shape == (3, 4)
    with pytest.raises(ConfigError, match=r"obs must have shape \(4,\).*has \(5,\)"):
        spec.encode(np.zeros(5))


def test_one_hot_starts_where_the_space_starts():
    spec = EnvSpec((3,), "float32", one_hot=3, one_hot_start=10, actions=2, action_start=0)
    np.testing.assert_array_equal(spec.encode(11), [0.0, 1.0, 0.0])
