"""DMControl's 16 tasks: the paper's dimensions, both kinds of observation, episodes that repeat bit for bit."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from rendering import HAS_GL, read
from running import peer_rl

from peer_rl.envs import headless
from peer_rl.envs.make import make_env, spec_of
from peer_rl.errors import ConfigError
from peer_rl.launch.api import train
from peer_rl.settings import configure
from peer_rl.settings.tasks import TASKS, Rendering
from peer_rl.training.loop import Trainer
from peer_rl.training.video import record

DMC = {name: task for name, task in TASKS.items() if task.suite == "dmc"}
DRAFT = Rendering(64, "draft")
draws = pytest.mark.skipif(not HAS_GL, reason="no GL library")

PAPER = """ball_in_cup catch 2, cartpole balance 1, cartpole balance_sparse 1, cartpole swingup 1,
cartpole swingup_sparse 1, cheetah run 6, finger spin 2, finger turn_easy 2, finger turn_hard 2, hopper hop 4,
hopper stand 4, pendulum swingup 1, reacher easy 2, reacher hard 2, walker stand 6, walker walk 6"""
"""The appendix's table of the suite: domain, task, units of an action. Its states are pictures."""


def play(env: gym.Env, seed: int, steps: int) -> bytes:
    """Everything that random actions get to see in an episode that begins with the seed."""
    rng = np.random.default_rng(seed)
    seen = [env.reset(seed=seed)[0]]
    for _ in range(steps):
        observation, reward, *_ = env.step(rng.uniform(-1, 1, env.action_space.shape).astype(np.float32))
        seen += [observation, np.array(reward)]
    return b"".join(part.tobytes() for part in seen)


# -- the table -----------------------------------------------------------------------------------------------------


def test_the_suite_is_the_appendixs():
    papers = [row.split() for row in PAPER.replace("\n", " ").split(",")]
    names = [f"dmc/{domain}-{task}".replace("_", "-") for domain, task, _ in papers]
    assert names == list(DMC)
    assert [int(units) for *_, units in papers] == [task.dimensions[1] for task in DMC.values()]


def test_action_repeats_are_the_papers():
    exceptions = {"dmc/finger-spin": 2, "dmc/walker-walk": 2, "dmc/cartpole-swingup": 8}
    assert {name: task.action_repeat for name, task in DMC.items()} == {name: exceptions.get(name, 4) for name in DMC}


@pytest.mark.parametrize("name", DMC)
def test_from_state_dimensions_fit_and_a_used_environment_plays_the_same_episodes(name):
    used, fresh = make_env(DMC[name]), make_env(DMC[name])
    assert (*used.observation_space.shape, *used.action_space.shape) == DMC[name].dimensions
    assert used.observation_space.dtype == np.float32
    assert (used.action_space.low == -1).all()
    assert (used.action_space.high == 1).all()
    assert play(used, seed=1, steps=30) != play(used, seed=2, steps=30)
    assert play(used, seed=3, steps=60) == play(fresh, seed=3, steps=60)


# -- steps and ends ------------------------------------------------------------------------------------------------


def test_the_state_is_the_suites_own_in_its_order():
    env = make_env(DMC["dmc/finger-turn-easy"])
    seen, _ = env.reset(seed=0)
    inner = env.unwrapped.suite
    parts = inner.task.get_observation(inner.physics)
    assert list(parts) == ["position", "velocity", "touch", "target_position", "dist_to_target"]
    np.testing.assert_array_equal(seen, np.hstack(list(parts.values())).astype(np.float32))


def test_an_action_is_repeated_and_its_rewards_are_summed():
    task = DMC["dmc/reacher-easy"]
    one, four = make_env(dataclasses.replace(task, action_repeat=1)), make_env(task)
    rng, paid = np.random.default_rng(0), 0.0
    np.testing.assert_array_equal(one.reset(seed=11)[0], four.reset(seed=11)[0])
    for _ in range(100):
        action = rng.uniform(-1, 1, 2).astype(np.float32)
        small = [one.step(action)[:2] for _ in range(4)]
        seen, reward, *_ = four.step(action)
        np.testing.assert_array_equal(seen, small[-1][0])
        assert reward == sum(each for _, each in small)
        paid += reward
    assert paid > 0


def test_running_out_of_time_truncates():
    env = make_env(DMC["dmc/cartpole-swingup"])
    env.reset(seed=0)
    ends = [env.step(np.zeros(1, np.float32))[2:4] for _ in range(125)]
    assert ends == [(False, False)] * 124 + [(False, True)]


def test_a_discount_of_0_terminates_and_cuts_the_repeat_short(monkeypatch):
    env = make_env(DMC["dmc/cartpole-swingup"])
    env.reset(seed=0)
    left = iter([None, None, 0.0])
    monkeypatch.setattr(env.unwrapped.suite.task, "get_termination", lambda physics: next(left))
    assert env.step(np.zeros(1, np.float32))[2:4] == (True, False)
    assert next(left, "none") == "none"


@pytest.mark.parametrize("limit", [3, 130])
def test_another_limit_replaces_the_suites(limit):
    env = make_env(DMC["dmc/cartpole-swingup"], max_episode_steps=limit)
    env.reset(seed=0)
    ends = [env.step(np.zeros(1, np.float32))[2:4] for _ in range(limit)]
    assert ends == [(False, False)] * (limit - 1) + [(False, True)]


# -- pixels --------------------------------------------------------------------------------------------------------


@draws
@pytest.mark.parametrize("name", ["dmc/cartpole-swingup", "dmc/reacher-easy", "dmc/cheetah-run"])
def test_from_pixels_a_used_environment_shows_the_same_episodes(name):
    used, fresh = make_env(DMC[name], rendering=DRAFT), make_env(DMC[name], rendering=DRAFT)
    play(used, seed=1, steps=20)
    assert play(used, seed=3, steps=20) == play(fresh, seed=3, steps=20)
    used.close()
    fresh.close()


@draws
def test_frames_are_stacked_channels_first_with_zeros_before_the_first():
    env = make_env(DMC["dmc/walker-walk"], rendering=Rendering())
    spec = spec_of(env)
    assert (spec.observation_shape, spec.observation_dtype, spec.stack) == ((9, 84, 84), "uint8", 3)
    first, _ = env.reset(seed=0)
    assert env.observation_space.contains(first)
    assert not first[:6].any()
    second = env.step(np.ones(6, np.float32))[0]
    np.testing.assert_array_equal(second[3:6], first[6:])
    assert (second[6:] != first[6:]).any()
    env.close()


@draws
def test_a_frame_is_what_the_suites_camera_0_sees():
    env = make_env(DMC["dmc/cheetah-run"], rendering=Rendering(100))
    seen, _ = env.reset(seed=0)
    there = env.unwrapped.suite.physics.render(100, 100, camera_id=0)
    np.testing.assert_array_equal(seen[6:].transpose(1, 2, 0), there)
    env.close()


@draws
def test_draft_is_drawn_twice_as_large_and_averaged():
    env = make_env(DMC["dmc/cartpole-swingup"], rendering=DRAFT)
    seen, _ = env.reset(seed=0)
    there = env.unwrapped.suite.physics.render(128, 128, camera_id=0).astype(float)
    wanted = np.floor(there.reshape(64, 2, 64, 2, 3).mean((1, 3)) + 0.5)
    np.testing.assert_array_equal(seen[6:].transpose(1, 2, 0), wanted)
    env.close()


@draws
def test_draft_differs_a_little_and_only_to_look_at():
    env = {quality: make_env(DMC["dmc/cheetah-run"], rendering=Rendering(84, quality)) for quality in ("full", "draft")}
    seen = {quality: each.reset(seed=0)[0][6:].astype(float) for quality, each in env.items()}
    difference = np.abs(seen["full"] - seen["draft"])
    assert 0 < difference.mean() < 12
    assert np.corrcoef(seen["full"].ravel(), seen["draft"].ravel())[0, 1] > 0.9
    action = np.ones(6, np.float32)
    full, draft = ([each.step(action)[1] for _ in range(5)] for each in env.values())
    assert full == draft
    for each in env.values():
        each.close()


@draws
@pytest.mark.parametrize("rendering", [None, DRAFT])
def test_a_video_shows_the_scene_and_changes_nothing(tmp_path, rendering):
    name = "dmc/reacher-easy"
    with make_env(DMC[name], rendering=rendering, render_mode="rgb_array") as env:
        videoed = record(env, lambda seen, first: np.ones(2), seeds=[5], out=tmp_path / "video.mp4", max_steps=10)
    meta, video = read(tmp_path / "video.mp4")
    assert video.shape == (11, 480, 480, 3)
    assert meta["fps"] == 12.5
    env = make_env(DMC[name], rendering=rendering)
    env.reset(seed=5)
    assert videoed.returns == [sum(env.step(np.ones(2))[1] for _ in range(10))]
    env.close()


# -- a whole run ---------------------------------------------------------------------------------------------------


def test_the_smoke_profile_trains_and_both_counters_are_reported(tmp_path):
    options = ("--steps", "600", "--eval-every", "600", "--action-repeat", "2", "--max-episode-steps", "100")
    command = ("train", "sac", "--task", "dmc/cartpole-swingup", "--profile", "smoke", *options, "--quiet")
    result = peer_rl(*command, "--runs", tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    (log,) = tmp_path.glob("smoke/dmc-cartpole-swingup/*/seed0/eval.jsonl")
    last = json.loads(log.read_text().splitlines()[-1])
    assert (last["step"], last["frame"]) == (600, 1200)


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, monkeypatch):
    """Another process would make the environment anew; so does another call."""
    given = {"start_steps": 60, "batch_size": 8, "critic.hidden": (8,), "actor.hidden": (8,), "eval_every": 80}
    config = configure("sac", "dmc/finger-spin", steps=150, max_episode_steps=50, eval_episodes=1, **given)
    whole = train(config, runs=tmp_path / "whole")

    def stop(trainer):
        learn(trainer)
        if trainer.step == 120:
            raise KeyboardInterrupt

    learn = Trainer.learn
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "learn", stop)
        with pytest.raises(KeyboardInterrupt):
            train(config, runs=tmp_path / "parts", checkpoint_seconds=0)
    parts = train(config, runs=tmp_path / "parts", checkpoint_seconds=0)
    for name in ("metrics.jsonl", "eval.jsonl", "diagnostics.jsonl"):
        assert (whole / name).read_bytes() == (parts / name).read_bytes()


@draws
def test_a_checkpoint_writes_only_the_frames_that_came_after_the_one_before(tmp_path, monkeypatch):
    """Segments hold each frame once, and none is written again."""
    monkeypatch.setattr("peer_rl.training.checkpoint._SMALL_SEGMENT", 0)
    tiny = {"encoder.channels": (4,), "encoder.kernels": (5,), "encoder.strides": (3,), "latent": 4, "batch_size": 4}
    tiny |= {"critic.hidden": (8,), "actor.hidden": (8,), "image_size": 24, "render_quality": "draft"}
    config = configure(
        "drq-sac",
        "dmc/reacher-easy",
        steps=90,
        max_episode_steps=30,
        start_steps=80,
        eval_every=0,
        diagnose_every=0,
        **tiny,
    )
    run = train(config, runs=tmp_path, checkpoint_seconds=0)
    sizes = [file.stat().st_size for file in sorted((run / "checkpoint" / "replay").iterdir())]
    frames = 24 * 24 * 3 * 31  # of an episode, whose last frame starts no step
    assert len(sizes) == 3
    assert all(frames < size < frames + 2_500 for size in sizes)


# -- machines ------------------------------------------------------------------------------------------------------


NOISE = """
from peer_rl.envs.make import make_env
from peer_rl.settings.tasks import find_task
env = make_env(find_task("dmc/cheetah-run"))
env.reset(seed=0)
env.step(env.action_space.sample())
env.close()
"""


def test_it_prints_nothing_and_leaves_no_file(tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "MUJOCO_GL"}
    command = [sys.executable, "-W", "error", "-c", NOISE]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True, env=env)
    assert (result.stdout, result.stderr) == ("", "")
    assert not list(tmp_path.iterdir())


def test_a_missing_extra_names_the_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "dm_control", None)
    with pytest.raises(ConfigError, match=r"needs dm_control; install it with: pip install 'peer-rl\[dmc\]'"):
        make_env(DMC["dmc/cheetah-run"])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere MuJoCo knows by itself")
def test_without_a_renderer_pixels_are_refused_in_one_line_and_state_works(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(headless, "find_library", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs a GL library; run: apt-get install libosmesa6$"):
        make_env(DMC["dmc/cheetah-run"], rendering=Rendering())
    make_env(DMC["dmc/cheetah-run"]).close()


@draws
def test_a_renderer_that_fails_is_one_line_that_knows_who_helps(monkeypatch):
    """As EGL without a driver does, which cannot be had here."""

    def fail(*_, **__):
        raise ImportError("no display")

    make_env(DMC["dmc/cheetah-run"]).close()  # imports dm_control with a renderer that works
    monkeypatch.setattr("peer_rl.envs.dmc.Camera", fail)
    with pytest.raises(ConfigError, match=r"ImportError: no display \(.*peer-rl doctor"):
        make_env(DMC["dmc/cheetah-run"], rendering=Rendering())


@pytest.mark.slow
@pytest.mark.parametrize("backend", headless.found_backends())
def test_every_renderer_that_is_there_draws_a_run_and_is_in_its_manifest(backend, tmp_path):
    """dm_control takes one for good when it is imported, so each has a process."""
    options = ["--image-size", "32", "--crop", "28", "--steps", "20", "--start-steps", "15", "--eval-every", "0"]
    command = ("train", "curl-sac", "--task", "dmc/reacher-easy", "--profile", "smoke", *options, "--quiet")
    # MuJoCo refuses another backend than that of PyOpenGL, which these tests may have chosen by drawing
    result = peer_rl(*command, "--runs", tmp_path, MUJOCO_GL=backend, PYOPENGL_PLATFORM=backend)
    assert (result.returncode, result.stderr) == (0, "")
    (manifest,) = tmp_path.rglob("manifest.json")
    assert json.loads(manifest.read_text())["environment"].endswith(f"drawn in draft quality by {backend}")


def test_the_docs_show_the_table():
    page = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in page.splitlines()]
    shown = {row[0]: row[1:] for row in rows if row[0] in DMC}
    assert shown == {name: [*map(str, task.dimensions), str(task.action_repeat)] for name, task in DMC.items()}


@pytest.mark.filterwarnings("ignore:.*Box observation space (min|max)imum value is -?infinity")
def test_gymnasiums_checker_is_content():
    from gymnasium.utils.env_checker import check_env

    env = make_env(DMC["dmc/pendulum-swingup"])
    assert isinstance(env, gym.Env)
    check_env(env.unwrapped, skip_render_check=True)
