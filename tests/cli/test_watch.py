"""peer-rl watch, as a user types it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rendering import read
from running import command, tiny_run

from peer_rl.launch.api import load, train
from peer_rl.settings import configure

FEW = {"steps": 60, "start_steps": 50, "batch_size": 8, "eval_every": 0}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return tiny_run("dqn", tmp_path_factory.mktemp("runs"))


def contents(run: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and "videos" not in path.parts}


@pytest.fixture
def watch():
    """The command: exit code, output, errors."""

    def call(*arguments: object) -> tuple[int, str, str]:
        done = command("watch", *arguments)
        return done.returncode, done.stdout, done.stderr

    return call


def complaint(code: int, out: str, err: str) -> str:
    assert (code, out) == (2, "")
    lines = [line for line in err.splitlines() if not line.startswith("recording ")]
    assert len(lines) == 1, err
    return lines[0]


def test_the_video_shows_what_evaluation_plays(run):
    before = contents(run)
    result = command("watch", run, "--episodes", 2, "--seed", 7)
    assert result.returncode == 0, result.stderr
    video = run / "videos" / "step-300.mp4"
    assert result.stdout.splitlines()[-1] == f"video: {video}"
    assert result.stderr == "recording dqn on gridworld/paper ...\n"
    expected = load(run).evaluate(2, seed=7)
    said = re.findall(r"return (\S+), length (\d+) steps", result.stdout)
    assert said == [(f"{r:.2f}", f"{n}") for r, n in zip(expected.returns, expected.lengths, strict=True)]
    meta, frames = read(video)
    assert (meta["size"], meta["fps"]) == ((160, 128), 4)
    assert len(frames) == sum(expected.lengths) + 2 > 1
    assert (frames[0] != frames[1]).any()
    assert contents(run) == before


def test_the_seed_chooses_the_episodes(tmp_path, watch):
    """Here, unlike in the grid world, an episode's return depends on its seed."""
    run = train(configure("dqn", "toy_envs:drawn", **FEW), runs=tmp_path)
    policy = load(run)
    said = [re.findall(r"return (\S+),", watch(run, "--episodes", 20, "--seed", seed)[1]) for seed in (7, 8)]
    assert said == [[f"{r:.2f}" for r in policy.evaluate(20, seed=seed).returns] for seed in (7, 8)]
    assert said[0] != said[1]


def test_pygame_draws_without_a_screen_and_without_a_word(tmp_path):
    """The task of the first page, in a process of its own: what pygame's C code prints is printed once."""
    run = train(configure("dqn", "gym/CartPole-v1", **FEW), runs=tmp_path)
    bare = {name: value for name, value in os.environ.items() if not re.match("SDL|XDG|DISPLAY|WAYLAND", name)}
    words = [sys.executable, "-m", "peer_rl", "watch", run]
    done = subprocess.run(words, capture_output=True, text=True, env=bare)
    assert (done.returncode, done.stderr) == (0, "recording dqn on gym/CartPole-v1 ...\n")
    assert read(run / "videos" / "step-60.mp4")[0]["size"] == (600, 400)


def test_options(run, tmp_path, watch):
    out = tmp_path / "new" / "video.mp4"
    code, said, _ = watch(run, "--max-steps", 3, "--fps", 10, "--out", out)
    assert code == 0
    assert "length 3 steps" in said
    meta, frames = read(out)
    assert (meta["fps"], len(frames)) == (10, 4)


def test_what_is_wrong_is_said_in_one_line(run, tmp_path, watch):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder.mp4").mkdir()
    assert "is not a run directory" in complaint(*watch(tmp_path / "nothing"))
    assert "episodes must be above 0" in complaint(*watch(run, "--episodes", 0))
    assert "fps must be above 0" in complaint(*watch(run, "--fps", 0))
    assert "must end in .mp4" in complaint(*watch(run, "--out", tmp_path / "video.avi"))
    for place in (tmp_path / "file" / "video.mp4", tmp_path / "folder.mp4"):
        said = complaint(*watch(run, "--out", place))
        assert f"cannot write the video {place}" in said
        assert "choose another place with --out" in said
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder.mp4"]


@pytest.mark.parametrize(
    ("blocked", "task", "words"),
    [
        (
            "imageio_ffmpeg",
            "gridworld/paper",
            "recording needs imageio-ffmpeg; install it with: pip install 'peer-rl[video]'",
        ),
        ("pygame", "gym/CartPole-v1", "drawing needs pygame; install it with: pip install 'peer-rl[video]'"),
    ],
)
def test_a_missing_package_names_the_pip_line(blocked, task, words, tmp_path, monkeypatch, watch):
    run = train(configure("dqn", task, **FEW), runs=tmp_path)
    monkeypatch.setitem(sys.modules, blocked, None)
    assert words in complaint(*watch(run))
    assert not list(tmp_path.rglob("*.mp4"))
