import math

import numpy as np
import pytest
from experiments.synthetic import write_run
from scipy import stats

from peer_rl.experiments.report import further_scores_table, score_rule, task_result
from peer_rl.experiments.runs import find_runs, group_runs, read_run
from peer_rl.experiments.statistics import (
    SCORE,
    best_evaluation,
    bootstrap_band,
    bootstrap_mean,
    column,
    half_std,
    iqm,
    mean_curve,
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


def test_bootstrap_is_the_same_twice_and_leaves_the_global_generator_alone() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002 (this is the generator that must not be used)
    scores = np.array(VALUES)[:, None]
    assert (bootstrap_mean(VALUES), iqm(scores)) == (bootstrap_mean(VALUES), iqm(scores))
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_one_seed_has_no_interval() -> None:
    for estimate in (bootstrap_mean([2.0]), iqm(np.array([[2.0]]))):
        assert estimate.value == 2.0
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


def test_curves_are_interpolated_to_what_all_seeds_cover() -> None:
    first = (np.array([0.0, 10.0, 20.0]), np.array([0.0, 10.0, 20.0]))
    second = (np.array([5.0, 15.0, 20.0, 40.0]), np.array([1.0, np.nan, 4.0, 100.0]))
    curve = mean_curve("x", [first, second], half_std)
    assert curve is not None
    np.testing.assert_allclose(curve.x, [5, 10, 20])
    np.testing.assert_allclose(curve.mean, [(5 + 1) / 2, (10 + 2) / 2, (20 + 4) / 2])
    np.testing.assert_allclose(curve.high - curve.mean, np.std([[5, 10, 20], [1, 2, 4]], axis=0, ddof=1) / 2)
    np.testing.assert_allclose(curve.mean - curve.low, curve.high - curve.mean)
    assert curve.seeds == 2


def test_seeds_without_numbers_or_overlap_give_no_curve() -> None:
    nothing = (np.array([1.0, 2.0]), np.array([np.nan, np.nan]))
    early, late = (np.array([0.0, 1.0]), np.ones(2)), (np.array([5.0, 6.0]), np.ones(2))
    assert mean_curve("x", [], half_std) is None
    assert mean_curve("x", [nothing], half_std) is None
    assert mean_curve("x", [early, late], half_std) is None


def test_long_curves_are_thinned() -> None:
    x = np.arange(5000.0)
    curve = mean_curve("x", [(x, 2 * x)], half_std)
    assert curve is not None
    assert len(curve.x) <= 300
    assert (curve.x[0], curve.x[-1]) == (0, 4999)
    np.testing.assert_allclose(curve.mean, 2 * curve.x)


def test_a_band_covers_the_mean_and_one_seed_has_none() -> None:
    curves = np.random.default_rng(1).normal(size=(6, 40))
    low, high = bootstrap_band(curves)
    assert (low < curves.mean(axis=0)).all()
    assert (high > curves.mean(axis=0)).all()
    for spread in (bootstrap_band, half_std):
        low, high = spread(curves[:1])
        np.testing.assert_array_equal(low, high)
