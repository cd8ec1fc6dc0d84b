"""Prioritised draws: probabilities, strata, weights, new transitions, and priorities that are no numbers."""

import numpy as np
import pytest
import torch
from replay.plain import PlainReplay, frame_spec, replay_of, vector_spec

from peer_rl.replay.priority import PrioritisedSampler
from peer_rl.replay.replay import Replay, UniformSampler

EXPONENT = 0.7


def sampler_of(capacity: int = 8, start: float = 0.4, steps: int = 100) -> PrioritisedSampler:
    return PrioritisedSampler(capacity, exponent=EXPONENT, importance_start=start, importance_steps=steps)


def give(sampler: PrioritisedSampler, priorities: list[float]) -> None:
    """Transition i gets priority i, whatever was drawn."""
    sampler._drawn = np.arange(len(priorities))
    sampler.update(torch.tensor(priorities))


@pytest.fixture
def prioritised() -> PrioritisedSampler:
    sampler = sampler_of()
    sampler.draw(0, 5, 3, np.random.default_rng(0))
    give(sampler, [0.5, 2.0, 0.1, 8.0, 1.0])
    return sampler


CHANCES = np.array([0.5, 2.0, 0.1, 8.0, 1.0]) ** EXPONENT / sum(np.array([0.5, 2.0, 0.1, 8.0, 1.0]) ** EXPONENT)


def test_transitions_are_drawn_in_proportion_to_their_priority_to_the_exponent(prioritised):
    drawn, _ = prioritised.draw(0, 5, 100_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(drawn, minlength=5) / 100_000, CHANCES, atol=1e-4)  # strata leave no noise


def test_draws_are_stratified(prioritised):
    """One draw of each equal share of the sum: a transition with chance c comes count * c times, give or take two."""
    for seed in range(50):
        drawn, _ = prioritised.draw(0, 5, 40, np.random.default_rng(seed))
        assert (np.abs(np.bincount(drawn, minlength=5) - 40 * CHANCES) < 2).all()
        assert (np.diff(drawn) >= 0).all()


def test_weights_are_those_of_the_formula(prioritised):
    """w_i = (N P(i))^-b / max_j w_j; the fixture has drawn once."""
    for draws in (1, 2, 3):
        drawn, weights = prioritised.draw(0, 5, 16, np.random.default_rng(draws))
        b = 0.4 + 0.6 * (draws + 1) / 100
        plain = (5 * CHANCES[drawn]) ** -b
        np.testing.assert_allclose(weights, plain / plain.max(), rtol=1e-6)
        assert weights.dtype == np.float32
        assert weights.max() == 1


def test_the_importance_exponent_is_1_at_the_last_of_its_steps_and_stays_there():
    sampler = sampler_of(start=0.4, steps=4)
    seen = []
    for _ in range(7):
        seen.append(sampler.importance())
        sampler.draw(0, 3, 2, np.random.default_rng(0))
    assert seen == pytest.approx([0.55, 0.7, 0.85, 1.0, 1.0, 1.0, 1.0])


def test_a_new_transition_gets_the_largest_priority_so_far(prioritised):
    give(prioritised, [0.1] * 5)  # the largest so far was 8 all the same
    prioritised.draw(0, 7, 3, np.random.default_rng(0))
    np.testing.assert_allclose(prioritised._tree.leaves, [0.1**EXPONENT] * 5 + [8.0**EXPONENT] * 2 + [0.0])


def test_before_any_priority_all_are_alike():
    drawn, weights = sampler_of().draw(0, 4, 400, np.random.default_rng(0))
    assert np.bincount(drawn).tolist() == [100] * 4
    assert (weights == 1).all()


def test_what_is_gone_has_no_leaf_and_its_successor_has_one_of_its_own(prioritised):
    """Capacity 8: transition 9 has the leaf that transition 1 had."""
    drawn, _ = prioritised.draw(3, 10, 1_000, np.random.default_rng(0))
    assert set(drawn) == set(range(3, 10))
    assert prioritised._tree.leaves[2] == 0
    assert prioritised._tree.leaves[1] == prioritised._tree.leaves[0] == 8.0**EXPONENT


def test_more_than_the_whole_ring_may_pass_between_draws(prioritised):
    drawn, _ = prioritised.draw(100, 106, 600, np.random.default_rng(0))
    assert np.bincount(drawn)[100:].tolist() == [100] * 6
    assert np.count_nonzero(prioritised._tree.leaves) == 6


def test_of_a_transition_drawn_twice_the_last_priority_counts():
    for count in (2, 40):
        sampler = sampler_of()
        sampler.draw(0, 1, count, np.random.default_rng(0))
        sampler.update(torch.arange(1.0, count + 1))
        assert sampler._tree.leaves[0] == pytest.approx(count**EXPONENT)


def test_a_priority_of_0_does_not_hide_a_transition_for_ever(prioritised):
    give(prioritised, [0.0] * 5)
    drawn, weights = prioritised.draw(0, 5, 100, np.random.default_rng(0))
    assert set(drawn) == set(range(5))
    assert np.isfinite(weights).all()


@pytest.mark.parametrize("wrong", [float("nan"), -0.5, float("inf")])
def test_a_priority_that_cannot_be_is_refused_and_nothing_changes(prioritised, wrong):
    before = prioritised._tree.leaves.copy()
    prioritised._drawn = np.arange(3)
    with pytest.raises(ValueError, match="a transition's priority became"):
        prioritised.update(torch.tensor([1.0, wrong, 1.0]))
    assert (prioritised._tree.leaves == before).all()


def test_priorities_of_another_number_are_refused(prioritised):
    with pytest.raises(ValueError, match="5 transitions were drawn, but priorities have shape"):
        prioritised.update(torch.ones(4))


def played(**priorities: float) -> Replay:
    replay, plain = replay_of(frame_spec(3, (1, 2, 2)), 30, batch_size=8, **priorities), PlainReplay(3, (1, 2, 2))
    for step in range(50):
        plain.play(replay, "terminated" if step % 9 == 8 else "no end")
    return replay


def test_a_replay_hands_out_weights_and_takes_priorities():
    replay, rng = played(priority_exponent=1.0, importance_start=1.0), np.random.default_rng(0)
    batch = replay.sample(rng)
    assert batch.weight.tolist() == [1.0] * 8
    favourite = int(batch.action[3])
    replay.update_priorities(torch.where(batch.action == favourite, 1e4, 1e-4))
    again = replay.sample(rng)
    assert (again.action == favourite).float().mean() > 0.5
    assert again.weight.shape == (8,)
    assert again.weight.dtype == torch.float32


def test_peeking_is_uniform_and_leaves_no_trace():
    """Law 2: the next batches are the same with and without a peek, priorities and counters included."""
    watched, alone = played(priority_exponent=1.0), played(priority_exponent=1.0)
    rng, other = np.random.default_rng(0), np.random.default_rng(0)
    for step in range(5):
        one, two = watched.sample(rng), alone.sample(other)
        seen = watched.peek(np.random.default_rng(step))
        assert seen.weight is None
        assert torch.equal(one.action, two.action)
        assert torch.equal(one.weight, two.weight)
        watched.update_priorities(one.action.float() ** 3)
        alone.update_priorities(two.action.float() ** 3)
    watched.batch_size = 20_000
    counts = watched.peek(rng).action.unique(return_counts=True)[1]
    assert counts.min() > 0.8 * counts.max()


def test_an_exponent_of_0_is_the_uniform_replay():
    replay = played(priority_exponent=0.0)
    assert isinstance(replay.sampler, UniformSampler)
    batch = replay.sample(np.random.default_rng(0))
    assert batch.weight is None
    replay.update_priorities(torch.ones(8))
    uniform = played().sample(np.random.default_rng(0))
    assert torch.equal(batch.action, uniform.action)


def test_priorities_go_with_whole_observations_too():
    replay = replay_of(vector_spec(2), 10, priority_exponent=1.0)
    for i in range(25):
        obs = np.full(2, i, np.float32)
        replay.add(obs=obs, action=i, reward=0.0, next_obs=obs + 1, discount=1.0, last=False)
    rng, seen = np.random.default_rng(0), set()
    for _ in range(30):
        batch = replay.sample(rng)
        assert torch.equal(batch.obs[:, 0], batch.action.float())
        seen |= set(batch.action.tolist())
        replay.update_priorities(torch.ones(4))
    assert seen == set(range(15, 25))
