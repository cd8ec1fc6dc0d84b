"""Law 3 for real: kill -9 at random moments, type the same command again, compare every byte."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rendering import HAS_GL
from running import leavings, peer_rl

pytestmark = pytest.mark.slow

_NETWORKS = ["--critic.hidden", "16", "16", "--actor.hidden", "16", "16"]
_SMALL = [*_NETWORKS, "--start-steps", "500", "--batch-size", "32", "--eval-every", "1000", "--eval-episodes", "1"]
_ATARI = ["--start-steps", "100", "--buffer-size", "700", "--update-every", "8", "--eval-every", "0", "--atoms", "11"]
_TINY_ENCODER = ["--encoder.channels", "4", "8", "--encoder.kernels", "5", "3", "--encoder.strides", "3", "2"]
_FRAMES = ["--image-size", "24", "--crop", "20", "--render-quality", "draft", "--max-episode-steps", "40"]
_DMC = ["--start-steps", "100", "--buffer-size", "300", "--batch-size", "8", "--latent", "8", "--update-every", "3"]
_DMC += ["--eval-every", "250", "--eval-episodes", "1"]
_MODEL = ["--start-steps", "125", "--pretrain", "20", "--batch-size", "16", "--hidden", "16", "--encoder-hidden", "16"]
_MODEL += ["--latent", "8", "--planner.horizon", "2", "--planner.samples", "16", "--planner.elites", "4"]
_MODEL += ["--planner.iterations", "1", "--schedule-steps", "300", "--eval-every", "400", "--eval-episodes", "1"]
_WORLD = ["--start-steps", "125", "--pretrain", "10", "--update-every", "10", "--batch-size", "4", "--units", "16"]
_WORLD += ["--sequence-length", "7", "--rssm.belief", "16", "--rssm.hidden", "16", "--rssm.variables", "4"]
_WORLD += ["--rssm.classes", "4", "--imagined-steps", "4", "--eval-every", "400", "--eval-episodes", "1"]
COMMANDS = {
    "grid world": (5, 12_000, ["dqn", "--task", "gridworld/paper"]),
    "PyBullet": (1, 2_500, ["td3", "--task", "pybullet/hopper", *_SMALL]),
    "MuJoCo": (1, 2_500, ["sac", "--task", "mujoco/hopper", *_SMALL]),
    "planning": (2, 900, ["td-mpc", "--task", "dmc/cartpole-swingup", *_MODEL]),
    "imagination": (1, 900, ["dreamer-v2", "--task", "dmc/cartpole-swingup", "--action-repeat", "8", *_WORLD]),
    "Atari": (1, 1_400, ["curl-rainbow", "--task", "atari/boxing", "--max-episode-steps", "90", *_ATARI]),
    "DMControl from pixels": (
        1,
        500,
        ["curl-sac", "--task", "dmc/cartpole-swingup", *_NETWORKS, *_TINY_ENCODER, *_FRAMES, *_DMC],
    ),
}
"""Kills, steps and command."""
draws = pytest.mark.skipif(not HAS_GL, reason="no GL library: apt-get install libosmesa6")


def start(command: list[str], runs: Path) -> subprocess.Popen:
    arguments = [*command, "--runs", str(runs), "--checkpoint-seconds", "0.2"]
    return subprocess.Popen([sys.executable, "-m", "peer_rl", *arguments], stdout=subprocess.DEVNULL)


def newest(runs: Path) -> int:
    """Step of the newest checkpoint of the one run below ``runs``."""
    return max((int(path.name) for path in runs.rglob("checkpoint/*") if path.name.isdigit()), default=0)


def the_run(runs: Path) -> Path:
    (config,) = runs.rglob("config.toml")
    return config.parent


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=draws) if "pixels" in name else name for name in COMMANDS],
)
def test_kill_9_at_random_moments(tmp_path, name):
    """Each kill comes a random moment after a new checkpoint, so that some of the run is lost and played again."""
    kills, steps, words = COMMANDS[name]
    command = ["train", *words, "--steps", str(steps), "--seed", "7", "--quiet"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert peer_rl(*command, "--runs", whole).returncode == 0
    dice, killed_at = random.Random(0), []
    for _ in range(kills):
        before, process = newest(broken), start(command, broken)
        deadline = time.monotonic() + 240
        while newest(broken) <= before and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(dice.uniform(0.0, 0.5))
        assert process.poll() is None, "the run ended before it could be killed; make it longer"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        killed_at.append(newest(broken))
    assert killed_at == sorted(set(killed_at)), "every start continued from where the one before it was"
    assert killed_at[-1] < steps
    assert start(command, broken).wait(timeout=240) == 0
    assert leavings(the_run(broken)) == leavings(the_run(whole))
