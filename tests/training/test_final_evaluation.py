"""The evaluation at the end of training: longer than the others, exactly one, and without a trace."""

from pathlib import Path

import numpy as np
import pytest
from running import interrupted, leavings, tiny_run, weights

from peer_rl.launch.api import train
from peer_rl.settings import configure
from peer_rl.training import recorder
from peer_rl.training.evaluate import Quota
from peer_rl.training.files import read_json_lines

FINAL = {"protocol.final_episodes": 5, "protocol.final_steps": 2600}
SHORT = {"beta": 0.0, "start_steps": 10, "batch_size": 8, "eval_every": 20, "eval_episodes": 2, "final_episodes": 7}


def lines(run: Path) -> list[dict]:
    return read_json_lines(run / "eval.jsonl")


@pytest.mark.parametrize("agent", ["dqn", "trpo"])
def test_it_plays_its_episodes_and_then_its_steps(agent, shared_run):
    *others, last = lines(shared_run(agent, **FINAL))
    assert others
    assert all(len(line["returns"]) == 2 and "final" not in line for line in others)
    lengths = last["lengths"]
    assert last["final"] is True
    assert len(last["returns"]) == len(lengths) == len(set(last["seeds"])) > 5
    assert sum(lengths) >= 2600 > sum(lengths[:-1]), "one episode too many"


def test_the_score_is_over_its_episodes_not_over_those_for_the_steps(tmp_path):
    """In this task an episode is one step, whose reward is chance."""
    run = train(configure("dqn", "toy_envs:drawn", **SHORT, final_steps=30, steps=60), runs=tmp_path)
    returns = lines(run)[-1]["returns"]
    assert len(returns) == 30
    assert lines(run)[-1]["mean"] == np.mean(returns[:7]) != np.mean(returns)


def test_without_a_quota_of_its_own_it_is_like_the_others(shared_run):
    plain, longer = (lines(shared_run("dqn", **changes))[-1] for changes in ({}, FINAL))
    assert len(plain["returns"]) == 2
    assert plain["final"] is True
    for name in ("returns", "lengths", "seeds"):
        assert plain[name] == longer[name][:2]


@pytest.mark.parametrize("budget", [{"steps": 60}, {"episodes": 60}, {"steps": 61}])
@pytest.mark.parametrize("task", ["toy_envs:terminating", "toy_envs:endless"])
def test_the_last_step_is_evaluated_once(task, budget, tmp_path):
    """Whether the budget ends with an episode or inside one, at a step where an evaluation is due anyway or not."""
    limit = {"max_episode_steps": 1 if "episodes" in budget else 1000} if task.endswith("endless") else {}
    run = train(configure("dqn", task, **SHORT, **budget, **limit), runs=tmp_path)
    steps = [20, 40, 60, 61] if budget.get("steps") == 61 else [20, 40, 60]
    assert [line["step"] for line in lines(run)] == steps
    assert [len(line["returns"]) for line in lines(run)] == [2] * (len(steps) - 1) + [7]
    assert [line.get("final", False) for line in lines(run)] == [False] * (len(steps) - 1) + [True]
    before = (run / "eval.jsonl").read_bytes()
    train(configure("dqn", task, **SHORT, **budget, **limit), runs=tmp_path)
    assert (run / "eval.jsonl").read_bytes() == before


def test_no_evaluation_means_none_at_the_end_either(tmp_path):
    run = train(configure("dqn", "toy_envs:terminating", **{**SHORT, "eval_every": 0}, steps=60), runs=tmp_path)
    assert lines(run) == []


def test_law_2_it_leaves_no_trace(shared_run):
    assert weights(shared_run("dqn")) == weights(shared_run("dqn", **FINAL))


def test_law_3_a_crash_in_the_middle_of_it_leaves_no_trace(shared_run, tmp_path):
    stop = interrupted(Quota, "share", lambda quota, played: quota.episodes == 5 and len(played.returns) == 3)
    with stop:
        tiny_run("dqn", tmp_path, checkpoint_seconds=0.0, **FINAL)
    assert leavings(tiny_run("dqn", tmp_path, **FINAL)) == leavings(shared_run("dqn", **FINAL))


def test_it_shows_its_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "_SHOW_SECONDS", 0.0)
    notes = []
    config = configure("dqn", "toy_envs:truncating", **SHORT, final_steps=20, steps=60)
    train(config, runs=tmp_path, show=lambda progress: notes.append(progress.note))
    shown = list(dict.fromkeys(filter(None, notes)))
    assert shown[:2] == ["evaluation 0/2", "evaluation 1/2"]
    assert shown[2:9] == [f"final evaluation {played}/7" for played in range(7)]
    assert shown[9:] == ["final evaluation 14/20 steps", "final evaluation 16/20 steps", "final evaluation 18/20 steps"]
    assert notes[-1] == ""
