"""What a run may say of its environment: action repeat, frames, stack, quality; and where it may not."""

import dataclasses
import json
import re

import pytest
from rendering import HAS_GL

from peer_rl.cli.train import read_options
from peer_rl.envs.make import env_of, spec_of
from peer_rl.errors import ConfigError
from peer_rl.settings import AGENTS, as_dict, configure, from_dict, variant
from peer_rl.settings.environment import rendering_of, task_of
from peer_rl.settings.suites import Frames
from peer_rl.settings.tasks import Rendering
from peer_rl.training.rundir import RunDirectory


@pytest.fixture
def pixel_agent(monkeypatch, more_settings):
    """An agent that sees pixels, as far as environments are concerned."""
    monkeypatch.setitem(AGENTS, "pixel-sac", dataclasses.replace(AGENTS["sac"], observations="frames"))
    budget = {"steps": Frames(500_000), "protocol.eval_every": Frames(10_000)}
    more_settings("dmc", budget, agents=["pixel-sac"])
    return "pixel-sac"


def test_state_sac_repeats_nothing_and_counts_environment_steps():
    config = configure("sac", "dmc/cartpole-swingup")
    assert (config.action_repeat, config.steps, config.protocol.eval_every) == (1, 500_000, 10_000)
    assert rendering_of(config) is None
    assert (config.image_size, config.frame_stack, config.render_quality) == (None, None, None)
    twice = configure("sac", "dmc/cartpole-swingup", action_repeat=2)
    assert (task_of(twice).action_repeat, variant(twice)) == (2, "sac+action-repeat2")


def test_a_pixel_agents_config_has_all_of_it(pixel_agent):
    config = configure(pixel_agent, "dmc/cartpole-swingup")
    assert (config.action_repeat, config.image_size, config.frame_stack) == (8, 84, 3)
    assert rendering_of(config) == Rendering(84, "full")
    assert from_dict(as_dict(config)) == config
    small = configure(pixel_agent, "dmc/cartpole-swingup", profile="small")
    assert rendering_of(small) == Rendering(64, "draft")
    assert variant(small) == pixel_agent
    assert variant(dataclasses.replace(small, render_quality="full")) == f"{pixel_agent}+render-quality-full"


@pytest.mark.skipif(not HAS_GL, reason="no GL library")
def test_a_run_is_played_in_what_its_config_says(pixel_agent, tmp_path):
    config = configure(pixel_agent, "dmc/cheetah-run", image_size=32, frame_stack=2, render_quality="draft")
    env = env_of(config)
    assert spec_of(env).observation_shape == (6, 32, 32)
    env.close()
    RunDirectory(tmp_path, config).write_manifest({})
    drawn = json.loads((tmp_path / "manifest.json").read_text())["environment"]
    assert re.fullmatch(r"dm_control:cheetah-run, drawn in draft quality by (egl|osmesa|\w.*)", drawn)


@pytest.mark.parametrize(
    ("agent", "task", "setting", "words"),
    [
        ("sac", "dmc/cheetah-run", {"image_size": 64}, "renders no frames for sac; leave out --image-size"),
        ("sac", "dmc/cheetah-run", {"frame_stack": 2}, "renders no frames for sac; leave out --frame-stack"),
        ("sac", "mujoco/hopper", {"render_quality": "draft"}, "renders no frames for sac; leave out --render-quality"),
        ("rainbow", "atari/pong", {"render_quality": "draft"}, "renders no frames for rainbow; leave out --render-qua"),
        ("sac", "mujoco/hopper", {"sticky_actions": 0.25}, "is not an Atari task; leave out --sticky-actions"),
        ("rainbow", "atari/pong", {"sticky_actions": 1.5}, "sticky_actions must be"),
        ("rainbow", "atari/pong", {"action_repeat": 2}, "has a fixed action repeat, 4; leave out --action-repeat"),
        ("sac", "dmc/cheetah-run", {"action_repeat": 0}, "action_repeat must be above 0"),
    ],
)
def test_a_choice_that_the_task_does_not_leave_is_refused(agent, task, setting, words):
    with pytest.raises(ConfigError, match=words):
        configure(agent, task, **setting)


def test_stacking_vectors_is_refused():
    with pytest.raises(ConfigError, match="renders no frames to stack; leave out --frame-stack"):
        env_of(configure("dqn", "gym/CartPole-v1", frame_stack=2))


def test_any_task_that_shows_frames_may_be_stacked_otherwise():
    assert spec_of(env_of(configure("rainbow", "atari/pong", frame_stack=2))).observation_shape == (2, 84, 84)


def test_a_games_screen_and_its_sticky_actions_are_a_choice():
    env = env_of(configure("dreamer-v2-pixels", "atari/pong", sticky_actions=0.25))
    assert spec_of(env).observation_shape == (1, 64, 64)
    assert env.unwrapped.ale.getFloat("repeat_action_probability") == 0.25
    usual = env_of(configure("rainbow", "atari/pong"))
    assert spec_of(usual).observation_shape == (4, 84, 84)
    assert usual.unwrapped.ale.getFloat("repeat_action_probability") == 0


def test_other_suites_configs_are_as_they_were():
    """What is None is not saved: runs from before these settings keep their names and files."""
    ours = {"action_repeat", "image_size", "frame_stack", "render_quality", "sticky_actions"}
    for agent, task in (("sac", "mujoco/hopper"), ("rainbow", "atari/pong"), ("dqn", "gridworld/paper")):
        assert not ours & set(as_dict(configure(agent, task)))


def test_frames_are_divided_by_the_runs_own_repeat():
    command = ["sac", "--task", "dmc/cartpole-swingup", "--frames", "1000"]
    assert read_options(command)[0].run.steps == 1000
    assert read_options([*command, "--action-repeat", "4"])[0].run.steps == 250
    with pytest.raises(ConfigError, match="1000 is not a multiple of dmc/cartpole-swingup's action repeat, 3"):
        read_options([*command, "--action-repeat", "3"])
