"""Ctrl-C and SIGTERM: a checkpoint at the episode's end, a truthful message, and a status that says so."""

import signal

import pytest
from running import command, interrupted_at, leavings, tiny_config, tiny_run

from peer_rl.launch.api import train, what_comes_next
from peer_rl.report.runs import read_run
from peer_rl.training.checkpoint import Checkpoints
from peer_rl.training.loop import Trainer
from peer_rl.training.rundir import RunDirectory, read_json, run_path
from peer_rl.training.stopping import StopRequest

CARTPOLE = ("train", "dqn", "--task", "gym/CartPole-v1", "--profile", "smoke", "--steps", 400, "--eval-every", 0)


@pytest.fixture
def signals(monkeypatch):
    """``signals(13, 20)``: SIGTERM at these steps of a run."""

    def at(*steps):
        learn = Trainer.learn

        def learning(trainer):
            learn(trainer)
            if trainer.step in steps:
                signal.raise_signal(signal.SIGTERM)

        monkeypatch.setattr(Trainer, "learn", learning)

    return at


def test_a_run_that_is_asked_to_stop_takes_a_checkpoint_and_resumes_bit_for_bit(tmp_path):
    whole = tiny_run("dqn", tmp_path / "whole")
    config, seen = tiny_config("dqn"), []
    with pytest.raises(KeyboardInterrupt):
        train(config, runs=tmp_path, stop=lambda: seen.append(1) or len(seen) == 3)
    path = run_path(config, tmp_path)
    (step,) = Checkpoints(path / "checkpoint").steps()
    status = read_json(path / "status.json")
    assert (status["state"], status["step"], status["episode"]) == ("stopped", step, 3)
    assert train(config, runs=tmp_path) == path
    assert leavings(path) == leavings(whole)


def test_the_first_signal_ends_the_episode_and_the_message_names_the_checkpoint(tmp_path, signals):
    signals(50)
    stopped = command(*CARTPOLE, "--runs", tmp_path)
    assert stopped.returncode == 128 + signal.SIGTERM
    (path,) = (file.parent for file in tmp_path.rglob("config.toml"))
    (step,) = Checkpoints(path / "checkpoint").steps()
    assert step >= 50
    assert f"resumes from the checkpoint at step {step}" in stopped.stderr
    again = command(*CARTPOLE, "--runs", tmp_path)
    assert again.returncode == 0
    assert f"resumes from the checkpoint at step {step}" in again.stderr


def test_the_second_signal_stops_at_once_and_no_checkpoint_is_promised(tmp_path, signals):
    signals(2, 3)
    stopped = command(*CARTPOLE, "--runs", tmp_path)
    assert stopped.returncode == 128 + signal.SIGTERM
    assert "there is no checkpoint yet: the same command starts from the beginning" in stopped.stderr
    (status,) = tmp_path.rglob("status.json")
    assert (read_json(status)["state"], read_json(status)["step"]) == ("stopped", 3)


def test_signals_are_received_as_before_when_the_run_is_over():
    before = signal.getsignal(signal.SIGTERM)
    with StopRequest() as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop.made
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
    with StopRequest(at_once=True), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


def test_what_stops_a_run_before_its_first_checkpoint_is_told(tmp_path):
    config = tiny_config("dqn")
    with interrupted_at(20):
        train(config, runs=tmp_path)
    assert read_json(run_path(config, tmp_path) / "status.json")["state"] == "stopped"
    assert "no checkpoint yet" in what_comes_next(config, tmp_path)


def test_reports_call_a_run_running_only_while_a_process_writes_it(tmp_path):
    config = tiny_config("dqn")
    with interrupted_at(300):
        train(config, runs=tmp_path, checkpoint_seconds=0.0)
    path = run_path(config, tmp_path)
    killed = '{"state": "running", "step": 300}'  # what kill -9 leaves
    (path / "status.json").write_text(killed)
    assert read_run(path).state == "stopped"
    with RunDirectory(path, read_run(path).config):
        assert read_run(path).state == "running"
    assert read_run(path).state == "stopped"


def test_quiet_prints_the_run_directory_and_nothing_else(tmp_path):
    result = command(*CARTPOLE, "--runs", tmp_path, "--quiet")
    (config,) = tmp_path.rglob("config.toml")
    assert (result.stdout, result.stderr) == (f"{config.parent}\n", "")
