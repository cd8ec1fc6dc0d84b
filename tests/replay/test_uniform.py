"""Uniform replay against a slow, plain model of it, at the ring's edge and at every kind of episode end."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from peer_rl.replay.ring import Ring
from peer_rl.replay.uniform import UniformReplay

GAMMA = 0.9
ENDS = st.sampled_from(["goes on", "goes on", "goes on", "terminated", "truncated"])


def replay_of(capacity: int, n_step: int, ends: list[str], *, flat_returns: bool = False) -> UniformReplay:
    """Step i has obs i, action i, reward i + 1 and next_obs i + 0.5, so that nothing can be mixed up."""
    replay = UniformReplay(
        capacity,
        ((1,), "float32"),
        ((), "int64"),
        gamma=GAMMA,
        n_step=n_step,
        batch_size=4,
        device=torch.device("cpu"),
        flat_returns=flat_returns,
    )
    for i, end in enumerate(ends):
        replay.add(
            obs=np.array([i], np.float32),
            action=i,
            reward=i + 1.0,
            next_obs=np.array([i + 0.5], np.float32),
            terminated=end == "terminated",
            truncated=end == "truncated",
        )
    return replay


def by_hand(ends: list[str], start: int, n_step: int) -> tuple[float, float, float]:
    """Return, discount and next observation of the window that starts at ``start``."""
    total, discount, last = 0.0, 1.0, start
    for i in range(start, min(start + n_step, len(ends))):
        total, last = total + discount * (i + 1.0), i
        discount = 0.0 if ends[i] == "terminated" else discount * GAMMA
        if ends[i] != "goes on":
            break
    return total, discount, last + 0.5


@given(ends=st.lists(ENDS, min_size=1, max_size=40), capacity=st.integers(1, 30), n_step=st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_every_window_equals_the_plain_model(ends, capacity, n_step):
    replay = replay_of(capacity, n_step, ends)
    rows = np.arange(replay.ring.oldest, replay.ring.total)
    batch = replay.gather(rows)
    expected = np.array([by_hand(ends, int(row), n_step) for row in rows])
    np.testing.assert_array_equal(batch.obs[:, 0].numpy(), rows)
    np.testing.assert_array_equal(batch.action.numpy(), rows)
    np.testing.assert_allclose(batch.reward.numpy(), expected[:, 0], rtol=1e-5)
    np.testing.assert_allclose(batch.discount.numpy(), expected[:, 1], rtol=1e-5)
    np.testing.assert_array_equal(batch.next_obs[:, 0].numpy(), expected[:, 2])


@given(ends=st.lists(ENDS, min_size=1, max_size=40), n_step=st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_flat_returns_weigh_every_reward_of_the_window_with_gamma_to_the_n(ends, n_step):
    """As in the PEER authors' Atari DrQ; discounts and next observations are as ever."""
    flat, plain = (replay_of(40, n_step, ends, flat_returns=choice) for choice in (True, False))
    rows = np.arange(len(ends))
    batch, usual = flat.gather(rows), plain.gather(rows)
    for row in rows:
        last = int(usual.next_obs[row, 0] - 0.5)
        expected = GAMMA**n_step * sum(i + 1.0 for i in range(row, last + 1))
        assert batch.reward[row].item() == pytest.approx(expected, rel=1e-5)
    assert torch.equal(batch.discount, usual.discount)
    assert torch.equal(batch.next_obs, usual.next_obs)


def test_truncation_keeps_the_discount_and_termination_does_not():
    batch = replay_of(10, 1, ["truncated", "terminated"]).gather(np.array([0, 1]))
    assert batch.discount.tolist() == [pytest.approx(GAMMA), 0.0]


def test_every_stored_row_is_drawn_and_no_other():
    replay = replay_of(8, 1, ["goes on"] * 20)
    replay.batch_size = 2_000
    drawn = replay.sample(np.random.default_rng(0)).obs[:, 0].numpy()
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == list(range(12, 20))
    assert counts.min() > 150


@given(total=st.integers(1, 30), capacity=st.integers(1, 12), cuts=st.lists(st.integers(0, 30), max_size=4))
@settings(max_examples=80, deadline=None)
def test_a_ring_restored_from_segments_is_the_same_ring(total, capacity, cuts):
    """Segments are cut anywhere; only those that still hold rows of the ring are needed."""
    ring, segments, saved = Ring(capacity, {"x": ((2,), np.float32)}), [], 0
    for i in range(total):
        ring.append({"x": [i, -i]})
        if i in cuts or i == total - 1:
            start = max(saved, ring.oldest)
            segments.append((start, ring.rows(start, ring.total)))
            saved = ring.total
    again = Ring(capacity, {"x": ((2,), np.float32)})
    for start, rows in segments:
        if start + len(rows["x"]) > ring.oldest:
            again.restore(start, rows)
    assert again.total == ring.total
    np.testing.assert_array_equal(again.rows(again.oldest, total)["x"], ring.rows(ring.oldest, total)["x"])


def test_rows_that_are_gone_are_refused():
    ring = Ring(3, {"x": ((), np.float32)})
    for i in range(5):
        ring.append({"x": i})
    with pytest.raises(IndexError, match="rows 1 to 5"):
        ring.rows(1, 5)
