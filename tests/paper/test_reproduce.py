"""``peer-rl reproduce``: runs what is missing, survives being stopped, reports."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import leavings, peer_rl

from peer_rl.errors import RunError
from peer_rl.launch.engine import run_jobs
from peer_rl.launch.estimate import find_paces
from peer_rl.paper.catalogue import CATALOGUE
from peer_rl.paper.plan import Choice, make_plan
from peer_rl.settings import configure

COMMAND = ["reproduce", "gridworld", "--profile", "smoke", "--seeds", "2", "--betas", "0.01", "--workers", "2"]
VARIANTS = ("dqn+beta0", "dqn+beta0.01")


def gridworld_jobs(runs, profile="paper", **choice):
    return make_plan(CATALOGUE["gridworld"], Choice(profile, **choice), runs).jobs


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduced")
    result = peer_rl(*COMMAND, cwd=folder)
    assert result.returncode == 0, result.stderr
    return result, folder


@pytest.mark.slow
def test_from_nothing_to_a_report(reproduced):
    result, folder = reproduced
    assert "4 runs: 0 done, 4 to do, 2 at a time" in result.stderr
    for variant in VARIANTS:
        for seed in (0, 1):
            run = folder / "runs/smoke/gridworld-paper" / variant / f"seed{seed}"
            assert json.loads((run / "status.json").read_text())["state"] == "finished"
    report = folder / "report/gridworld"
    assert (report / "figure3.png").stat().st_size > 20_000
    page = (report / "report.html").read_text()
    assert "DQN against PEER in the grid world" in page
    assert str(report.relative_to(folder) / "report.html") in result.stdout


@pytest.mark.slow
def test_a_second_time_runs_nothing_and_reports_the_same(reproduced):
    _, folder = reproduced
    page = (folder / "report/gridworld/report.html").read_bytes()
    result = peer_rl(*COMMAND, cwd=folder)
    assert "gridworld, profile smoke: 4 runs, 4 done, 0 to do" in result.stdout
    assert (folder / "report/gridworld/report.html").read_bytes() == page


@pytest.mark.slow
def test_stopped_half_way_and_started_again_no_run_is_missing_or_different(reproduced, tmp_path):
    _, folder = reproduced
    command = [sys.executable, "-m", "peer_rl", *COMMAND]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.rglob("manifest.json"))) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)  # SIGINT is ignored where the tests themselves run in the background
        assert process.wait(timeout=30) == 130
        assert b"the same command resumes" in process.stderr.read()
    assert peer_rl(*COMMAND, cwd=tmp_path).returncode == 0
    for variant in VARIANTS:
        run = f"runs/smoke/gridworld-paper/{variant}/seed1"
        assert leavings(tmp_path / run) == leavings(folder / run)


def test_both_sides_have_the_same_seeds_and_the_plain_backbone_is_always_there(tmp_path):
    jobs = gridworld_jobs(tmp_path, seeds=3, betas=(5e-4, 1e-2))
    by_beta = {beta: {j.config.seed for j in jobs if j.config.beta == beta} for beta in (0.0, 5e-4, 1e-2)}
    assert by_beta == {beta: {0, 1, 2} for beta in (0.0, 5e-4, 1e-2)}


def test_a_failed_run_is_named_and_does_not_stop_the_others(tmp_path):
    jobs = [job for job in gridworld_jobs(tmp_path, "smoke", seeds=2) if job.config.beta == 0]
    jobs[0].arguments += ["--gamma", "7"]
    with pytest.raises(RunError, match=r"1 of 2 runs failed. dqn\+beta0 seed0: gamma must be in"):
        run_jobs(jobs, workers=2)
    assert jobs[1].finished()


TABLE1 = ["reproduce", "table1", "--profile", "smoke", "--seeds", "1", "--agents", "td3", "--workers", "1"]


def finished(run):
    status = run / "status.json"
    return status.exists() and json.loads(status.read_text())["state"] == "finished"


def kill_all(command, folder):
    """SIGKILL for the command and for every training of it, as a machine that loses its power."""
    command.kill()
    command.wait()
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and process.name != str(os.getpid()):
            with contextlib.suppress(OSError):
                words = (process / "cmdline").read_bytes().split(b"\0")
                if (process / "cwd").resolve() == folder and b"train" in words:
                    os.kill(int(process.name), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds the runs in /proc")
def test_table1_killed_half_way_and_started_again_does_no_run_twice_and_misses_none(tmp_path):
    folder = tmp_path.resolve()
    runs = [folder / "runs/smoke/pybullet-hopper" / name / "seed0" for name in ("td3", "td3+beta0")]
    with subprocess.Popen(
        [sys.executable, "-m", "peer_rl", *TABLE1], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as command:
        deadline = time.monotonic() + 300
        while not (finished(runs[0]) and (runs[1] / "manifest.json").exists()):
            assert time.monotonic() < deadline
            assert command.poll() is None
            time.sleep(0.02)
        kill_all(command, folder)
    assert not finished(runs[1])
    done = {path: path.read_bytes() for path in sorted(runs[0].rglob("*")) if path.is_file()}
    command = [sys.executable, "-m", "peer_rl", *TABLE1]
    again = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400)
    assert again.returncode == 0, again.stderr
    assert "table1, profile smoke: 2 runs, 1 done, 1 to do" in again.stdout
    assert {path: path.read_bytes() for path in sorted(runs[0].rglob("*")) if path.is_file()} == done
    for run in runs:
        assert finished(run)
        assert [json.loads(line)["step"] for line in (run / "eval.jsonl").read_text().splitlines()] == [500, 1000]
    page = (folder / "report/table1/report.html").read_text()
    assert "Paper against ours: table1, profile smoke" in page
    assert "NOT comparable" in page
    assert "2,106 ± 164 (best)" in page
    assert len(list(folder.rglob("config.toml"))) == 2


def test_more_than_an_hour_is_asked_for(tmp_path):
    slow = tmp_path / "runs/paper/gridworld-paper/dqn/seed9"
    slow.mkdir(parents=True)
    (slow / "timing.jsonl").write_text(json.dumps({"step": 30, "seconds": 300.0, "steps_per_second": 0.1}) + "\n")
    result = peer_rl("reproduce", "gridworld", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.strip().splitlines()[-1].startswith("peer-rl: this takes about")
    assert "add --yes" in result.stderr
    assert "dqn on gridworld: 10000.0 ms a step, from 1 run in runs" in result.stdout
    assert "memory: up to" in result.stdout
    assert "disk: up to" in result.stdout
    assert not list(tmp_path.rglob("config.toml"))


def test_the_report_comes_even_if_every_run_fails(tmp_path):
    (tmp_path / "runs/smoke").mkdir(parents=True)
    (tmp_path / "runs/smoke/gridworld-paper").write_text("not a folder")
    result = peer_rl("reproduce", "gridworld", "--profile", "smoke", "--seeds", "1", cwd=tmp_path)
    assert result.returncode == 2
    assert "0 of 3 planned runs finished" in result.stdout
    assert "missing" in (tmp_path / "report/gridworld/report.html").read_text()


def test_a_pace_is_measured_from_a_real_run():
    config = configure("dqn", "gridworld/paper", profile="small")
    (pace,) = find_paces([config], Path("nowhere")).values()
    assert pace.source == "measured just now"
    assert 1e-5 < pace.train_seconds < 1
    assert 1e-6 < pace.play_seconds < 1
    assert pace.seconds(config) > 500 * 10 * pace.train_seconds * 0.99
