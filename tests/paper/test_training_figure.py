"""Figure 1 from run directories written by hand: what its lines are, and that it is drawn."""

import json
import math

import numpy as np
import pytest
import tomli_w
from synthetic import nested, write_lines

from peer_rl.paper.training_figure import draw_training, random_play, series
from peer_rl.report.runs import find_runs, group_runs
from peer_rl.settings import as_dict, configure
from peer_rl.training.rundir import SCHEMA, run_path

TASK = "dmc/cartpole-swingup"


def write_run(runs, agent: str, beta: float, seed: int, *, cosine: float, points: int = 5) -> None:
    config = configure(agent, TASK, profile="small", beta=beta, seed=seed)
    path = run_path(config, runs)
    path.mkdir(parents=True)
    (path / "config.toml").write_text(tomli_w.dumps(nested(as_dict(config))))
    (path / "manifest.json").write_text(json.dumps({"schema": SCHEMA, "command": ["peer-rl"]}))
    (path / "status.json").write_text(json.dumps({"state": "finished", "step": 12_500, "frame": 100_000}))

    def at(step: int) -> dict[str, int]:
        return {"step": step, "frame": 8 * step, "episode": step // 125}

    episodes = [{**at(125 * number), "return": 100.0 + number + seed, "length": 125} for number in range(1, 21)]
    write_lines(path / "metrics.jsonl", [*episodes, {**at(1_500), "updates": 500, "td_loss": 1.0}])
    rows = [1_250 * number for number in range(1, points + 1)]
    write_lines(
        path / "eval.jsonl", [{**at(step), "mean": step / 10 + seed, "returns": [], "seeds": []} for step in rows]
    )
    drd = [None, *(1 - 0.2 * index for index in range(points - 1))]
    write_lines(
        path / "diagnostics.jsonl",
        [{**at(step), "drd_head0": one, "cosine": cosine - step / 1e5} for step, one in zip(rows, drd, strict=True)],
    )


@pytest.fixture
def groups(tmp_path):
    for seed in (0, 1):
        write_run(tmp_path, "curl-sac", 0.0, seed, cosine=0.97)
        write_run(tmp_path, "curl-sac", 5e-4, seed, cosine=0.8, points=4 + seed)
    write_run(tmp_path, "drq-sac", 5e-4, 0, cosine=0.9)
    return group_runs(find_runs([tmp_path]))


def test_a_line_is_the_mean_of_the_steps_that_all_seeds_have(groups):
    group = next(group for group in groups if group.config.agent == "curl-sac" and group.config.beta)
    found = series(group, "eval", "mean")
    assert found.frames.tolist() == [10_000, 20_000, 30_000, 40_000]
    np.testing.assert_allclose(found.mean, np.array([1_250, 2_500, 3_750, 5_000]) / 10 + 0.5)
    drd = series(group, "diagnostics", "drd_head0")
    assert math.isnan(drd.mean[0])
    np.testing.assert_allclose(drd.mean[1:], [1.0, 0.8, 0.6])
    assert series(group, "eval", "cosine").values.shape == (2, 4)
    assert series(group, "timing", "cosine") is None


def test_random_play_is_the_episodes_before_learning_once_a_seed(groups):
    """Eight episodes of 125 steps end within the first 1,000, for each of two seeds."""
    level, count = random_play([group for group in groups if group.config.agent == "curl-sac"])
    assert (level, count) == (100 + 4.5 + 0.5, 16)


def test_it_is_drawn_with_a_row_for_each_agent(groups, tmp_path):
    draw_training(groups, tmp_path / "two.png")
    draw_training([group for group in groups if group.config.agent == "drq-sac"], tmp_path / "one.png")
    two, one = ((tmp_path / f"{name}.png").read_bytes() for name in ("two", "one"))
    height = slice(20, 24)  # of PNG's header
    assert int.from_bytes(two[height]) > 1.5 * int.from_bytes(one[height])
    assert len(two) > 20_000
