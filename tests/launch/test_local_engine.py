"""Sweeps that are interrupted in every way leave nothing behind and end as if nothing had happened."""

import contextlib
import fcntl
import os
import pty
import re
import signal
import subprocess
import termios
from dataclasses import replace
from pathlib import Path

import pytest
from running import peer_rl, surroundings
from sweeping import (
    assert_same,
    command,
    newest_checkpoints,
    runs_below,
    start,
    training_processes,
    wait_until,
    write_grid,
)

from peer_rl.errors import RunError
from peer_rl.launch import estimate
from peer_rl.launch.engine import conduct, run_jobs
from peer_rl.launch.estimate import PROGRAM_BYTES, estimate_memory
from peer_rl.launch.jobs import Job
from peer_rl.launch.local_engine import LocalEngine
from peer_rl.settings import configure
from peer_rl.training.rundir import read_config, read_json

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")


class Terminal:
    """A command on a terminal of its own, where Ctrl-C can be typed."""

    def __init__(self, words: list[str]) -> None:
        self.screen = b""
        self._master, slave = pty.openpty()
        os.set_blocking(self._master, False)

        def prepare() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored, if the tests themselves run in the background

        options = {"stdin": slave, "stdout": slave, "stderr": slave, "env": surroundings()}
        self.process = subprocess.Popen(words, start_new_session=True, preexec_fn=prepare, **options)
        os.close(slave)

    def read(self) -> bytes:
        with contextlib.suppress(OSError):  # nothing there yet, or closed at the other end
            self.screen += os.read(self._master, 1 << 16)
        return self.screen

    def ended(self) -> bool:
        self.read()
        return self.process.poll() is not None

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)


@pytest.mark.slow
def test_killed_stopped_and_started_again(undisturbed, tmp_path):
    """kill -9 of the sweep, then Ctrl-C at a terminal, then the same command to the end."""
    runs = tmp_path / "runs"
    words = [write_grid(tmp_path), "--runs", runs, "--workers", "2"]
    with start(*words, stderr=subprocess.DEVNULL) as first:
        wait_until(lambda: len(newest_checkpoints(runs)) == 2, "two runs have a checkpoint")
        assert len(training_processes(runs)) == 2
        first.kill()
    wait_until(lambda: not training_processes(runs), "no training outlives its sweep", seconds=30)
    before = newest_checkpoints(runs)
    assert before, "they were stopped in the middle"

    terminal = Terminal(command(*words))
    try:
        wait_until(lambda: terminal.read() and b"steps/s" in terminal.screen, "a bar shows the speed")
        wait_until(
            lambda: terminal.read() and any(newest_checkpoints(runs).get(name, 0) > at for name, at in before.items()),
            "the runs go on from where they were",
        )
        terminal.type(b"\x03")
        wait_until(terminal.ended, "Ctrl-C stops the sweep", seconds=45)
        assert terminal.process.returncode == 130
        assert not training_processes(runs), "Ctrl-C stops the runs too"
        assert b"the same command resumes" in terminal.screen
    finally:
        terminal.close()
    assert newest_checkpoints(runs), "something is left to do"

    result = peer_rl("sweep", *words)
    assert result.returncode == 0, result.stderr
    assert_same(runs, undisturbed)


def test_a_sweep_prints_its_plan_and_each_runs_end(undisturbed):
    said = (undisturbed.parent / "printed.txt").read_text()
    assert "3 runs: 0 done, 3 to do" in said
    ends = re.findall(r"^\[\d/3\] dqn seed(\d): finished, last evaluation", said, re.MULTILINE)
    assert sorted(ends) == ["0", "1", "2"]


def test_a_sweep_that_is_done_does_nothing(undisturbed):
    before = {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*.jsonl")}
    result = peer_rl("sweep", undisturbed.parent / "sweep.toml", "--runs", undisturbed)
    assert "3 runs: 3 done, 0 to do" in result.stderr
    assert {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*.jsonl")} == before


def test_a_failed_run_is_reported_and_the_others_continue(tmp_path):
    (tmp_path / "sweep.toml").write_text(
        'agent = "dqn"\ntasks = ["gym/NoSuchThing-v0", "gridworld/paper"]\nsteps = 50\nstart-steps = 10\n'
    )
    result = peer_rl("sweep", tmp_path / "sweep.toml", "--runs", tmp_path / "runs", "--out", tmp_path / "report")
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    *_, last = result.stderr.strip().splitlines()
    assert last.startswith("peer-rl: 1 of 2 runs failed. dqn+start-steps10+steps50 seed0: cannot make task")
    (log,) = re.findall(r"\(log: (\S+)\)", last)
    assert "NoSuchThing" in Path(log).read_text()
    assert re.search(r"^\[\d/2\] gym-NoSuchThing-v0 .* FAILED: ", result.stderr, re.MULTILINE)
    assert list(runs_below(tmp_path / "runs")) == ["paper/gridworld-paper/dqn+start-steps10+steps50/seed0"]
    assert "gridworld/paper" in (tmp_path / "report/report.html").read_text()


def short_jobs(runs: Path, count: int) -> list[Job]:
    settings = {"steps": 50, "start_steps": 10, "eval_every": 0, "diagnose_every": 0}
    return [Job.of(configure("dqn", "gridworld/paper", seed=seed, **settings), runs) for seed in range(count)]


class Watched(LocalEngine):
    """Counts how many runs there were at a time."""

    most = 0

    def poll(self):
        ended = super().poll()
        self.most = max(self.most, len(self.running()))
        return ended


def test_memory_limits_how_many_run_and_what_cannot_fit_fails_alone(tmp_path, capsys):
    small, also, large = jobs = short_jobs(tmp_path, 3)
    small.memory = also.memory = 2_000_000_000
    large.memory = 9_000_000_000
    engine = Watched(workers=3, available=lambda: 3_000_000_000)
    sentence = r"1 of 3 runs failed. .* seed2: the run needs about 9.0 GB, but this machine has 3.0 GB available"
    with pytest.raises(RunError, match=sentence):
        conduct([large, small, also], engine)
    assert engine.most == 1
    assert [job.finished() for job in jobs] == [True, True, False]
    assert "memory limits how many runs train at a time: 1 for now" in " ".join(capsys.readouterr().err.split())


def test_threads_are_shared_out_unless_workers_are_given():
    engine = LocalEngine()
    engine.cores = 4
    job, wide = (Job.of(configure("dqn", "gridworld/paper", threads=threads), Path("runs")) for threads in (1, 4))
    assert engine._has_worker(wide)
    engine._processes["a"] = (job, None)
    assert engine._has_worker(job)
    assert not engine._has_worker(wide), "four threads and one do not fit on four cores"
    engine.workers = 2
    assert engine._has_worker(wide)
    engine._processes["b"] = (job, None)
    assert not engine._has_worker(job)


def test_the_memory_that_is_foreseen_is_what_the_run_writes_down(undisturbed, tmp_path, monkeypatch):
    """An environment is made to ask; one that cannot be made leaves the base, and its run reports the rest."""
    monkeypatch.setenv("PYTHONPATH", surroundings()["PYTHONPATH"])
    run = next(iter(runs_below(undisturbed).values()))
    written, config = read_json(run / "manifest.json")["replay"]["bytes"], read_config(run)
    jobs = [Job.of(replace(config, seed=seed), tmp_path) for seed in (5, 6)]
    jobs.append(Job.of(replace(config, task="gym/NoSuchThing-v0"), tmp_path))
    estimate_memory(jobs)
    batches = 21 * 4 * config.learning.batch_size * 20  # the grid world has 20 states, shown one-hot
    assert [job.memory for job in jobs] == [
        PROGRAM_BYTES + written + batches,
        PROGRAM_BYTES + written + batches,
        PROGRAM_BYTES,
    ]
    begun = Job.of(config, undisturbed)
    monkeypatch.setattr(estimate.subprocess, "run", None)  # nobody is asked what is written down
    estimate_memory([begun])
    assert begun.memory == jobs[0].memory


class Killing(LocalEngine):
    """Kills what it has started."""

    def poll(self):
        for _, process in self._processes.values():
            process.kill()
        return super().poll()


def test_a_killed_run_is_a_failed_run(tmp_path):
    job = short_jobs(tmp_path, 1)[0]
    with pytest.raises(RunError, match="killed by SIGKILL, perhaps because memory ran out"):
        conduct([job], Killing())


def test_a_place_that_cannot_be_written_fails_the_run_not_the_sweep(tmp_path):
    blocked, free = short_jobs(tmp_path, 2)
    blocked.path.parent.mkdir(parents=True)
    blocked.path.write_text("a file where the run's folder should be")
    with pytest.raises(RunError, match=r"1 of 2 runs failed. .* seed0: cannot write .*seed0 \(File exists\)"):
        run_jobs([blocked, free], workers=1)
    assert free.finished()
