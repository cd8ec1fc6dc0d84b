"""The paper's 26 games: their actions, the preprocessing against one by hand, and episodes that repeat bit for bit."""

import hashlib
import re
import sys
from pathlib import Path

import cv2
import gymnasium as gym
import numpy as np
import pytest
import torch
from rendering import read

from peer_rl.envs.make import make_env, spec_of
from peer_rl.errors import ConfigError
from peer_rl.rng import Stream
from peer_rl.settings.atari_games import GAMES, human_normalised
from peer_rl.settings.tasks import TASKS, find_task
from peer_rl.training.evaluate import evaluate
from peer_rl.training.video import record

ATARI = {name: task for name, task in TASKS.items() if task.suite == "atari"}


def play(env: gym.Env, seed: int, steps: int = 120) -> bytes:
    """Everything that random actions get to see, over episodes that begin with the seed."""
    rng = np.random.default_rng(seed)
    seen, over = [], True
    for _ in range(steps):
        if over:
            seen.append(env.reset(seed=seed)[0])
        observation, reward, terminated, truncated, info = env.step(int(rng.integers(env.action_space.n)))
        over = terminated or truncated
        seen += [observation, np.array([reward, terminated, truncated, info["lost_life"]], dtype=np.float64)]
    return b"".join(part.tobytes() for part in seen)


@pytest.mark.parametrize("name", ATARI)
def test_every_game_has_the_papers_actions_and_plays(name):
    env = make_env(ATARI[name])
    assert env.action_space.n == ATARI[name].actions
    spec = spec_of(env)
    assert (spec.observation_shape, spec.observation_dtype, spec.stack) == ((4, 84, 84), "uint8", 4)
    first, _ = env.reset(seed=1)
    assert not first[:3].any()
    assert first[3].any()
    second = env.step(env.action_space.n - 1)[0]
    np.testing.assert_array_equal(second[2], first[3])
    assert env.observation_space.contains(second)
    env.close()


def test_both_counters():
    assert {task.action_repeat for task in ATARI.values()} == {4}


@pytest.mark.parametrize("name", ["atari/breakout", "atari/ms-pacman", "atari/road-runner"])
def test_a_fresh_and_a_used_game_play_the_same_episodes(name):
    used = make_env(ATARI[name])
    assert play(used, seed=1) != play(used, seed=2)
    again = play(used, seed=3)
    assert play(used, seed=3) == again
    assert play(make_env(ATARI[name]), seed=3) == again


class Onlooker:
    """Acts at random and remembers everything that it saw."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        self.seen = hashlib.sha256()

    def act(self, obs, *, first, explore, rng):
        self.seen.update(obs.tobytes())
        return rng.numpy.integers(4, size=len(obs))


def test_evaluations_of_the_same_seeds_see_the_same_frames():
    """In a fresh environment, and in one that played before."""
    env, found = make_env(ATARI["atari/breakout"], max_episode_steps=60), []
    for env_there in (env, env, make_env(ATARI["atari/breakout"], max_episode_steps=60)):
        agent = Onlooker()
        rng = Stream(0, "test", device=agent.device)
        found.append((evaluate(agent, env_there, spec_of(env), seeds=[3, 4], rng=rng), agent.seen.digest()))
    assert found[0] == found[1] == found[2]
    assert found[0][0].lengths == [60, 60]


def test_the_number_of_no_ops_comes_from_the_seed():
    env = make_env(ATARI["atari/pong"])
    frames = [env.reset(seed=seed)[1]["episode_frame_number"] for seed in (*range(8), 0)]
    assert frames[0] == frames[-1]
    assert len(set(frames)) > 4
    assert min(frames) >= 1
    assert max(frames) <= 30


def test_the_preprocessing_is_the_one_that_the_docs_describe():
    """ALE's bare frames, skipped, maximised and shrunk by hand."""
    env = make_env(ATARI["atari/breakout"])
    bare = gym.make("ALE/Breakout-v5", obs_type="grayscale", frameskip=1, repeat_action_probability=0.0).unwrapped
    bare.reset(seed=5)
    for _ in range(bare.np_random.integers(1, 31)):
        screen = bare.step(0)[0]
    stack = [np.zeros((84, 84), np.uint8)] * 3 + [cv2.resize(screen, (84, 84), interpolation=cv2.INTER_AREA)]
    observation, _ = env.reset(seed=5)
    rng = np.random.default_rng(0)
    for _ in range(40):
        np.testing.assert_array_equal(observation, np.stack(stack))
        action = int(rng.integers(4))
        frames = [bare.step(action) for _ in range(4)]
        brightest = np.maximum(frames[2][0], frames[3][0])
        stack = [*stack[1:], cv2.resize(brightest, (84, 84), interpolation=cv2.INTER_AREA)]
        observation, reward, *_ = env.step(action)
        assert reward == sum(frame[1] for frame in frames)


def test_a_lost_life_is_reported_and_the_game_continues():
    """Breakout has five lives: four are lost on the way, the fifth ends the game."""
    env = make_env(ATARI["atari/breakout"])
    env.reset(seed=0)
    rng, lost, lives, over = np.random.default_rng(0), 0, 5, False
    while not over:
        _, _, terminated, truncated, info = env.step(int(rng.integers(4)))
        over = terminated or truncated
        assert info["lost_life"] == (info["lives"] < lives and not over)
        lost, lives = lost + info["lost_life"], info["lives"]
    assert (terminated, lost, lives) == (True, 4, 0)


def test_the_limit_is_half_an_hour_of_agent_steps_and_never_cuts_one_short():
    env = make_env(ATARI["atari/freeway"])
    assert env.spec.max_episode_steps == 108_000 // 4
    assert env.unwrapped.ale.getInt("max_num_frames_per_episode") == 0
    env = make_env(ATARI["atari/freeway"], max_episode_steps=3)
    _, before = env.reset(seed=0)
    steps = [env.step(1) for _ in range(3)]
    assert [step[2:4] for step in steps] == [(False, False), (False, False), (False, True)]
    assert steps[-1][4]["episode_frame_number"] == before["episode_frame_number"] + 12


def test_sticky_actions_are_off():
    assert make_env(ATARI["atari/pong"]).unwrapped.ale.getFloat("repeat_action_probability") == 0.0


def test_games_are_recorded_in_colour_and_at_their_own_speed(tmp_path):
    env = make_env(ATARI["atari/ms-pacman"], render_mode="rgb_array")
    record(env, lambda observation, first: 1, seeds=[0], out=tmp_path / "video.mp4", max_steps=5)
    meta, frames = read(tmp_path / "video.mp4")
    assert (meta["size"], meta["fps"], len(frames)) == ((160, 210), 15, 6)
    assert np.ptp(frames[0].astype(int), axis=2).max() > 50, "grey"


@pytest.mark.parametrize("name", ["gym/ALE/Pong-v5", "gym/ale_py:ALE/Pong-v5"])
def test_a_bare_game_of_ale_shows_what_ale_shows(name):
    env = make_env(find_task(name))
    assert spec_of(env).observation_shape == (4 * 3, 210, 160)
    env.reset(seed=0)
    assert env.step(0)[4]["lost_life"] is False


def test_scores_of_humans_and_of_random_play():
    """PEER, table 3: every game of it is a task, and the other way round."""
    assert {f"atari/{name}" for name in GAMES} == set(ATARI)
    assert len(GAMES) == 26
    assert human_normalised("pong", -20.7) == 0.0
    assert human_normalised("atari/ms-pacman", 6951.6) == 1.0
    assert human_normalised("freeway", 14.8) == pytest.approx(0.5)
    assert human_normalised("krull", 5444.7) == pytest.approx((5444.7 - 1598) / (2665.5 - 1598))
    with pytest.raises(ConfigError, match="did you mean 'pong'"):
        human_normalised("atari/pongg", 0.0)


def test_the_docs_show_every_game():
    page = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()
    shown = dict(re.findall(r"`(atari/[a-z-]+)` (\d+)", page))
    assert shown == {name: str(task.actions) for name, task in ATARI.items()}


def test_naming_tasks_and_scores_imports_no_emulator(monkeypatch):
    for module in ("ale_py", "cv2"):
        monkeypatch.setitem(sys.modules, module, None)
    assert find_task("atari/pong").summary.endswith("6 actions")
    assert human_normalised("pong", 14.6) == 1.0
