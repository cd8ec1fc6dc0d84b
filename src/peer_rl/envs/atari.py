"""ALE's Atari games, prepared as the paper's agents see them. Imported only when a game is made."""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium as gym
from gymnasium.wrappers import AtariPreprocessing, TimeLimit

from peer_rl.settings.tasks import Task

Env = gym.Env[Any, Any]
EPISODE_FRAMES = 108_000
"""Half an hour of play, after which an episode is cut off (PEER appendix, both Atari tables)."""
NO_OPS = 30
"""An episode begins with 1 to this many frames of doing nothing, drawn from the episode's seed."""
SCREEN = 84
_FRAMES_PER_SECOND = 60


def make_game(task: Task, *, max_episode_steps: int | None, render_mode: str | None) -> Env:
    """Grey frames of 84x84: one agent step repeats its action, and shows the maximum of the last two frames.

    The task's options may have another ``screen_size``, and ALE's ``repeat_action_probability``.
    """
    options = dict(task.options)
    env: Env = gym.make(
        task.make,
        obs_type="grayscale",  # what the preprocessing reads; colours would be fetched for nothing at every frame
        frameskip=1,  # the preprocessing skips
        repeat_action_probability=options.get("repeat_action_probability", 0.0),
        full_action_space=False,
        max_num_frames_per_episode=None,  # ALE's own limit counts the no-ops and cuts a step short: TimeLimit below
        render_mode=render_mode,
        disable_env_checker=True,
    )
    env = AtariPreprocessing(
        env,
        noop_max=NO_OPS,
        frame_skip=task.action_repeat,
        screen_size=options.get("screen_size", SCREEN),
        terminal_on_life_loss=False,
        grayscale_obs=True,
    )
    env.metadata = {**env.metadata, "render_fps": _FRAMES_PER_SECOND // task.action_repeat}
    return TimeLimit(LostLives(env), max_episode_steps or EPISODE_FRAMES // task.action_repeat)


class LostLives(gym.Wrapper[Any, Any, Any, Any]):
    """Sets ``info["lost_life"]`` at a step that loses a life without ending the game."""

    _lives = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new game."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._lives = info["lives"]
        return observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One agent step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        before, self._lives = self._lives, info["lives"]
        lost = self._lives < before and not terminated
        return observation, reward, terminated, truncated, {**info, "lost_life": lost}
