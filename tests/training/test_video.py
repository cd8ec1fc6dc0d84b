"""Videos: what is written can be read back and shows what was played."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rendering import HAS_GL, read

from peer_rl.envs import headless
from peer_rl.envs.make import make_env
from peer_rl.errors import ConfigError, RunError
from peer_rl.settings.tasks import find_task
from peer_rl.training.video import Video, record


def write_video(out: Path, images: list[np.ndarray]) -> None:
    with Video(out, fps=10) as video:
        for picture in images:
            video.add(picture)


def record_random(task: str, out: Path, **options):
    """A seeded random policy, recorded."""
    with make_env(find_task(task), render_mode="rgb_array") as env:
        return record(env, random_policy(env), seeds=[5, 6], out=out, **options)


def random_policy(env):
    rng, space = np.random.default_rng(0), env.action_space
    return lambda observation, first: rng.uniform(space.low, space.high).astype(np.float32)


def play(task: str, limit: int) -> list[float]:
    """The same policy without a camera."""
    env, returns = make_env(find_task(task)), []
    act = random_policy(env)
    for seed in (5, 6):
        observation, _ = env.reset(seed=seed)
        total, over, left = 0.0, False, limit
        while not over and left:
            observation, reward, terminated, truncated, _ = env.step(act(observation, False))
            total, over, left = total + float(reward), terminated or truncated, left - 1
        returns.append(total)
    return returns


def check(out: Path, task: str, size: tuple[int, int], fps: float) -> None:
    recorded, plain = record_random(task, out, max_steps=25), play(task, limit=25)
    meta, frames = read(out)
    assert recorded.returns == plain
    assert len(frames) == sum(recorded.lengths) + 2
    assert (meta["size"], meta["fps"], meta["pix_fmt"].split("(")[0]) == (size, fps, "yuv420p")
    assert (frames[0] != frames[10]).any()
    assert not list(out.parent.glob(".*"))


def test_pybullet_is_recorded_without_gl_and_plays_as_it_does_unrecorded(tmp_path):
    check(tmp_path / "hopper.mp4", "pybullet/hopper", (320, 240), 60)


@pytest.mark.skipif(not HAS_GL, reason="no GL library: apt-get install libosmesa6")
def test_mujoco_is_recorded_without_a_screen(tmp_path):
    """In a process of its own, because MuJoCo's backend is chosen once."""
    code = (
        "import sys; from pathlib import Path; import test_video\n"
        "test_video.check(Path(sys.argv[1]), 'mujoco/half-cheetah', (480, 480), 20)"
    )
    env = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL")}
    here = Path(__file__).parent
    env["PYTHONPATH"] = os.pathsep.join([str(here), str(here.parent), env.get("PYTHONPATH", "")])
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path / "cheetah.mp4")]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["cheetah.mp4"]


@pytest.mark.skipif(not HAS_GL, reason="no GL library: apt-get install libosmesa6")
def test_the_doctor_can_draw_where_we_can():
    assert headless.try_drawing() == ""


def test_an_odd_size_is_made_even_and_the_images_stay(tmp_path):
    out = tmp_path / "deep" / "drawn.mp4"
    with make_env(find_task("toy_envs:drawn"), render_mode="rgb_array") as env:
        result = record(env, lambda observation, first: 0, seeds=[1, 2, 3], out=out, fps=5)
    meta, frames = read(out)
    assert meta["size"] == (48, 34)
    assert meta["fps"] == 5
    assert len(frames) == 6 == 2 * len(result.returns)


def test_the_colours_come_back(tmp_path):
    frame = np.zeros((32, 64, 3), np.uint8)
    frame[:, :32] = (220, 50, 47)
    write_video(tmp_path / "colours.mp4", [frame] * 5)
    _, frames = read(tmp_path / "colours.mp4")
    assert abs(frames[2, 4:28, 4:28].astype(int) - (220, 50, 47)).max() < 12
    assert frames[2, 4:28, 36:60].max() < 12


def test_a_failure_half_way_leaves_the_old_video_and_nothing_else(tmp_path):
    out = tmp_path / "video.mp4"
    out.write_bytes(b"old")

    def fails(observation, first):
        raise KeyboardInterrupt

    with make_env(find_task("gridworld/paper"), render_mode="rgb_array") as env, pytest.raises(KeyboardInterrupt):
        record(env, fails, seeds=[0], out=out)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("video.mp4", b"old")]


def test_what_cannot_be_drawn_says_why(tmp_path):
    with pytest.raises(ConfigError, match="let its factory take render_mode"):
        make_env(find_task("toy_envs:choice"), render_mode="rgb_array")
    env = make_env(find_task("toy_envs:not_drawn"), render_mode="rgb_array")
    with pytest.raises(ConfigError, match="must return an array of bytes, height x width x 3, but returned NoneType"):
        record(env, lambda observation, first: 0, seeds=[0], out=tmp_path / "video.mp4")
    assert not list(tmp_path.iterdir())


def test_images_that_change_their_size_are_refused(tmp_path):
    images = [np.zeros((32, width, 3), np.uint8) for width in (32, 48)]
    with pytest.raises(ConfigError, match="change their size"):
        write_video(tmp_path / "video.mp4", images)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_reported_and_leaves_nothing(small_disk):
    disk = small_disk("64k")
    rng = np.random.default_rng(0)
    images = [rng.integers(256, size=(128, 128, 3), dtype=np.uint8) for _ in range(60)]
    with pytest.raises(RunError, match=r"cannot write the video .*is the disk full\?"):
        write_video(disk / "video.mp4", images)
    assert not list(disk.iterdir())


BACKEND = (
    "from peer_rl.envs.headless import choose_backend; import os; print(choose_backend(), os.environ.get('MUJOCO_GL'))"
)


def chosen(**environment: str) -> str:
    ours = ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL")
    env = {name: value for name, value in os.environ.items() if name not in ours} | environment
    return subprocess.run([sys.executable, "-c", BACKEND], capture_output=True, text=True, check=True, env=env).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere MuJoCo knows by itself")
def test_the_backend_is_chosen_only_where_nobody_did(monkeypatch):
    if HAS_GL:
        assert chosen().split() in (["osmesa", "osmesa"], ["egl", "egl"])
        assert chosen(DISPLAY=":97531") == chosen(), "nobody answers for this screen"
    monkeypatch.setattr(headless, "_has_screen", lambda: True)
    for given in ("", "glfw"):
        monkeypatch.setenv("MUJOCO_GL", given)
        assert (headless.choose_backend(), os.environ["MUJOCO_GL"]) == (given, given)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere MuJoCo knows by itself")
@pytest.mark.parametrize("given", ["glfw", "disabled"])
def test_a_backend_that_cannot_draw_here_is_refused_and_state_works(given, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MUJOCO_GL", given)
    with pytest.raises(ConfigError, match=f"MUJOCO_GL is {given}, which draws nothing on a machine without a screen"):
        make_env(find_task("mujoco/hopper"), render_mode="rgb_array")
    make_env(find_task("mujoco/hopper")).close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere MuJoCo knows by itself")
def test_without_a_library_the_package_is_named(monkeypatch):
    """The libraries cannot be uninstalled for a test, so they are hidden."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(headless, "find_library", lambda name: None)
    with pytest.raises(ConfigError, match="needs a GL library; run: apt-get install libosmesa6"):
        make_env(find_task("mujoco/hopper"), render_mode="rgb_array")
    make_env(find_task("mujoco/hopper")).close()
    monkeypatch.setenv("MUJOCO_GL", "egl")
    with pytest.raises(
        ConfigError, match="MUJOCO_GL is egl, which needs libEGL and libOpenGL; unset it, or run: apt-get"
    ):
        make_env(find_task("mujoco/hopper"))
