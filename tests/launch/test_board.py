"""What people see of many runs, with and without a terminal."""

import io
import json
import re

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
    assert lines[0] == "all of them: pybullet-hopper, td3, steps1000"
    assert lines[4:] == [
        "  td3 seed0: 580/1000 steps, 20 steps/s, 0:00:21 left, return 12.3",
        "  td3 seed1: waiting: for a core",
        "all runs: 19 %, 0 of 3 ended, 2 running, 0:02:05 left",
        "[1/3] td3 seed0: finished, last evaluation 5.0",
    ]
    assert lines[3] == "all runs: 9 %, 0 of 3 ended, 2 running, 0:02:26 left"


def test_on_a_terminal_a_bar_for_each_run_and_one_for_all(clock, jobs):
    screen = io.StringIO()
    with Board(jobs, Console(file=screen, force_terminal=True, width=110, color_system=None)) as board:
        play(board, clock, jobs)
    *_, everything, first, second = (line for line in screen.getvalue().splitlines() if "seed" in line or "all" in line)
    assert "20 %, 0 of 3 ended" in everything
    assert "20 steps/s" in first
    assert "600/1000 steps, return 12.3" in first
    assert "waiting: for a core" in second


def test_a_damaged_status_does_not_stop_the_board(clock, jobs):
    advance(jobs[0], 10)
    (jobs[0].path / "status.json").write_text("{")
    with Board(jobs, Console(file=io.StringIO())) as board:
        board.update(jobs)
    assert not jobs[0].finished()
    assert jobs[0].share() == 0


def test_names_hold_only_what_differs(tmp_path):
    def jobs(*variants):
        return [Job.of(configure(agent, task, **given), tmp_path) for agent, task, given in variants]

    two = jobs(("td3", "pybullet/ant", {"steps": 9}), ("td3", "pybullet/ant", {"steps": 9, "beta": 0}))
    names, shared = module.name_apart(two)
    assert list(names.values()) == ["td3 seed0", "beta0 seed0"]
    assert shared == "pybullet-ant, td3, steps9, seed0"
    apart = jobs(("td3", "pybullet/ant", {}), ("sac", "pybullet/hopper", {"gamma": 0.9}))
    assert list(module.name_apart(apart)[0].values()) == [
        "pybullet-ant td3 seed0",
        "pybullet-hopper sac+gamma0.9 seed0",
    ]
    (only,) = module.name_apart(two[:1])[0].values()
    assert only == "pybullet-ant td3+steps9 seed0"


@pytest.mark.parametrize(
    ("log", "complaint"),
    [
        ("", "it printed nothing"),
        ("a line\npeer-rl: gamma is 2\n", "gamma is 2"),
        ("a line\nand one more\n", "and one more"),
        (
            'Traceback (most recent call last):\n  File "a.py", line 3, in make\n    env.step()\n    ^^^^^^^^^^\n'
            "ValueError: two\n  lines\nof it\n",
            "ValueError: two lines of it",
        ),
        (
            "Traceback (most recent call last):\n  a\nKeyError: 1\n\nDuring handling ...\n\n"
            "Traceback (most recent call last):\n  b\nRuntimeError: 2\n",
            "RuntimeError: 2",
        ),
        (
            "Traceback (most recent call last):\n  a\nKeyError: 1\npeer-rl: cannot write\n",
            "cannot write",
        ),
    ],
)
def test_a_failed_job_says_why(jobs, log, complaint):
    job = jobs[0]
    job.path.mkdir(parents=True)
    job.log.write_text(log)
    assert job.complaint() == complaint


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("label", ["td3 seed0", "td3 pybullet/half-cheetah beta=0.0005 seed=12"])
def test_bar_speed_and_time_left_stay_at_every_width_and_the_end_goes_first(width, label):
    last = "return 1234.5, eval 2345.6, cos 0.987, DRD -0.012"
    screen = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    bar = module.make_bar(screen)
    texts = module.fit(width, label, "1234 steps/s", "250000/1000000 steps", last)
    task = bar.add_task(total=1_000_000, completed=0, **texts)
    bar.tasks[task].start_time = bar.get_time() - 10
    bar.update(task, completed=900_000)
    with screen.capture() as shown:
        screen.print(bar.get_renderable())
    (line,) = shown.get().splitlines()
    assert len(line.rstrip()) <= width
    assert "━" * 8 in line
    assert "1234 steps/s" in line
    assert re.search(r"\d:\d\d|-:--", line), "the time left"
    assert line.split()[0] == "td3"
    assert label.split()[-1] in line
    short = label == "td3 seed0"
    assert ("250000/1000000 steps" in line) == (width > 80 or (width == 80 and short))
    assert ("return 1234.5" in line) == (width == 200 or (width == 120 and short))
    assert ("DRD -0.012" in line) == (width == 200)
    assert "…" not in line or (width <= 80 and not short)
