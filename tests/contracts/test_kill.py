"""Law 3 for real: kill -9 at random moments, type the same command again, compare every byte."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import leavings, peer_rl

COMMAND = ["train", "dqn", "--task", "gridworld/paper", "--steps", "12000", "--seed", "7", "--quiet"]
RUN = Path("paper/gridworld-paper/dqn+steps12000/seed7")


def start(runs: Path) -> subprocess.Popen:
    arguments = [*COMMAND, "--runs", str(runs), "--checkpoint-seconds", "0.2"]
    return subprocess.Popen([sys.executable, "-m", "peer_rl", *arguments], stdout=subprocess.DEVNULL)


def newest(run: Path) -> int:
    folder = run / "checkpoint"
    return max((int(p.name) for p in folder.iterdir() if p.name.isdigit()), default=0) if folder.exists() else 0


@pytest.mark.parametrize("kills", [5])
def test_kill_9_at_random_moments(tmp_path, kills):
    """Each kill comes a random moment after a new checkpoint, so that some of the run is lost and played again."""
    whole = tmp_path / "whole"
    assert peer_rl(*COMMAND, "--runs", whole).returncode == 0
    dice = random.Random(0)
    broken, killed_at = tmp_path / "broken", []
    for _ in range(kills):
        before, process = newest(broken / RUN), start(broken)
        deadline = time.monotonic() + 60
        while newest(broken / RUN) <= before and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(dice.uniform(0.0, 0.5))
        assert process.poll() is None, "the run ended before it could be killed; make it longer"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        killed_at.append(newest(broken / RUN))
    assert killed_at == sorted(set(killed_at)), "every start went on from where the one before it was"
    assert killed_at[-1] < 12_000
    assert start(broken).wait(timeout=60) == 0
    assert leavings(broken / RUN) == leavings(whole / RUN)
