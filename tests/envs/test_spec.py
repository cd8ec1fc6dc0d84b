"""Actions between agent and environment."""

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError

BOUNDS = st.floats(-(2.0**100), 2.0**100, width=32)


def spec(low: float, high: float, shape: tuple[int, ...] = (1,)) -> EnvSpec:
    size = int(np.prod(shape))
    return EnvSpec((3,), "float32", action_shape=shape, action_low=(low,) * size, action_high=(high,) * size)


@given(st.tuples(BOUNDS, BOUNDS).map(sorted), st.floats(-1.0, 1.0, width=32))
def test_no_rounding_leaves_the_bounds(ends, action):
    low, high = ends
    box = spaces.Box(np.float32(low), np.float32(high), (1,), np.float32)
    assert box.contains(spec(low, high).decode(np.array([action], np.float32)))


def test_the_ends_and_the_middle():
    found = spec(-3.0, 0.5).decode(np.array([[-1.0], [0.0], [1.0]], np.float32))
    np.testing.assert_array_equal(found, np.float32([[-3.0], [-1.25], [0.5]]))


def test_the_largest_range_there_is():
    most = float(np.finfo(np.float32).max)
    np.testing.assert_array_equal(spec(-most, most).decode(np.float32([0.0])), np.float32([0.0]))
    np.testing.assert_array_equal(spec(-most, most).decode(np.float32([1.0])), np.float32([most]))


@given(st.floats(-1.0, 1.0, width=32))
def test_in_minus_one_to_one_nothing_is_changed(action):
    assert spec(-1.0, 1.0).decode(np.array([action], np.float32))[0] == np.float32(action)


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_actions_of_any_shape_alone_and_in_batches(shape):
    size = int(np.prod(shape))
    one = spec(0.0, 2.0, shape).decode(np.zeros(size, np.float32))
    many = spec(0.0, 2.0, shape).decode(np.zeros((5, size), np.float32))
    assert one.shape == shape
    assert many.shape == (5, *shape)
    assert (one == 1).all()


def test_random_actions_fill_the_range():
    drawn = np.array([spec(0.0, 1.0, (2,)).random_action(np.random.default_rng(seed)) for seed in range(200)])
    assert drawn.dtype == np.float32
    assert -1 <= drawn.min() < -0.95
    assert 0.95 < drawn.max() <= 1
    numbers = [EnvSpec((3,), "float32", actions=3).random_action(np.random.default_rng(seed)) for seed in range(50)]
    assert set(numbers) == {0, 1, 2}


def test_json_and_back():
    for one in (spec(-1.0, 2.0, (2, 3)), EnvSpec((4,), "float32", actions=3, action_start=5)):
        assert EnvSpec.from_json(one.as_json()) == one


@pytest.mark.parametrize("kind", [np.float32, np.float64, bool])
def test_frames_that_are_scaled_already_are_refused(kind):
    """As bytes every number below 1 would be 0, and the policy would act on a black screen without a word."""
    frames = EnvSpec((2, 3, 3), "uint8", actions=2)
    with pytest.raises(ConfigError, match=f"whole numbers from 0 to 255, but is {np.dtype(kind)}"):
        frames.encode(np.ones((2, 3, 3), kind))
    numbers = np.arange(18).reshape(2, 3, 3)
    assert frames.encode(numbers).dtype == np.uint8
    np.testing.assert_array_equal(frames.encode(numbers.tolist()), numbers)


@pytest.mark.parametrize(
    ("name", "value"),
    [("actions", [4]), ("action_start", "0"), ("observation_shape", 3), ("action_low", ["x"]), ("stack", 1.5)],
)
def test_a_stored_spec_has_the_types_that_were_written(name, value):
    stored = {**spec(-1.0, 1.0).as_json(), name: value}
    assert EnvSpec.from_json(spec(-1.0, 1.0).as_json()) == spec(-1.0, 1.0)
    with pytest.raises(TypeError, match=name):
        EnvSpec.from_json(stored)
