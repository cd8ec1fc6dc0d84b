"""What people see of many runs, with and without a terminal."""

import io
import json

import pytest
from rich.console import Console
from running import Clock

from peer_rl.launch import progress as module
from peer_rl.launch.jobs import Job
from peer_rl.launch.progress import Board
from peer_rl.settings import configure


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def jobs(tmp_path):
    return [Job.of(configure("td3", "pybullet/hopper", seed=seed, steps=1000), tmp_path) for seed in range(3)]


def advance(job: Job, step: int, returned: float | None = None) -> None:
    job.path.mkdir(parents=True, exist_ok=True)
    status = {"state": "running", "step": step, "done": step, "total": 1000, "unit": "steps", "last_return": returned}
    (job.path / "status.json").write_text(json.dumps(status))


def play(board: Board, clock: Clock, jobs: list[Job]) -> None:
    """The first job trains 20 steps a second, the second waits for something, the third has not begun."""
    for second in range(31):
        clock.now += 1
        advance(jobs[0], 20 * second, None if second < 5 else 12.34)
        board.update(jobs[:2], {jobs[1].title: "waiting: for a core"})


def test_without_a_terminal_a_line_for_each_run_and_one_for_all(clock, jobs):
    screen = io.StringIO()
    with Board(jobs, Console(file=screen)) as board:
        play(board, clock, jobs)
        board.end(jobs[0], "finished, last evaluation 5.0")
    lines = screen.getvalue().splitlines()
    assert lines[3:] == [
        "  pybullet-hopper td3+steps1000 seed0: 580/1000 steps, 20 steps/s, 0:00:21 left, return 12.3",
        "  pybullet-hopper td3+steps1000 seed1: waiting: for a core",
        "all runs: 19 %, 0 of 3 ended, 2 running, 0:02:05 left",
        "[1/3] pybullet-hopper td3+steps1000 seed0: finished, last evaluation 5.0",
    ]
    assert lines[2] == "all runs: 9 %, 0 of 3 ended, 2 running, 0:02:26 left"


def test_on_a_terminal_a_bar_for_each_run_and_one_for_all(clock, jobs):
    screen = io.StringIO()
    with Board(jobs, Console(file=screen, force_terminal=True, width=110, color_system=None)) as board:
        play(board, clock, jobs)
    *_, everything, first, second = (line for line in screen.getvalue().splitlines() if "seed" in line or "all" in line)
    assert "20/100 %" in everything
    assert "0 of 3 ended" in everything
    assert "600/1000 steps 20 steps/s" in first
    assert "return 12.3" in first
    assert "waiting: for a core" in second


def test_a_damaged_status_does_not_stop_the_board(clock, jobs):
    advance(jobs[0], 10)
    (jobs[0].path / "status.json").write_text("{")
    with Board(jobs, Console(file=io.StringIO())) as board:
        board.update(jobs)
    assert not jobs[0].finished()
    assert jobs[0].share() == 0


def test_long_names_leave_room_for_numbers(tmp_path):
    wordy = {"batch_size": 32, "buffer_size": 5000, "eval_every": 50, "start_steps": 10}
    job = Job.of(configure("td3", "pybullet/hopper", seed=12, **wordy), tmp_path)
    assert len(job.title) > 60
    short = module._shorten(job, 30)
    assert len(short) == 30
    assert short.startswith("pybullet-hopper td3+")
    assert short.endswith("… seed12")
