from pathlib import Path

import numpy as np
import pytest
from synthetic import write_run

from peer_rl.paper.report import write_report
from peer_rl.report.aggregates import aggregate_table, aggregates, normalise, performance_profiles
from peer_rl.report.runs import find_runs, group_runs

GAMES = ("atari/pong", "atari/breakout")
ATARI = {"final_episodes": 1, "steps": 80}


def write_pair(runs: Path, task: str, seed: int, plain: float, peer: float, **given: object) -> None:
    for beta, value in ((0.0, plain), (0.01, peer)):
        ends = {"final": ([value], [7]), **ATARI} if task.startswith("atari") else {"returns": (value,)}
        write_run(runs, task=task, seed=seed, beta=beta, **ends, **given)


def aggregated(runs: Path):
    return aggregates(group_runs(find_runs([runs])))


def test_each_suite_has_its_scale() -> None:
    scores = np.array([14.6, -20.7])
    np.testing.assert_allclose(normalise("atari/pong", scores, 1.0), [1, 0])
    np.testing.assert_allclose(normalise("dmc/cheetah-run", np.array([500.0]), 1.0), [0.5])
    np.testing.assert_allclose(normalise("pybullet/ant", np.array([500.0]), 250.0), [2])
    assert normalise("gym/Pendulum-v1", np.array([-500.0]), -250.0) is None


def test_a_variant_over_two_games(tmp_path: Path) -> None:
    """Pong from random play to human, Breakout from human to random, with two seeds of each."""
    for seed in (0, 1):
        write_pair(tmp_path, "atari/pong", seed, plain=-20.7, peer=14.6)
        write_pair(tmp_path, "atari/breakout", seed, plain=30.5, peer=1.7)
    (one,) = aggregated(tmp_path)
    assert (one.profile, one.suite, one.tasks, one.seeds) == (
        "paper",
        "atari",
        ["atari/breakout", "atari/pong"],
        [0, 1],
    )
    assert (one.improvement.value, one.better) == (0.5, 1)
    assert [estimate.value for estimate in one.iqms] == pytest.approx([0.5, 0.5])
    row = aggregate_table([one]).rows[0]
    assert row[:4] == [
        "DQN + PEER (beta = 0.01)",
        "DQN (beta = 0)",
        "2",
        "2",
    ]
    assert row[-1] == "1 of 2"
    assert "human-normalised" in aggregate_table([one]).caption


def test_incomplete_tasks_are_left_out_by_their_seeds_alone(tmp_path: Path) -> None:
    """Three tasks: with the third one seed could be used on each, without it three on each of two."""
    for seed in (0, 1, 2):
        for task in ("gym/A-v0", "gym/B-v0"):
            write_pair(tmp_path, task, seed, plain=1.0, peer=2.0)
    write_pair(tmp_path, "gym/C-v0", 0, plain=5.0, peer=1.0)
    (one,) = aggregated(tmp_path)
    assert (one.tasks, one.seeds, one.incomplete) == (["gym/A-v0", "gym/B-v0"], [0, 1, 2], ["gym/C-v0"])
    assert "too few seeds are finished there: gym/C-v0" in aggregate_table([one]).caption


def test_a_task_whose_backbone_is_not_above_zero_has_no_scale(tmp_path: Path) -> None:
    for task, plain, peer in (("gym/A-v0", 2.0, 3.0), ("gym/B-v0", 4.0, 2.0), ("gym/C-v0", -5.0, -1.0)):
        for seed in (0, 1):
            write_pair(tmp_path, task, seed, plain=plain, peer=peer)
    (one,) = aggregated(tmp_path)
    assert (one.unscaled, one.better) == (["gym/C-v0"], 2)
    assert one.improvement.value == pytest.approx(2 / 3)
    assert [estimate.value for estimate in one.iqms] == [1.0, 1.0]
    assert "the backbone's mean is not above zero: gym/C-v0" in aggregate_table([one]).caption


def test_one_task_or_no_common_seed_is_not_aggregated(tmp_path: Path) -> None:
    write_pair(tmp_path, "gym/A-v0", 0, plain=1.0, peer=1.0)
    assert aggregated(tmp_path) == []
    write_pair(tmp_path, "gym/B-v0", 1, plain=1.0, peer=1.0)
    assert aggregated(tmp_path) == []


def test_profiles_are_the_share_of_runs_above_each_score() -> None:
    low, high = performance_profiles({"low": np.array([[0.0, 1.0]] * 3), "high": np.array([[2.0, 2.0]] * 3)})
    for curve, scores in ((low, [0.0, 1.0]), (high, [2.0, 2.0])):
        wanted = [(np.array(scores) > level).mean() for level in curve.x]
        np.testing.assert_allclose(curve.mean, wanted)
        np.testing.assert_allclose(curve.low, wanted)  # all runs are alike: no spread
    assert (low.mean[0], low.mean[-1]) == (1, 0)


def test_the_band_of_a_profile_holds_it() -> None:
    (curve,) = performance_profiles({"x": np.random.default_rng(0).normal(size=(5, 4))})
    assert (curve.low <= curve.mean + 1e-9).all()
    assert (curve.high >= curve.mean - 1e-9).all()
    assert (curve.high - curve.low).max() > 0.1


def test_the_report_shows_aggregates(tmp_path: Path) -> None:
    for task in GAMES:
        for seed in range(5):
            write_pair(tmp_path / "runs", task, seed, plain=1.0 + seed, peer=11.0 + seed)
    page = write_report(find_runs([tmp_path / "runs"]), tmp_path / "out", title="t").read_text()
    assert "All tasks of atari, own settings" in page
    assert "atari, own settings, 2 tasks: more likely than not a better run" in page
    assert ": probability 1.00 [1.00, 1.00]" in page
    assert '"title":"Performance profile: DQN + PEER (beta = 0.01)"' in page
    assert {path.name for path in (tmp_path / "out").glob("profiles*")} == {
        "profiles-paper-atari-0.png",
        "profiles-paper-atari-0.svg",
    }
    assert "## All tasks of atari, own settings" in (tmp_path / "out" / "table.md").read_text()
