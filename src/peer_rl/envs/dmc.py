"""DMControl's tasks as Gymnasium environments, from state or from pixels. Imported only when such a task is made."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from dm_control import suite
from dm_control.mujoco import Camera
from gymnasium import spaces

from peer_rl.envs.headless import draw_quickly
from peer_rl.settings.tasks import Rendering, Task

CAMERA = 0
"""The camera of CURL's and DrQ's code (dmc2gym's default)."""
VIDEO_SIZE = 480
"""Height and width of frames for videos."""


class Control(gym.Env[Any, Any]):
    """One task. An agent step repeats its action and sums the rewards; running out of time truncates.

    Observations are the state's parts in the suite's order, float32, or with a ``rendering`` RGB frames, uint8.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self, task: Task, *, rendering: Rendering | None = None, endless: bool = False, render_mode: str | None = None
    ) -> None:
        domain, _, name = task.make.removeprefix("dm_control:").partition("-")
        limit: dict[str, Any] = {"time_limit": float("inf")} if endless else {}
        self.suite = suite.load(domain, name, task_kwargs=limit)
        self.repeat, self.render_mode = task.action_repeat, render_mode
        self.metadata = {**self.metadata, "render_fps": 1 / (self.suite.control_timestep() * self.repeat)}
        bounds = self.suite.action_spec()
        self.action_space = spaces.Box(bounds.minimum.astype(np.float32), bounds.maximum.astype(np.float32))
        self._draft = rendering is not None and rendering.quality == "draft"
        if self._draft or (render_mode and not rendering):
            draw_quickly(self.suite.physics.model)
        self._agent_camera = self._camera(rendering.size * (2 if self._draft else 1)) if rendering else None
        self._video_camera = self._camera(VIDEO_SIZE) if render_mode else None
        if rendering:
            self.observation_space = spaces.Box(0, 255, (rendering.size, rendering.size, 3), np.uint8)
        else:
            size = sum(int(np.prod(part.shape)) for part in self.suite.observation_spec().values())
            self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def _camera(self, size: int) -> Camera:
        buffer = self.suite.physics.model.vis.global_  # 640x480, and fixed once the first camera is there
        buffer.offwidth, buffer.offheight = max(buffer.offwidth, size), max(buffer.offheight, size)
        return Camera(self.suite.physics, height=size, width=size, camera_id=CAMERA)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode: the seed alone decides it, whatever was played before."""
        super().reset(seed=seed)
        if seed is not None:
            self.suite.task.random.seed(seed)
        return self._observe(self.suite.reset()), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One agent step, shorter than the action repeat only where the episode ends inside it."""
        reward = 0.0
        for _ in range(self.repeat):
            after = self.suite.step(action)
            reward += float(after.reward)
            if after.last():
                break
        terminated = after.last() and after.discount == 0.0
        return self._observe(after), reward, terminated, after.last() and not terminated, {}

    def _observe(self, after: Any) -> Any:
        if self._agent_camera:
            return halve(self._agent_camera.render()) if self._draft else self._agent_camera.render()
        return np.concatenate([np.ravel(part) for part in after.observation.values()]).astype(np.float32)

    def render(self) -> Any:
        """The scene at the size of videos, whatever the agent sees."""
        return self._video_camera.render() if self._video_camera else None

    def close(self) -> None:
        """Free the simulator and its GL context."""
        self.suite.physics.free()


def halve(frame: Any) -> Any:
    """Half the size, each pixel the mean of four: without it a draft's thin poles jump from pixel to pixel, or vanish.

    Faster on a CPU than multisampling. (2 H, 2 W, 3) -> (H, W, 3), uint8.
    """
    rows = frame[::2].astype(np.uint16) + frame[1::2]
    return ((rows[:, ::2] + rows[:, 1::2] + 2) // 4).astype(np.uint8)
