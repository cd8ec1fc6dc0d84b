"""``peer-rl runs``: what is listed, what is deleted, and what never is."""

import io
import json
import os
import shutil
import subprocess
import sys
import time

import pytest
from running import command, tiny_config

from peer_rl.launch.api import train
from peer_rl.training.rundir import RunDirectory, read_config


@pytest.fixture(scope="module")
def one_run(tmp_path_factory):
    return train(tiny_config("dqn", steps=250), runs=tmp_path_factory.mktemp("one"))


@pytest.fixture
def runs(one_run, tmp_path):
    """A finished run, one that kill -9 stopped, and one whose config is damaged."""
    for variant in ("dqn", "dqn+beta0", "td3"):
        shutil.copytree(one_run, tmp_path / "paper/some-task" / variant / "seed0")
    killed = tmp_path / "paper/some-task/dqn+beta0/seed0/status.json"
    killed.write_text(json.dumps({"state": "running", "step": 120}))
    (tmp_path / "paper/some-task/td3/seed0/config.toml").write_text("= 3")
    return tmp_path


def rows(result):
    assert result.returncode == 0, result.stderr
    return {line.split()[-1]: line.split() for line in result.stdout.splitlines()[1:-1]}


def test_the_list_has_state_step_score_size_and_time(runs):
    found = rows(command("runs", "--runs", runs))
    finished = found["paper/some-task/dqn/seed0"]
    score = json.loads((runs / "paper/some-task/dqn/seed0/eval.jsonl").read_text().splitlines()[-1])["mean"]
    assert finished[:3] == ["finished", "250/250", f"{score:.1f}"]
    assert finished[4] in ("kB", "MB")
    assert finished[5] == time.strftime("%Y-%m-%d")
    assert found["paper/some-task/dqn+beta0/seed0"][:2] == ["stopped", "120/250"]
    assert found["paper/some-task/td3/seed0"][0] == "damaged"


def test_runs_are_chosen_by_words_state_and_age(runs):
    assert set(rows(command("runs", "DQN", "seed0", "--runs", runs))) == {
        "paper/some-task/dqn/seed0",
        "paper/some-task/dqn+beta0/seed0",
    }
    stopped = command("runs", "--state", "stopped", "--runs", runs)
    assert set(rows(stopped)) == {"paper/some-task/dqn+beta0/seed0"}
    assert stopped.stdout.splitlines()[-1].startswith("1 run in ")
    for file in (runs / "paper/some-task/td3/seed0").rglob("*"):
        os.utime(file, (0, 0))
    assert set(rows(command("runs", "--older-than", 1, "--runs", runs))) == {"paper/some-task/td3/seed0"}


def test_nothing_is_deleted_without_a_choice_and_a_yes(runs, monkeypatch):
    before = sorted(runs.rglob("*"))
    refused = command("runs", "--delete", "--yes", "--runs", runs)
    assert (refused.returncode, "--delete needs a choice" in refused.stderr) == (2, True)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    asked = command("runs", "td3", "--delete", "--runs", runs)
    assert asked.returncode == 2
    assert "paper/some-task/td3/seed0" in asked.stdout
    assert "add --yes" in asked.stderr
    assert sorted(runs.rglob("*")) == before


def test_delete_removes_the_chosen_run_and_the_folder_that_is_empty_then(runs):
    deleted = command("runs", "td3", "--delete", "--yes", "--runs", runs)
    assert deleted.returncode == 0, deleted.stderr
    assert "paper/some-task/td3/seed0" in deleted.stdout
    assert sorted(path.name for path in (runs / "paper/some-task").iterdir()) == ["dqn", "dqn+beta0"]


def test_a_run_that_is_written_and_a_folder_with_other_files_are_never_deleted(runs):
    path = runs / "paper/some-task/dqn/seed0"
    with RunDirectory(path, read_config(path)):
        assert rows(command("runs", "--state", "finished", "--runs", runs))
        refused = command("runs", "dqn/", "--delete", "--yes", "--runs", runs)
    assert (refused.returncode, "written by another process" in refused.stderr) == (2, True)
    (path / "thesis.tex").write_text("years of work")
    refused = command("runs", "dqn/", "--delete", "--yes", "--runs", runs)
    assert (refused.returncode, "thesis.tex" in refused.stderr) == (2, True)
    assert (path / "thesis.tex").exists()
    assert (path / "config.toml").exists()


def test_the_list_needs_no_torch():
    code = "import sys; from peer_rl.cli import runs; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
