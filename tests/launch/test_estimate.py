"""``peer-rl train`` says how long a run from pixels will take, and the run does not notice."""

import dataclasses
import re

import pytest
import torch
from rendering import HAS_GL
from running import leavings, peer_rl

from peer_rl.errors import ConfigError
from peer_rl.launch import cost as costs
from peer_rl.launch.cost import Cost, duration, expected_time
from peer_rl.replay import make
from peer_rl.settings import configure

TASK = "dmc/cartpole-swingup"
_SHAPES = "--encoder.channels 4 --encoder.kernels 5 --encoder.strides 3 --actor.hidden 8 --critic.hidden 8 --latent 4"
_RUN = "--steps 60 --start-steps 50 --max-episode-steps 30 --batch-size 4 --eval-every 0 --render-quality draft"
COMMAND = ["train", "drq-sac", "--task", TASK, "--image-size", "24", *_SHAPES.split(), *_RUN.split()]


@pytest.mark.skipif(not HAS_GL, reason="no GL library: apt-get install libosmesa6")
def test_it_is_printed_before_the_run_and_changes_nothing_in_it(tmp_path):
    told = peer_rl(*COMMAND, "--runs", tmp_path / "told")
    assert re.match(rf"drq-sac {TASK}: about 1 minute on this machine \(\S+ s an update\)\n", told.stderr)
    assert peer_rl(*COMMAND, "--runs", tmp_path / "quiet", "--quiet").stderr == ""
    one, other = (next((tmp_path / name).rglob("config.toml")).parent for name in ("told", "quiet"))
    assert leavings(one) == leavings(other)
    again = peer_rl(*COMMAND, "--runs", tmp_path / "told")  # it is finished
    assert (again.returncode, "about" in again.stderr) == (0, False)


def test_long_runs_name_the_small_profile(monkeypatch):
    config = configure("curl-sac", TASK)
    cost = {"paper": (7.0, 0.03), "small": (0.07, 0.008)}

    def measure(config, *, begin=0):
        update, step = cost[config.profile]
        return costs.count_cost(config, begin, update_seconds=update, step_seconds=step)

    monkeypatch.setattr(costs, "measure_cost", measure)
    words = "about 5 days on this machine (7 s an update); --profile small takes about 29 minutes"
    assert expected_time(config) == words
    assert expected_time(config, begin=62_000) == "about 59 minutes on this machine (7 s an update)"
    assert expected_time(config, begin=62_500) == ""


def test_updates_and_steps_of_a_run_are_counted():
    """500k frames at a repeat of 8: 50 evaluations of 10 episodes; a quarter is done already in the second."""
    config = configure("curl-sac", TASK)
    whole = costs.count_cost(config, 0, update_seconds=1.0, step_seconds=0.0)
    assert whole == Cost(1.0, 0.0, updates=61_500, played_steps=62_500 + 50 * 10 * 125)
    rest = costs.count_cost(config, 15_625, update_seconds=1.0, step_seconds=0.0)
    assert (rest.updates, rest.played_steps) == (46_875, 46_875 + 38 * 10 * 125)
    every_second = dataclasses.replace(config.learning, update_every=2, updates=3, start_steps=2_500)
    uneven = dataclasses.replace(config, learning=every_second, steps=3_000, max_episode_steps=50)
    assert costs.count_cost(uneven, 0, update_seconds=2.0, step_seconds=1.0).seconds == 2.0 * 750 + 3_000 + 3 * 10 * 50


def test_runs_from_state_that_take_long_get_an_estimate_and_short_ones_do_not(monkeypatch):
    config, measured = configure("td3", "pybullet/hopper"), []

    def measure(config, *, begin=0):
        measured.append(config.steps)
        return costs.count_cost(config, begin, update_seconds=0.01, step_seconds=0.0002)

    monkeypatch.setattr(costs, "measure_cost", measure)
    assert expected_time(config).startswith("about 3 hours on this machine (0.01 s an update)")
    assert expected_time(config, begin=960_000) == ""
    assert len(measured) == 2
    assert expected_time(configure("td3", "pybullet/hopper", steps=600)) == ""
    assert len(measured) == 2, "a run that is short at any pace is not measured"


@pytest.mark.parametrize(("agent", "task"), [("dqn", "gridworld/paper"), ("ppo", "pybullet/hopper")])
def test_runs_that_cannot_be_measured_get_no_estimate(agent, task):
    assert expected_time(configure(agent, task)) == ""


@pytest.mark.parametrize(("agent", "task"), [("dqn", "gym/CartPole-v1"), ("sac", "gym/Pendulum-v1")])
def test_updates_from_state_can_be_measured(agent, task):
    found = costs.measure_cost(configure(agent, task, steps=6_000))
    assert found.update_seconds > 0 < found.step_seconds


@pytest.mark.skipif(not HAS_GL, reason="no GL library: apt-get install libosmesa6")
def test_measuring_leaves_torch_as_it_was():
    settings = {"encoder.channels": (4,), "encoder.kernels": (5,), "encoder.strides": (3,), "critic.hidden": (8,)}
    config = configure("drq-v2", TASK, image_size=24, batch_size=4, threads=1, render_quality="draft", **settings)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    found = costs.measure_cost(config)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert found.update_seconds > 0 < found.step_seconds


@pytest.mark.skipif(not HAS_GL, reason="no GL library: apt-get install libosmesa6")
def test_a_replay_that_does_not_fit_is_refused_before_anything_is_measured(monkeypatch):
    monkeypatch.setattr(make, "available_memory", lambda: 10_000)
    monkeypatch.setattr("peer_rl.agents.make.build_agent", None)  # calling it would fail
    with pytest.raises(ConfigError, match="choose a smaller --buffer-size"):
        expected_time(configure("drq-v2", TASK))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "1 minute"), (5_000, "83 minutes"), (7_200, "2 hours"), (86_400, "24 hours"), (780_000, "9 days")],
)
def test_a_duration_is_a_small_number(seconds, words):
    assert duration(seconds) == words
