"""Frames as agents see them: channels first, the last few stacked into one observation."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import FrameStackObservation, ReshapeObservation, TransformObservation


def is_image(space: spaces.Space[Any]) -> bool:
    """Whether observations are images of bytes: (H, W), (H, W, 1) or (H, W, 3)."""
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8:
        return False
    return len(space.shape) == 2 or (len(space.shape) == 3 and space.shape[2] in (1, 3))


class StackedFrames(ReshapeObservation[Any, Any, Any]):
    """The last ``count`` frames as (count * channels, H, W), newest last, zeros before an episode's first."""

    def __init__(self, env: gym.Env[Any, Any], count: int) -> None:
        height, width, *rest = env.observation_space.shape or ()
        channels = rest[0] if rest else 1

        def channels_first(frame: Any) -> Any:
            # a copy: some environments reuse one array, and the stack keeps its frames
            return frame.reshape(height, width, channels).transpose(2, 0, 1).copy()

        space = spaces.Box(0, 255, (channels, height, width), np.uint8)
        frames = TransformObservation(env, channels_first, space)
        stacked = FrameStackObservation(frames, count, padding_type="zero")  # (count, channels, H, W)
        super().__init__(stacked, (count * channels, height, width))
        self.count = count
