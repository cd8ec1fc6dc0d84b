"""``peer-rl reproduce``: runs what is missing, survives being stopped, reports."""

import json
import signal
import subprocess
import sys
import time

import pytest
from running import leavings, peer_rl

from peer_rl.errors import RunError
from peer_rl.experiments.catalogue import CATALOGUE
from peer_rl.experiments.plan import Choice, make_plan
from peer_rl.experiments.pool import Pool

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


def test_a_second_time_runs_nothing_and_reports_the_same(reproduced):
    _, folder = reproduced
    page = (folder / "report/gridworld/report.html").read_bytes()
    result = peer_rl(*COMMAND, cwd=folder)
    assert "gridworld, profile smoke: 4 runs, 4 done, 0 to do" in result.stdout
    assert (folder / "report/gridworld/report.html").read_bytes() == page


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
        assert b"the same command goes on" in process.stderr.read()
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
    with pytest.raises(RunError, match=r"1 of 2 runs failed. dqn\+beta0 seed0: peer-rl: gamma must be in"):
        Pool(jobs, 2).run()
    assert jobs[1].finished()
