"""Videos of a policy: play episodes and write the rendered frames as an mp4."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from peer_rl.envs.make import Env
from peer_rl.errors import ConfigError, RunError
from peer_rl.training.evaluate import Evaluation

Act = Callable[[Any, bool], Any]
"""The environment's action for an observation; the flag says that an episode begins."""
Frame = np.ndarray[Any, np.dtype[np.uint8]]
FPS = 30.0
"""Where the environment says nothing."""


def check_installed() -> None:
    """Name the pip line if ffmpeg is missing, and let pygame draw without a screen."""
    if find_spec("imageio_ffmpeg") is None:
        raise ConfigError("recording needs imageio-ffmpeg; install it with: pip install 'peer-rl[video]'")
    for kind in ("VIDEO", "AUDIO"):  # pygame needs no screen to draw, but complains where there is none
        os.environ.setdefault(f"SDL_{kind}DRIVER", "dummy")


def record(
    env: Env,
    act: Act,
    *,
    seeds: list[int],
    out: Path,
    fps: float | None = None,
    max_steps: int | None = None,
    show: Callable[[int, int], None] = lambda episode, step: None,
) -> Evaluation:
    """Record one episode per seed into ``out``. ``env`` was made with ``render_mode="rgb_array"``.

    ``fps`` is the environment's own if not given, ``max_steps`` limits every episode, ``show`` receives the progress.
    """
    returns, lengths = [], []
    with Video(out, float(fps or env.metadata.get("render_fps") or FPS)) as video:
        for index, seed in enumerate(seeds):
            observation, _ = env.reset(seed=seed)
            video.add(draw(env))
            total, length, over = 0.0, 0, False
            while not over and length != max_steps:
                observation, reward, terminated, truncated, _ = env.step(act(observation, length == 0))
                video.add(draw(env))
                total, length, over = total + float(reward), length + 1, terminated or truncated
                show(index, length)
            returns.append(total)
            lengths.append(length)
    return Evaluation(seeds, returns, lengths)


def draw(env: Env) -> Frame:
    """The rendered frame, height x width x 3."""
    try:
        frame = env.render()
    except gym.error.DependencyNotInstalled as error:
        if "pygame" in str(error):
            raise ConfigError("drawing needs pygame; install it with: pip install 'peer-rl[video]'") from error
        raise ConfigError(f"the environment cannot be rendered: {error}") from error
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"the environment cannot be rendered ({reason}); peer-rl doctor may say why") from error
    if not (isinstance(frame, np.ndarray) and frame.dtype == np.uint8 and frame.shape[2:] == (3,)):
        raise ConfigError(
            "the environment cannot be rendered: with render_mode='rgb_array', render() must return an array of bytes, "
            f"height x width x 3, but returned {getattr(frame, 'shape', type(frame).__name__)}"
        )
    return frame


class Video:
    """An mp4 that appears under its name when it is complete; use it in a ``with`` block."""

    def __init__(self, path: Path, fps: float) -> None:
        if path.suffix != ".mp4":
            raise ConfigError(f"a video's name must end in .mp4, but is {path}")
        self.path, self.fps = path, fps
        self._part = path.with_name(f".{path.stem}.part.mp4")  # ffmpeg takes the format from the last suffix
        self._shape: tuple[int, ...] = ()
        self._writer: Generator[None, Frame | None, None] | None = None

    def __enter__(self) -> Video:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a folder")
            self._part.touch()  # now, not after an hour of playing
        except OSError as error:
            raise self._unwritable(error.strerror or str(error)) from error
        return self

    def add(self, frame: Frame) -> None:
        """Append a frame; all must have the size of the first."""
        if self._writer is None:
            self._shape = frame.shape
            self._writer = self._start(frame)
        if frame.shape != self._shape:
            raise ConfigError(f"the environment's frames change their size, from {self._shape} to {frame.shape}")
        try:
            self._writer.send(np.ascontiguousarray(_even(frame)))
        except OSError as error:
            raise self._unwritable("ffmpeg stopped; is the disk full?") from error

    def _start(self, frame: Frame) -> Generator[None, Frame | None, None]:
        import imageio_ffmpeg

        height, width = _even(frame).shape[:2]
        writer: Generator[None, Frame | None, None] = imageio_ffmpeg.write_frames(
            str(self._part),
            (width, height),
            fps=self.fps,
            codec="libx264",
            pix_fmt_out="yuv420p",  # what every player plays
            macro_block_size=1,
            ffmpeg_log_level="quiet",
        )
        writer.send(None)
        return writer

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if self._writer:
                self._writer.close()
            if kind is None:
                self._publish()
        finally:
            with contextlib.suppress(OSError):
                self._part.unlink(missing_ok=True)

    def _publish(self) -> None:
        """Publish the file if it can be read: ffmpeg gives no exit code, but cannot read an unfinished file."""
        import imageio_ffmpeg

        try:
            imageio_ffmpeg.count_frames_and_secs(str(self._part))
            self._part.replace(self.path)
        except (OSError, RuntimeError) as error:
            raise self._unwritable("ffmpeg did not finish it; is the disk full?") from error

    def _unwritable(self, reason: str) -> RunError:
        return RunError(f"cannot write the video {self.path} ({reason}); choose another place with --out")


def _even(frame: Frame) -> Frame:
    """yuv420p stores one colour for 2 x 2 pixels, so an odd edge is doubled."""
    height, width, _ = frame.shape
    return np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge") if height % 2 or width % 2 else frame
