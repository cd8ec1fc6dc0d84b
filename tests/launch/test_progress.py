"""What people see while a run trains."""

import io
import math

import pytest
from rich.console import Console
from running import Clock, tiny_config

from peer_rl.launch import progress as module
from peer_rl.launch.api import train
from peer_rl.launch.progress import RecentSpeed, TrainingBar
from peer_rl.training.files import read_json_lines
from peer_rl.training.recorder import Progress


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def play(bar: TrainingBar, clock: Clock, progress: Progress, *, seconds: int, per_second: int) -> None:
    for _ in range(4 * seconds):
        clock.now += 0.25
        progress.step += per_second // 4
        bar.show(progress)


def test_the_recent_speed_forgets_the_random_phase():
    speed = RecentSpeed(seconds=10.0)
    assert math.isnan(speed.per_second())
    for second in range(31):  # a thousand steps a second until second 15, then ten
        speed.add(second, 1000 * min(second, 15) + 10 * max(0, second - 15))
    assert speed.per_second() == pytest.approx(10.0)


def test_a_pause_longer_than_the_window_leaves_a_speed():
    speed = RecentSpeed(seconds=10.0)
    for second in (0, 1, 2, 102):
        speed.add(second, 50 * second if second < 100 else 200)
    assert speed.per_second() == pytest.approx(1.0)


def test_the_first_moments_show_no_speed():
    speed = RecentSpeed()
    speed.add(0.0, 7)
    speed.add(0.4, 9)
    assert math.isnan(speed.per_second())


def test_lines_show_recent_speed_time_left_and_the_last_results(capsys, clock):
    """1,000 random steps a second for a minute, then 20 a second: 10,000 steps are left, and 500 s."""
    progress = Progress("steps", total=71_800)
    with TrainingBar("a run") as bar:
        play(bar, clock, progress, seconds=60, per_second=1000)
        progress.evaluation, progress.cosine, progress.drd = 12.34, 0.5, -0.25
        play(bar, clock, progress, seconds=100, per_second=20)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("a run: 15000/71800 steps, 1000 steps/s, 0:00:57 left")
    assert "return" not in lines[0], "no episode has ended yet"
    assert lines[-1].startswith("a run: 61800/71800 steps, 20 steps/s, 0:08:20 left, eval 12.3, cos 0.500, DRD -0.250")
    assert 9 <= len(lines) <= 11, "a line every 15 s"


def test_time_left_counts_episodes_where_the_budget_does(capsys, clock):
    progress = Progress("episodes", total=100)
    with TrainingBar("a run") as bar:
        for _ in range(20):
            progress.episode += 2
            play(bar, clock, progress, seconds=1, per_second=52)
    assert capsys.readouterr().err.startswith("a run: 30/100 episodes, 52 steps/s, 0:00:37 left")


def test_a_stalled_run_shows_no_time_left(capsys, clock):
    progress = Progress("steps", total=100)
    with TrainingBar("a run") as bar:
        play(bar, clock, progress, seconds=16, per_second=0)
    assert "0 steps/s, time left unknown" in capsys.readouterr().err


def test_an_evaluation_is_shown_and_does_not_count_as_slow_training(capsys, clock):
    progress = Progress("steps", total=1000)
    with TrainingBar("a run") as bar:
        play(bar, clock, progress, seconds=14, per_second=20)
        progress.note = "final evaluation 37/100"
        play(bar, clock, progress, seconds=90, per_second=0)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 6
    assert all(line == "a run: 280/1000 steps, 20 steps/s, 0:00:36 left, final evaluation 37/100" for line in lines)


def test_quiet_says_nothing(capsys, clock):
    with TrainingBar("a run", quiet=True) as bar:
        play(bar, clock, Progress("steps", total=100), seconds=60, per_second=4)
    assert capsys.readouterr().err == ""


def test_the_bar_shows_the_same(clock):
    bar = TrainingBar("a run")
    bar.console = Console(file=io.StringIO(), force_terminal=True, width=160)
    progress = Progress("steps", total=1000, last_return=-3.0, evaluation=12.34, cosine=0.5, drd=-0.25)
    with bar:
        play(bar, clock, progress, seconds=2, per_second=100)
    shown = bar.console.file.getvalue()
    for words in ("200/1000 steps", "100 steps/s", "return -3.0, eval 12.3, cos 0.500, DRD -0.250"):
        assert words in shown
    assert bar._bar.speed_estimate_period == 30.0


def test_a_run_shows_its_latest_diagnostics(tmp_path):
    """The numbers on the bar are those of the last line of diagnostics.jsonl."""
    seen = []
    run = train(tiny_config("dqn"), runs=tmp_path, show=lambda progress: seen.append((progress.cosine, progress.drd)))
    last = read_json_lines(run / "diagnostics.jsonl")[-1]
    assert seen[-1] == (last["cosine"], last["drd"])


def test_a_plan_is_printed_once_above_the_bar_or_as_a_line_of_its_own(capsys, clock):
    progress = Progress("steps", total=1000, plan="the replay grows to 5 frames")
    with TrainingBar("a run") as bar:
        play(bar, clock, progress, seconds=2, per_second=4)
    assert capsys.readouterr().err == "a run: the replay grows to 5 frames\n"
    bar = TrainingBar("a run")
    bar.console = Console(file=io.StringIO(), force_terminal=True, width=40)
    with bar:
        play(bar, clock, progress, seconds=2, per_second=4)
    assert bar.console.file.getvalue().count("a run: the replay grows to 5 frames") == 1
    with TrainingBar("a run", quiet=True) as bar:
        play(bar, clock, progress, seconds=2, per_second=4)
    assert capsys.readouterr().err == ""
