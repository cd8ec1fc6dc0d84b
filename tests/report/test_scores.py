import itertools
import math

import numpy as np
import pytest
from scipy import stats
from synthetic import write_run

from peer_rl.report.results import further_scores_table, score_rule, task_result
from peer_rl.report.runs import find_runs, group_runs, read_run
from peer_rl.report.scores import (
    SCORE,
    best_evaluation,
    bootstrap_mean,
    column,
    improvement,
    iqm,
    mean_difference,
    paired_difference,
    score,
    sign_flip_p,
    suite_difference,
    summarise,
    within_steps,
)

VALUES = [3.0, 1.0, 4.0, 1.5, 9.0]


def test_the_score_is_the_mean_of_the_last_ten_evaluations(tmp_path) -> None:
    write_run(tmp_path, returns=(500.0, *map(float, range(10))))
    (record,) = find_runs([tmp_path])
    assert score(record) == 4.5


def test_on_atari_the_score_is_the_final_policys_and_other_rules_are_shown_with_it(tmp_path) -> None:
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
    theirs = stats.bootstrap((VALUES,), np.mean, method="BCa", n_resamples=20_000, rng=np.random.default_rng(5))
    assert ours.value == pytest.approx(np.mean(VALUES))
    assert ours.count == 5
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.15)


@pytest.mark.parametrize("count", [2, 6, 10])
def test_the_sign_flip_test_counts_the_flips_whose_mean_is_at_least_as_far_from_zero(count) -> None:
    data = np.random.default_rng(count).normal(0.5, size=count)
    signs = np.array(list(itertools.product((-1, 1), repeat=count)))
    means = np.abs(signs @ data) / count
    assert sign_flip_p(data) == pytest.approx(np.mean(means >= abs(data.mean()) - 1e-12))
    exact = stats.permutation_test((data,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip_p(data) == pytest.approx(exact.pvalue)


def test_with_many_pairs_the_sign_flip_test_draws_its_flips() -> None:
    data = np.random.default_rng(3).normal(0.3, size=24)
    drawn = stats.permutation_test((data,), np.mean, permutation_type="samples", rng=np.random.default_rng(1))
    assert sign_flip_p(data) == sign_flip_p(data) == pytest.approx(drawn.pvalue, abs=0.02)


def test_with_five_pairs_nothing_is_decided_and_with_six_it_can_be() -> None:
    assert not mean_difference([1.0, 2.0, 3.0, 4.0, 5.0]).decided()
    assert mean_difference([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).decided()
    assert not mean_difference([1.0, 2.0, 3.0, 4.0, 5.0, -6.0]).decided()


def test_tasks_count_alike_whatever_their_scale() -> None:
    small, large = np.array([1.0, 2.0, -0.5]), np.array([-100.0, 300.0, 200.0])
    assert suite_difference([small, large]) == suite_difference([8 * small, large])
    assert suite_difference([np.zeros(3), np.zeros(3)]).value == 0


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


def test_the_probability_of_improvement_is_mann_and_whitneys() -> None:
    rng = np.random.default_rng(3)
    ours, theirs = rng.normal(1, 1, (6, 4)), rng.normal(0.5, 1, (5, 4))
    estimate = improvement(ours, theirs)
    assert estimate.value == pytest.approx(np.mean(stats.mannwhitneyu(ours, theirs).statistic) / 30)
    assert estimate.low < estimate.value < estimate.high
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
