"""The laws with a beta that finds itself, over an agent of each kind: discrete, continuous, from frames."""

import json

import pytest
from running import final, interrupted_at, leavings, tiny_config, tiny_run, weights

from peer_rl.errors import ConfigError
from peer_rl.launch.api import load, train
from peer_rl.settings import configure, variant
from peer_rl.training.files import read_json_lines
from peer_rl.training.rundir import read_config

AGENTS = ["dqn", "td3", "drq-sac"]
AUTO = {"beta": "auto", "beta_rate": 0.02}


@pytest.mark.parametrize("agent", AGENTS)
def test_killed_and_resumed_equals_uninterrupted(agent, shared_run, tmp_path):
    whole = shared_run(agent, **AUTO)
    rows = [row for row in read_json_lines(whole / "metrics.jsonl") if "beta" in row]
    assert len({row["beta"] for row in rows}) == len(rows) > 5
    assert all(1e-6 < row["beta"] < 1 and -1 <= row["cosine"] <= 1 for row in rows)
    with interrupted_at(200):
        tiny_run(agent, tmp_path, checkpoint_seconds=0.0, **AUTO)
    assert leavings(tiny_run(agent, tmp_path, **AUTO)) == leavings(whole)


def test_a_resumed_run_really_loads_beta(shared_run, tmp_path, monkeypatch):
    whole = shared_run("dqn", **AUTO)
    with interrupted_at(200):
        tiny_run("dqn", tmp_path, checkpoint_seconds=0.0, **AUTO)
    monkeypatch.setattr("peer_rl.plugin.ConstrainedPEER.load_state_dict", lambda self, state: None)
    assert leavings(tiny_run("dqn", tmp_path, **AUTO)) != leavings(whole)


@pytest.mark.parametrize("agent", ["dqn", "td3"])
def test_observers_are_inert(agent, tmp_path):
    silent = {"protocol.eval_every": 0, "protocol.diagnose_every": 0, "protocol.log_every": 10**9}
    quiet = tiny_run(agent, tmp_path / "quiet", checkpoint_seconds=1e9, **AUTO, **silent)
    loud = {"protocol.eval_every": 80, "protocol.diagnose_every": 7, "protocol.log_every": 10}
    noisy = tiny_run(agent, tmp_path / "noisy", checkpoint_seconds=0.0, **AUTO, **loud)
    assert weights(quiet) == weights(noisy)
    first, second = (final(path).components["loop"]["regularizer"]["log_beta"] for path in (quiet, noisy))
    assert first == second


def test_the_run_can_be_loaded_played_and_run_again(shared_run, tmp_path):
    path = shared_run("dqn", **AUTO)
    assert load(path).evaluate(episodes=1).returns
    assert leavings(train(read_config(path), runs=tmp_path / "again")) == leavings(path)


def test_random_draws_and_initial_weights_do_not_depend_on_it(shared_run):
    first, second = (shared_run("dqn", **given) for given in ({"beta": 0.0}, AUTO))
    streams = [json.dumps(final(path).components["loop"]["streams"], default=str) for path in (first, second)]
    assert streams[0] == streams[1]
    assert weights(first) != weights(second)


def test_its_name_and_settings():
    plain, config = (configure("td3", "gym/Pendulum-v1", beta=beta) for beta in (5e-4, "auto"))
    assert variant(config) == "td3+betaauto"
    assert (config.regularizer, config.beta_target, config.beta_rate) == ("cosine-peer", 0.9, 0.001)
    again = configure("td3", "gym/Pendulum-v1", beta="auto", beta_target=0.9, regularizer="cosine-peer")
    assert again == config
    another = configure("td3", "gym/Pendulum-v1", beta="auto", beta_target=0.5)
    assert variant(another) == "td3+beta-target0.5+betaauto"
    assert (plain.beta_target, plain.beta_rate) == (None, None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beta": "auto", "regularizer": "peer"}, "works with cosine-peer only; leave out --regularizer peer"),
        ({"beta": "auto", "regularizer": "none"}, "works with cosine-peer only"),
        ({"beta": "auto", "regularizer": "dr3"}, "works with cosine-peer only"),
        ({"beta_target": 0.5}, "--beta-target needs --beta auto, but beta is 0.0005"),
        ({"beta": 0.0, "beta_rate": 0.5}, "--beta-rate needs --beta auto, but beta is 0"),
        ({"beta": "auto", "beta_target": 1.5}, "beta_target must be a cosine"),
        ({"beta": "auto", "beta_rate": -1.0}, "beta_rate must be 0 or above"),
        ({"beta": "much"}, "setting beta must be"),
    ],
)
def test_what_contradicts_itself_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        tiny_config("td3", **changes)


@pytest.mark.parametrize("agent", ["ppo", "planet", "dreamer-pixels", "dreamer-v2"])
@pytest.mark.parametrize("beta", [5e-4, "auto"])
def test_an_agent_without_a_td_target_takes_none(agent, beta):
    with pytest.raises(ConfigError, match=f"{agent} has no TD target, so PEER does not apply; leave out --beta"):
        tiny_config(agent, beta=beta)
