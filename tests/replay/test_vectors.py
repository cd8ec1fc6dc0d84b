"""The store of whole observations against a slow, plain model, at the ring's edge and at every kind of end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay.plain import ENDS, GAMMA, replay_of, vector_spec

from peer_rl.replay.replay import Replay


def played(capacity: int, n_step: int, ends: list[str]) -> Replay:
    """Step i has obs i, action i, reward i + 1 and next_obs i + 0.5, so that nothing can be mixed up."""
    replay = replay_of(vector_spec(1), capacity, n_step)
    for i, end in enumerate(ends):
        replay.add(
            obs=np.array([i], np.float32),
            action=i,
            reward=i + 1.0,
            next_obs=np.array([i + 0.5], np.float32),
            discount=0.0 if end in ("terminated", "life lost") else 1.0,
            last=end in ("terminated", "truncated"),
        )
    return replay


def by_hand(ends: list[str], start: int, n_step: int) -> tuple[float, float, float]:
    """Return, discount and next observation of the window that starts at ``start``."""
    total, discount, last = 0.0, 1.0, start
    for i in range(start, min(start + n_step, len(ends))):
        total, last = total + discount * (i + 1.0), i
        discount = 0.0 if ends[i] in ("terminated", "life lost") else discount * GAMMA
        if ends[i] != "no end":
            break
    return total, discount, last + 0.5


@given(ends=st.lists(ENDS, min_size=1, max_size=40), capacity=st.integers(1, 30), n_step=st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_every_window_equals_the_plain_model(ends, capacity, n_step):
    replay = played(capacity, n_step, ends)
    rows = np.arange(replay.ring.oldest, replay.ring.total)
    batch = replay.gather(rows)
    expected = np.array([by_hand(ends, int(row), n_step) for row in rows])
    np.testing.assert_array_equal(batch.obs[:, 0].numpy(), rows)
    np.testing.assert_array_equal(batch.action.numpy(), rows)
    np.testing.assert_allclose(batch.reward.numpy(), expected[:, 0], rtol=1e-5)
    np.testing.assert_allclose(batch.discount.numpy(), expected[:, 1], rtol=1e-5)
    np.testing.assert_array_equal(batch.next_obs[:, 0].numpy(), expected[:, 2])


def test_truncation_keeps_the_discount_and_termination_does_not():
    batch = played(10, 1, ["truncated", "terminated"]).gather(np.array([0, 1]))
    assert batch.discount.tolist() == [pytest.approx(GAMMA), 0.0]


def test_every_stored_row_is_drawn_and_no_other():
    replay = played(8, 1, ["no end"] * 20)
    replay.batch_size = 2_000
    drawn = replay.sample(np.random.default_rng(0)).obs[:, 0].numpy()
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == list(range(12, 20))
    assert counts.min() > 150
