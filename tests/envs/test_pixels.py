"""Pictures become (stack * channels, height, width), newest last, with zeros before an episode's first frame."""

import numpy as np
import pytest
from picture_envs import HEIGHT, WIDTH

from peer_rl.envs.make import make_env, spec_of
from peer_rl.envs.spec import EnvSpec
from peer_rl.settings.tasks import find_task

CHANNELS = {"grey": 1, "grey_with_axis": 1, "colour": 3}


def picture(count: int, channels: int) -> np.ndarray:
    """What the toy shows at ``count``, channels first, by hand; nothing before the first."""
    if count < 0:
        return np.zeros((channels, HEIGHT, WIDTH), np.uint8)
    planes = np.stack([np.full((HEIGHT, WIDTH), 30 * count + 10 + channel, np.uint8) for channel in range(channels)])
    planes[:, 0, 1] += 5
    return planes


@pytest.mark.parametrize("name", CHANNELS)
def test_every_stack_holds_the_last_four_frames_of_its_own_episode(name):
    env, channels = make_env(find_task(f"picture_envs:{name}")), CHANNELS[name]
    kept = []
    for _ in range(2):  # the second episode must not see the first
        observation, _ = env.reset(seed=0)
        for count in range(6):
            expected = np.concatenate([picture(count - back, channels) for back in (3, 2, 1, 0)])
            np.testing.assert_array_equal(observation, expected)
            kept.append((observation, expected))
            observation = env.step(0)[0]
    for observation, expected in kept:  # nobody writes into an observation later
        np.testing.assert_array_equal(observation, expected)
    assert observation.dtype == np.uint8
    assert env.observation_space.contains(observation)


@pytest.mark.parametrize("name", CHANNELS)
def test_the_agents_spec_has_the_number_of_frames(name):
    spec = spec_of(make_env(find_task(f"picture_envs:{name}")))
    assert spec.observation_shape == (4 * CHANNELS[name], HEIGHT, WIDTH)
    assert (spec.observation_dtype, spec.stack) == ("uint8", 4)
    assert EnvSpec.from_json(spec.as_json()) == spec


def test_channels_that_come_first_already_are_one_frame():
    env = make_env(find_task("picture_envs:channels_first"))
    spec = spec_of(env)
    assert (spec.observation_shape, spec.observation_dtype, spec.stack) == ((3, HEIGHT, WIDTH), "uint8", 1)
    assert env.reset(seed=0)[0].shape == (3, HEIGHT, WIDTH)


@pytest.mark.parametrize("name", ["picture_envs:floats", "gym/CartPole-v1", "gym/FrozenLake-v1"])
def test_what_is_no_image_is_left_alone(name):
    env = make_env(find_task(name))
    spec = spec_of(env)
    assert (spec.observation_dtype, spec.stack) == ("float32", 1)
    assert type(env).__name__ != "StackedFrames"


def test_a_time_limit_holds_under_the_stack():
    env = make_env(find_task("picture_envs:grey"), max_episode_steps=2)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(2)] == [(False, False), (False, True)]
