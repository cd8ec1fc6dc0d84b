import math

import numpy as np
import pytest
from experiments.synthetic import write_run
from rliable.library import get_interval_estimates
from rliable.metrics import aggregate_iqm, probability_of_improvement
from scipy import stats

from peer_rl.experiments.results import further_scores_table, score_rule, task_result
from peer_rl.experiments.runs import find_runs, group_runs, read_run
from peer_rl.experiments.statistics import (
    SCORE,
    best_evaluation,
    bootstrap_mean,
    column,
    improvement,
    iqm,
    paired_difference,
    score,
    summarise,
    within_steps,
)

VALUES = [3.0, 1.0, 4.0, 1.5, 9.0]


def test_the_score_is_the_mean_of_the_last_ten_evaluations(tmp_path) -> None:
    write_run(tmp_path, returns=(500.0, *map(float, range(10))))
    (record,) = find_runs([tmp_path])
    assert score(record) == 4.5


def test_on_atari_the_score_is_the_final_policys_and_other_rules_stand_beside_it(tmp_path) -> None:
    """100 whole games would do; here 2, then as many as 25 steps hold, and the best of all evaluations."""
    protocol = {"final_episodes": 2, "final_steps": 25, "steps": 80}
    final = ([1.0, 3.0, 8.0, 100.0], [10, 10, 5, 9])
    record = read_run(write_run(tmp_path, task="atari/pong", returns=(0.0, 40.0), final=final, **protocol))
    assert (score(record), within_steps(record), best_evaluation(record)) == (2.0, 4.0, 40.0)
    result = task_result(group_runs([record]))
    assert score_rule(result.groups) == "the final policy over 2 episodes"
    assert further_scores_table(result).rows == [[result.groups[0].label, "2.00", "4.00", "40.00"]]


def test_a_run_without_evaluations_has_no_score(tmp_path) -> None:
    write_run(tmp_path, returns=())
    records = find_runs([tmp_path])
    assert math.isnan(score(records[0]))
    (summary,) = summarise(group_runs(records), SCORE)
    assert summary.values == {}
    assert math.isnan(summary.mean)


def test_null_and_missing_become_nan() -> None:
    values = column([{"a": 1}, {"a": None}, {}, {"a": "x"}, {"a": 2.5}], "a")
    np.testing.assert_array_equal(values, [1, np.nan, np.nan, np.nan, 2.5])


def test_bootstrap_agrees_with_scipy() -> None:
    ours = bootstrap_mean(VALUES)
    theirs = stats.bootstrap((VALUES,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(5))
    assert ours.value == pytest.approx(np.mean(VALUES))
    assert ours.count == 5
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.15)


@pytest.mark.parametrize(("seeds", "share"), [(3, 0.73), (5, 0.84)])
def test_intervals_of_few_seeds_are_as_narrow_as_the_docs_say(seeds, share) -> None:
    """docs/report.md: how often a 95 % interval of the mean of normal numbers holds the truth."""
    draws = np.random.default_rng(1).normal(size=(400, seeds))
    found = [bootstrap_mean(values) for values in draws.tolist()]
    assert np.mean([one.low <= 0 <= one.high for one in found]) == pytest.approx(share, abs=0.05)


def test_bootstrap_is_the_same_twice_and_leaves_the_global_generator_alone() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002 (this is the generator that must not be used)
    scores = np.array(VALUES)[:, None]
    assert bootstrap_mean(VALUES) == bootstrap_mean(VALUES)
    assert iqm(scores) == iqm(scores)
    assert improvement(scores, scores + 1) == improvement(scores, scores + 1)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_one_seed_has_no_interval() -> None:
    one = np.array([[2.0]])
    for estimate, value in ((bootstrap_mean([2.0]), 2.0), (iqm(one), 2.0), (improvement(one, one), 0.5)):
        assert estimate.value == value
        assert not estimate.has_interval
        assert not estimate.excludes_zero


@pytest.mark.parametrize(
    ("values", "excludes"),
    [([1.0, 2.0, 3.0], True), ([-1.0, -2.0, -3.0], True), ([-1.0, 1.0, 2.0], False), ([0.0, 0.0], False)],
)
def test_excludes_zero(values, excludes) -> None:
    assert bootstrap_mean(values).excludes_zero is excludes


def test_iqm_is_the_mean_of_the_middle_half() -> None:
    estimate = iqm(np.array([[100.0], [1.0], [2.0], [3.0], [4.0], [-50.0], [5.0], [6.0]]))
    assert estimate.value == pytest.approx((2 + 3 + 4 + 5) / 4)
    assert estimate.low < estimate.value < estimate.high


def test_iqm_draws_each_task_apart() -> None:
    """Drawn together, rows of opposite scores would always cancel to the same sum."""
    scores = np.array([[0.0, 10.0], [10.0, 0.0]] * 4)
    estimate = iqm(scores)
    assert estimate.high - estimate.low > 1


@pytest.fixture
def their_generator():
    """Rliable draws from numpy's global generator: seeded for one test, and put back."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    yield
    np.random.set_state(state)  # noqa: NPY002


@pytest.mark.usefixtures("their_generator")
def test_intervals_agree_with_rliables_own() -> None:
    rng = np.random.default_rng(3)
    ours, theirs = rng.normal(1, 1, (6, 4)), rng.normal(0.5, 1, (5, 4))
    values, ends = get_interval_estimates({"x": ours}, lambda scores: np.array([aggregate_iqm(scores)]), reps=1000)
    estimate = iqm(ours)
    assert estimate.value == values["x"][0]
    assert (estimate.low, estimate.high) == pytest.approx(tuple(ends["x"][:, 0]), abs=0.06)
    values, ends = get_interval_estimates({"x": (ours, theirs)}, probability_of_improvement, reps=300)
    estimate = improvement(ours, theirs)
    assert estimate.value == values["x"]
    assert (estimate.low, estimate.high) == pytest.approx(tuple(ends["x"].ravel()), abs=0.04)
    assert estimate.count == 5


def test_the_probability_of_improvement_counts_pairs_and_halves_ties() -> None:
    """One task: 3 beats both, 1 ties with one and loses to the other; two tasks are averaged."""
    assert improvement(np.array([[3.0], [1.0]]), np.array([[1.0], [2.0]])).value == 2.5 / 4
    assert improvement(np.array([[3.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 5.0], [2.0, 5.0]])).value == 2.5 / 8
    certain = improvement(np.array([[3.0], [4.0]]), np.array([[1.0], [2.0]]))
    assert (certain.value, certain.low, certain.high) == (1.0, 1.0, 1.0)


def test_only_common_seeds_are_paired() -> None:
    difference = paired_difference({0: 5.0, 1: 7.0, 9: 1000.0}, {1: 4.0, 0: 4.0, 3: -1000.0})
    assert difference is not None
    assert (difference.value, difference.count) == (2.0, 2)
    assert paired_difference({0: 1.0}, {1: 1.0}) is None


def test_summaries_pair_a_variant_with_its_backbone(tmp_path) -> None:
    for seed, plain, regularized in ((0, 1.0, 3.0), (1, 5.0, 6.0)):
        write_run(tmp_path, seed=seed, returns=(plain,))
        write_run(tmp_path, seed=seed, beta=0.01, returns=(regularized,))
    write_run(tmp_path, seed=2, beta=0.01, returns=(99.0,))
    backbone, variant = summarise(group_runs(find_runs([tmp_path])), SCORE)
    assert backbone.difference is None
    assert (backbone.mean, backbone.std) == (3.0, pytest.approx(np.std([1, 5], ddof=1)))
    assert (variant.difference.value, variant.difference.count) == (1.5, 2)
    assert variant.values == {0: 3.0, 1: 6.0, 2: 99.0}
