"""Whether this machine draws without a screen, and what is in a video."""

import warnings
from pathlib import Path

import imageio_ffmpeg
import numpy as np

from peer_rl.envs import headless

HAS_GL = any(all(map(headless.find_library, names)) for names in headless._LIBRARIES.values())


def read(path: Path) -> tuple[dict, np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # imageio-ffmpeg leaves its reader's pipes to the collector
        frames = imageio_ffmpeg.read_frames(str(path))
        meta = next(frames)
        width, height = meta["size"]
        video = np.stack([np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in frames])
        del frames
        return meta, video
