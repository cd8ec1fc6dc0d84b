"""``--extend``: a finished run with a larger budget equals one that had it from the start."""

import pytest
from running import command, final, interrupted_at, leavings, tiny_config, tiny_run

from peer_rl.errors import ConfigError, RunError
from peer_rl.launch.api import extend_run, train
from peer_rl.training.checkpoint import Checkpoints
from peer_rl.training.rundir import RunDirectory, read_json, run_path

STORES = ("dqn", "redq", "rainbow", "td-mpc")
"""Whole observations, twice; frames with priorities; windows."""


@pytest.mark.filterwarnings("ignore:phi has negative entries")
@pytest.mark.parametrize("agent", STORES)
def test_an_extended_run_equals_one_with_its_budget_from_the_start(agent, shared_run, tmp_path):
    whole, config = shared_run(agent), tiny_config(agent)
    steps = config.steps - 37  # inside an episode
    short = tiny_run(agent, tmp_path, checkpoint_seconds=0.0, steps=steps)
    before = {file: file.read_bytes() for file in short.rglob("*") if file.is_file()}
    said = extend_run(config, tmp_path)
    path = run_path(config, tmp_path)
    (start,) = Checkpoints(path / "checkpoint").steps()
    assert f"continues {short} from its checkpoint at step {start}" in said
    assert 0 < start < steps
    assert leavings(train(config, runs=tmp_path)) == leavings(whole)
    assert read_json(path / "status.json")["total"] == config.steps
    assert {file: file.read_bytes() for file in short.rglob("*") if file.is_file()} == before


def test_a_budget_in_episodes(tmp_path):
    whole = tiny_run("dqn", tmp_path / "whole", steps=None, episodes=9)
    tiny_run("dqn", tmp_path, checkpoint_seconds=0.0, steps=None, episodes=6)
    config = tiny_config("dqn", steps=None, episodes=9)
    assert "from its checkpoint" in extend_run(config, tmp_path)
    assert leavings(train(config, runs=tmp_path)) == leavings(whole)


def test_an_unfinished_run_is_extended_from_its_newest_checkpoint(tmp_path, shared_run):
    short, config = tiny_config("dqn", steps=250), tiny_config("dqn")
    with interrupted_at(200):
        train(short, runs=tmp_path, checkpoint_seconds=0.0)
    newest = final(run_path(short, tmp_path)).step
    assert extend_run(config, tmp_path).endswith(f"at step {newest}")
    assert leavings(train(config, runs=tmp_path)) == leavings(shared_run("dqn"))


def test_without_a_checkpoint_before_its_end_the_run_starts_again(tmp_path, shared_run):
    tiny_run("dqn", tmp_path, steps=250)
    config = tiny_config("dqn")
    assert "starts from the beginning" in extend_run(config, tmp_path)
    assert leavings(train(config, runs=tmp_path)) == leavings(shared_run("dqn"))


def test_what_cannot_be_extended_is_refused_and_says_why(tmp_path):
    with pytest.raises(RunError, match="no run to extend"):
        extend_run(tiny_config("dqn"), tmp_path)
    with pytest.raises(ConfigError, match="ppo cannot be extended"):
        extend_run(tiny_config("ppo"), tmp_path)
    short = tiny_config("dqn", steps=250, device="cpu")
    train(short, runs=tmp_path)
    with RunDirectory(run_path(short, tmp_path), short), pytest.raises(RunError, match="still being written"):
        extend_run(tiny_config("dqn"), tmp_path)
    with pytest.raises(RunError, match="no run to extend"):
        extend_run(tiny_config("dqn", seed=1), tmp_path)


def test_the_command_line_names_the_shorter_run_and_extends_it(tmp_path):
    words = ("train", "dqn", "--task", "gym/CartPole-v1", "--profile", "smoke", "--eval-every", 0, "--runs", tmp_path)
    assert command(*words, "--steps", 300, "--checkpoint-seconds", 0).returncode == 0
    longer = command(*words, "--steps", 400, "--seed", 1)
    assert "--extend" not in longer.stderr
    extended = command(*words, "--steps", 400, "--extend")
    assert extended.returncode == 0, extended.stderr
    assert "from its checkpoint at step" in extended.stderr
    told = command(*words, "--steps", 450)
    assert "is the same run with 400 steps; --extend continues it" in told.stderr
