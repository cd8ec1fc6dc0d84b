"""Windows of consecutive steps against a slow, plain model, over vectors and over frames."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from replay.plain import ENDS, GAMMA, PlainReplay, Step, frame_spec, replay_of, vector_spec

from peer_rl.errors import ConfigError
from peer_rl.replay.replay import Replay
from peer_rl.replay.sequences import Sequences
from peer_rl.settings.replay import SequenceConfig
from peer_rl.training.trees import pack, unpack

STEPS = st.lists(ENDS, min_size=1, max_size=50)


class PlainVectors(PlainReplay):
    """The same plays for whole observations: two numbers that occur once in a run."""

    def __init__(self) -> None:
        super().__init__(stack=1, shape=(2,))

    def _see(self) -> None:
        self.episode.append((self.frames, np.array([self.frames, -self.frames], np.float32)))
        self.frames += 1


def by_hand(steps: list[Step], start: int, length: int) -> list[Step]:
    """The steps of the window that starts at ``start``."""
    window = []
    for step in steps[start : start + length]:
        window.append(step)
        if step.last or step.discount == 0:
            break
    return window


def compare(batch: Sequences, plain: PlainReplay, starts: list[int], length: int, oldest: int) -> None:
    """Every entry of the batch is what the model says; ``oldest`` is the first step of which anything is kept."""
    assert batch.obs.shape[:2] == (length + 1, len(starts))
    np.testing.assert_array_equal(batch.next_obs, batch.obs[1:])
    for column, start in enumerate(starts):
        window = by_hand(plain.steps, start, length)
        there = len(window)
        assert batch.mask[:, column].tolist() == [1.0] * there + [0.0] * (length - there)
        seen = [window[0].obs, *(step.next_obs for step in window)]
        for _ in range(length - there):
            newest = seen[-1][len(seen[-1]) - len(seen[-1]) // plain.stack :]
            seen.append(np.concatenate([seen[-1], newest])[-len(seen[-1]) :])
        np.testing.assert_array_equal(batch.obs[:, column], np.stack(seen))
        actions = [step.action for step in window]
        assert batch.action[:, column].tolist() == actions + [actions[-1]] * (length - there)
        blank = [0.0] * (length - there)
        assert batch.reward[:, column].tolist() == [step.reward for step in window] + blank
        discount = [np.float32(GAMMA) * step.discount for step in window] + blank
        np.testing.assert_array_equal(batch.discount[:, column], np.float32(discount))
        assert batch.last[:, column].tolist() == [float(step.last) for step in window] + blank
        known = start > oldest and not plain.steps[start - 1].last
        assert batch.first[column] == (not known)
        assert batch.previous_action[column] == (plain.steps[start - 1].action if known else 0)


@given(ends=STEPS, capacity=st.integers(1, 30), length=st.integers(1, 8))
@settings(max_examples=150, deadline=None)
def test_every_window_over_vectors_equals_the_plain_model(ends, capacity, length):
    replay, plain = replay_of(vector_spec(2), capacity, sequence_length=length), PlainVectors()
    for end in ends:
        plain.play(replay, end)
    oldest = max(0, len(ends) - capacity)
    starts = list(range(oldest, len(ends)))
    assert (replay.store.first, replay.store.stop) == (oldest, len(ends))
    compare(replay.gather(np.array(starts)), plain, starts, length, oldest)


@given(
    ends=STEPS,
    room=st.integers(1, 20),
    stack=st.integers(1, 4),
    channels=st.integers(1, 3),
    length=st.integers(1, 8),
)
@settings(max_examples=150, deadline=None)
def test_every_window_over_frames_equals_the_plain_model(ends, room, stack, channels, length):
    """At every step, the ring's edge included; a stack of one is kept frame by frame too."""
    capacity, shape = stack + room, (channels, 2, 3)
    replay, plain = replay_of(frame_spec(stack, shape), capacity, sequence_length=length), PlainReplay(stack, shape)
    for end in ends:
        plain.play(replay, end)
        starts = plain.drawable(capacity)
        assert list(range(replay.store.first, replay.store.stop)) == starts
        batch = replay.gather(np.array(starts))
        assert batch.obs.dtype == torch.uint8
        kept = [i for i, step in enumerate(plain.steps) if step.frames[-1] >= plain.frames - capacity]
        compare(batch, plain, starts, length, kept[0])


def played(spec, plain: PlainReplay, ends: list[str], capacity: int = 100, **given: float) -> Replay:
    replay = replay_of(spec, capacity, **given)
    for end in ends:
        plain.play(replay, end)
    return replay


def test_frames_are_gathered_once_and_unfolded():
    """Windows of 5 steps over stacks of 3 hold 8 frames each, not 18."""
    plain = PlainReplay(3, (1, 2, 2))
    batch = played(frame_spec(3, (1, 2, 2)), plain, ["no end"] * 20, sequence_length=5).gather(np.arange(4))
    assert batch.obs.shape == (6, 4, 3, 2, 2)
    assert batch.obs.untyped_storage().nbytes() == 4 * 8 * 2 * 2


@pytest.mark.parametrize("sampler", [{}, {"priority_exponent": 0.6}])
def test_every_step_may_start_a_window_the_last_of_an_episode_too(sampler):
    ends = ["truncated" if step % 7 == 6 else "no end" for step in range(60)]
    replay = played(
        frame_spec(3, (1, 2, 2)), plain := PlainReplay(3, (1, 2, 2)), ends, 20, sequence_length=4, **sampler
    )
    rng, drawn = np.random.default_rng(0), []
    for _ in range(300):
        batch = replay.sample(rng)
        assert isinstance(batch, Sequences)
        drawn += batch.action[0].tolist()
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == plain.drawable(20)
    assert any(plain.steps[step].last for step in values)
    assert counts.min() > len(drawn) / len(values) / 2


def test_draws_are_those_of_single_transitions_whatever_the_episodes_lengths():
    """No window is rejected: the same numbers, from the same stream, and the stream stands where it would stand."""
    starts = []
    for ends, given_ in (
        (["no end"] * 40, {}),
        (["truncated", "no end"] * 20, {"sequence_length": 6}),
        (["terminated"] * 40, {"sequence_length": 3}),
    ):
        replay, rng = played(vector_spec(2), PlainVectors(), ends, **given_), np.random.default_rng(3)
        action = replay.sample(rng).action
        starts.append(((action[0] if action.ndim > 1 else action).tolist(), rng.random()))
    assert starts[0] == starts[1] == starts[2]


def test_priorities_belong_to_the_first_step_of_a_window_after_the_ring_wrapped():
    ends = ["truncated" if step % 9 == 8 else "no end" for step in range(75)]
    plain, given_ = PlainVectors(), {"sequence_length": 4, "priority_exponent": 1.0, "importance_start": 1.0}
    replay, rng = played(vector_spec(2), plain, ends, 30, **given_), np.random.default_rng(0)
    while True:
        start = replay.sample(rng).action[0]
        if (favourite := 50) in start.tolist():
            break
        replay.update_priorities(torch.ones(4))
    replay.update_priorities(torch.where(start == favourite, 1e4, 1e-4))
    again = replay.sample(rng)
    assert (again.action[0] == favourite).float().mean() > 0.5
    assert again.weight.shape == (4,)
    assert again.weight.max() == 1


@pytest.mark.parametrize("frames", [False, True])
def test_windows_are_the_same_after_a_resume(frames):
    spec, plain = (frame_spec(2, (1, 2, 2)), PlainReplay(2, (1, 2, 2))) if frames else (vector_spec(2), PlainVectors())
    ends = ["terminated" if step % 5 == 4 else "no end" for step in range(50)]
    given_ = {"sequence_length": 4, "priority_exponent": 0.6}
    replay, again = played(spec, plain, ends, 20, **given_), replay_of(spec, 20, **given_)
    rng = np.random.default_rng(0)
    replay.sample(rng)
    replay.update_priorities(torch.arange(4.0))
    again.ring.restore(replay.ring.oldest, replay.ring.rows(replay.ring.oldest, replay.ring.total))
    again.load_state_dict(unpack(pack(replay.state_dict())))
    one, two = (which.sample(np.random.default_rng(1)) for which in (replay, again))
    for name in vars(one):
        assert torch.equal(getattr(one, name), getattr(two, name)), name


@pytest.mark.parametrize(
    ("setting", "option"), [({"n_step": 3}, "--n-step"), ({"flat_returns": True}, "--flat-returns")]
)
def test_n_step_returns_are_refused(setting, option):
    with pytest.raises(ConfigError, match=f"leave out {option}"):
        SequenceConfig(**setting)
