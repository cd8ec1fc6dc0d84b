import json
from pathlib import Path

import numpy as np
import pytest
from synthetic import write_lines, write_run

from peer_rl.report.curves import bootstrap_band, clock, half_std, log_curve, mean_curve
from peer_rl.report.runs import find_runs, group_runs


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


def row(step: int, seconds: float, first: int = 0) -> dict[str, float]:
    return {"step": step, "seconds": seconds, "steps_per_second": (step - first) / seconds}


def hours_at(rows: list[dict[str, float]], *steps: float) -> list[float]:
    known, hours = clock(rows)
    return np.interp(steps, known, hours).tolist()


def test_the_clock_of_an_undisturbed_run() -> None:
    assert hours_at([row(1000, 3600), row(3000, 7200)], 0, 500, 1000, 2000, 3000) == pytest.approx([0, 0.5, 1, 1.5, 2])


def test_the_clock_leaves_out_what_was_played_again() -> None:
    """Killed at 3000 after 3 h, continued from a checkpoint at 2000 (2 h): half an hour later it is at 3000 again."""
    rows = [row(1000, 3600), row(2000, 7200), row(3000, 10800), row(3000, 1800, first=2000), row(4000, 3600, 2000)]
    assert hours_at(rows, 1000, 2000, 2500, 3000, 4000) == pytest.approx([1, 2, 2.25, 2.5, 3])


def test_a_second_start_with_a_longer_first_line_is_distinguished() -> None:
    assert hours_at([row(1000, 3600), row(3000, 7200, first=1000)], 1000, 3000) == pytest.approx([1, 3])


def test_a_clock_without_lines_or_with_strange_ones() -> None:
    assert clock([])[1].size == 0
    assert clock([{"step": None, "seconds": "x"}, {}])[1].size == 0


def test_frames_and_hours_are_those_of_the_steps(tmp_path: Path) -> None:
    for seed, hours in ((0, 1.0), (1, 3.0)):
        write_run(tmp_path, seed=seed, hours=hours, returns=(1.0, 2.0))
        path = next(tmp_path.glob(f"**/seed{seed}"))
        write_lines(path / "eval.jsonl", [{"step": step, "frame": 4 * step, "mean": 1.0} for step in (40, 80)])
    (group,) = group_runs(find_runs([tmp_path]))
    curve = log_curve(group, "eval", "mean", half_std)
    np.testing.assert_allclose(curve.x, [40, 80])
    np.testing.assert_allclose(curve.frames, [160, 320])
    np.testing.assert_allclose(curve.hours, [1, 2])


def test_a_run_without_times_leaves_the_group_without_hours(tmp_path: Path) -> None:
    write_run(tmp_path, seed=0, hours=1.0)
    write_run(tmp_path, seed=1)
    (group,) = group_runs(find_runs([tmp_path]))
    assert log_curve(group, "eval", "mean", half_std).hours is None


def test_half_a_line_of_times_costs_that_line_alone(tmp_path: Path) -> None:
    path = write_run(tmp_path, hours=2.0)
    whole = (path / "timing.jsonl").read_text()
    (path / "timing.jsonl").write_text('{"step": 10, "sec' + json.dumps({"step": 20}) + "\n[1]\n" + whole)
    (record,) = find_runs([tmp_path])
    assert record.usable
    assert clock(record.rows["timing"])[1][-1] == pytest.approx(2.0)


def test_a_curve_of_fewer_seeds_says_so(tmp_path: Path) -> None:
    write_run(tmp_path, seed=0)
    (write_run(tmp_path, seed=1) / "diagnostics.jsonl").write_text("")
    (group,) = group_runs(find_runs([tmp_path]))
    assert log_curve(group, "diagnostics", "cosine", half_std).name == "DQN (beta = 0): 1 of 2 seeds"
    assert log_curve(group, "eval", "mean", half_std).name == "DQN (beta = 0)"
