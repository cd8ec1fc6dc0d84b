"""The store of frames against a slow, plain model of it: every stack, every window, and which may be drawn."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from replay.plain import ENDS, GAMMA, PlainReplay, frame_spec, replay_of

from peer_rl.errors import ConfigError
from peer_rl.replay.replay import Replay


def compare(replay: Replay, plain: PlainReplay, capacity: int, n_step: int) -> None:
    """Every transition that may be drawn, and no other, is what the model says."""
    expected = plain.drawable(capacity)
    assert list(range(replay.store.first, replay.store.stop)) == expected
    assert len(replay) == len(expected) > 0
    batch = replay.gather(np.array(expected))
    windows = [plain.window(number, n_step) for number in expected]
    assert batch.obs.dtype == batch.next_obs.dtype == torch.uint8
    np.testing.assert_array_equal(batch.obs, np.stack([plain.steps[number].obs for number in expected]))
    np.testing.assert_array_equal(batch.next_obs, np.stack([window[2] for window in windows]))
    np.testing.assert_array_equal(batch.action, expected)
    np.testing.assert_allclose(batch.reward, [window[0] for window in windows], rtol=1e-5)
    np.testing.assert_allclose(batch.discount, [window[1] for window in windows], rtol=1e-5)


@given(
    ends=st.lists(ENDS, min_size=1, max_size=60),
    room=st.integers(1, 20),
    stack=st.integers(2, 5),
    channels=st.integers(1, 3),
    n_step=st.integers(1, 6),
)
@settings(max_examples=200, deadline=None)
def test_every_transition_equals_the_plain_model_at_every_step(ends, room, stack, channels, n_step):
    capacity, shape = stack + room, (channels, 2, 3)
    replay, plain = replay_of(frame_spec(stack, shape), capacity, n_step), PlainReplay(stack, shape)
    for end in ends:
        plain.play(replay, end)
        compare(replay, plain, capacity, n_step)


@pytest.mark.parametrize("n_step", [1, 3])
def test_a_ring_that_wraps_many_times(n_step):
    capacity, stack, shape = 50, 4, (1, 3, 3)
    replay, plain = replay_of(frame_spec(stack, shape), capacity, n_step), PlainReplay(stack, shape)
    ends = np.random.default_rng(1).choice(
        ["no end", "life lost", "terminated", "truncated"], 700, p=[0.9, 0.04, 0.03, 0.03]
    )
    for step, end in enumerate(ends):
        plain.play(replay, end)
        if step % 10 == 0:
            compare(replay, plain, capacity, n_step)


def test_a_window_ends_at_a_lost_life_and_the_stack_continues():
    """The next state that PEER pairs is the one right after the loss, not one of a later life."""
    stack, shape = 3, (1, 1, 1)
    replay, plain = replay_of(frame_spec(stack, shape), 50, 5), PlainReplay(stack, shape)
    for end in ["no end", "no end", "life lost", "no end", "no end"]:
        plain.play(replay, end)
    frames = [step.obs[-1].item() for step in plain.steps]
    batch = replay.gather(np.array([1, 3]))
    assert batch.discount[0] == 0
    assert batch.next_obs[0].flatten().tolist() == [*frames[1:3], plain.steps[2].next_obs[-1].item()]
    assert batch.obs[1].flatten().tolist() == frames[1:4], "frames before the loss are in the stack after it"


@pytest.mark.parametrize("n_step", [1, 4])
def test_flat_returns_weigh_every_reward_alike(n_step):
    """The bug behind published numbers: gamma^n for each reward of a window, also of one that ends early."""
    stack, shape = 3, (1, 1, 1)
    replay, plain = replay_of(frame_spec(stack, shape), 50, n_step, flat_returns=True), PlainReplay(stack, shape)
    for end in ["no end"] * 5 + ["life lost"] + ["no end"] * 5 + ["terminated"] + ["no end"] * 5 + ["truncated"]:
        plain.play(replay, end)
    numbers = plain.drawable(50)
    batch = replay.gather(np.array(numbers))
    for number, reward, discount in zip(numbers, batch.reward, batch.discount, strict=True):
        window = plain.steps[number : number + n_step]
        ends = [place for place, step in enumerate(window, 1) if step.last or step.discount == 0]
        total = sum(step.reward for step in window[: min(ends, default=n_step)])
        assert reward.item() == pytest.approx(GAMMA**n_step * total, rel=1e-5)
        assert discount.item() == pytest.approx(plain.window(number, n_step)[1], rel=1e-5)


def test_each_frame_is_stored_once():
    replay, plain = replay_of(frame_spec(4, (1, 2, 2)), 100), PlainReplay(4, (1, 2, 2))
    for end in ["no end", "life lost", "terminated", "no end", "truncated"]:
        plain.play(replay, end)
    assert replay.ring.total == 3 + 1 + 2 + 1
    frames = replay.ring.rows(0, 7)["frame"]
    assert len(np.unique(frames.reshape(7, -1), axis=0)) == 7


@pytest.mark.parametrize("sampler", [{}, {"priority_exponent": 0.5}])
def test_every_transition_that_may_be_drawn_is_drawn_and_no_other(sampler):
    replay, plain = replay_of(frame_spec(3, (1, 2, 2)), 20, batch_size=20, **sampler), PlainReplay(3, (1, 2, 2))
    for step in range(60):
        plain.play(replay, "truncated" if step % 7 == 6 else "no end")
    rng = np.random.default_rng(0)
    drawn = torch.cat([replay.sample(rng).action for _ in range(100)])
    values, counts = drawn.unique(return_counts=True)
    assert values.tolist() == plain.drawable(20)
    assert counts.min() > 2_000 / len(values) / 2


def test_a_batch_that_is_held_stays_as_it_is():
    """The arrays of batches are used again, but never one that is still referenced, be it by a view of a view."""
    for n_step in (1, 3):
        replay, plain = replay_of(frame_spec(3, (1, 4, 4)), 50, n_step), PlainReplay(3, (1, 4, 4))
        for _ in range(40):
            plain.play(replay, "no end")
        rng = np.random.default_rng(0)
        held, copies = [], []
        for _ in range(5):
            batch = replay.sample(rng)
            held.append(batch.next_obs[1:, :2].flatten(1)[::2])
            copies.append(held[-1].clone())
            del batch
        assert all(torch.equal(one, other) for one, other in zip(held, copies, strict=True))


def test_an_array_that_nobody_holds_is_used_again():
    replay, plain = replay_of(frame_spec(3, (1, 4, 4)), 50), PlainReplay(3, (1, 4, 4))
    for _ in range(10):
        plain.play(replay, "no end")
    rng = np.random.default_rng(0)
    first = replay.sample(rng)
    places = {first.obs.data_ptr()}
    for _ in range(20):
        second = replay.sample(rng)
        places.add(second.obs.data_ptr())
        first = second
    assert len(places) == 2


def test_a_ring_too_small_for_a_stack_is_refused():
    with pytest.raises(ConfigError, match=r"buffer_size 4 cannot hold a stack of 4 frames .* choose at least 5"):
        replay_of(frame_spec(4, (1, 2, 2)), 4)


def test_an_environment_that_pads_its_first_stack_otherwise_is_refused():
    """Drawn stacks would differ from those that the agent acted on, and nobody would see it."""
    replay = replay_of(frame_spec(2, (1, 2, 2)), 10)
    obs = np.ones((2, 2, 2), np.uint8)
    with pytest.raises(ConfigError, match=r"zeros before .* first frame; .*FrameStackObservation\(.*zero"):
        replay.add(obs=obs, action=0, reward=0.0, next_obs=obs, discount=1.0, last=False)
