"""A world model compared with reality: the frames of an episode, their reconstruction, and the open-loop prediction.

Every window of 50 frames begins with 5 that the model sees; the other 45 are predicted from the actions alone.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from peer_rl.envs.make import Env
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.networks.rssm import State
from peer_rl.networks.world_model import WorldModel
from peer_rl.rng import Stream
from peer_rl.settings import AGENTS
from peer_rl.settings.world_model import WorldModelConfig
from peer_rl.training.evaluate import Evaluation
from peer_rl.training.video import FPS, Frame, Video

CONTEXT, WINDOW = 5, 50
_SIDE, _GAP = 192, 4
_SEEN, _PREDICTED = (60, 160, 80), (220, 120, 40)
"""Colours next to the prediction: green where the model has seen the frame, orange where it has not."""
_STRIP = (0, 2, 4, 9, 14, 19, 24, 29, 34, 39, 44, 49)


@dataclass(frozen=True)
class Episode:
    """What an agent saw and did, (T + 1, C, H, W) and (T, ...)."""

    obs: np.ndarray[Any, np.dtype[np.uint8]]
    actions: np.ndarray[Any, Any]
    total: float


@dataclass(frozen=True)
class Imagined:
    """Three rows of T + 1 frames, (T + 1, H, W, 3) bytes each."""

    real: Frame
    rebuilt: Frame
    """From the posterior, which has seen every frame up to its own."""
    predicted: Frame
    seen: np.ndarray[Any, np.dtype[np.bool_]]
    """(T + 1,) where ``predicted`` is the context's reconstruction."""

    def frame(self, index: int) -> Frame:
        """The three frames of one step, one above the other, large enough to be looked at."""
        scale = max(1, _SIDE // self.real.shape[1])
        rows = [row[index].repeat(scale, 0).repeat(scale, 1) for row in (self.real, self.rebuilt, self.predicted)]
        space = np.zeros((_GAP, rows[0].shape[1], 3), np.uint8)
        stacked = np.concatenate([rows[0], space, rows[1], space, rows[2]])
        edge = np.zeros((len(stacked), 2 * _GAP, 3), np.uint8)
        edge[-len(rows[2]) :] = _SEEN if self.seen[index] else _PREDICTED
        return np.concatenate([edge, stacked], 1)

    def strip(self) -> Frame:
        """Some steps of the first window side by side."""
        chosen = [index for index in _STRIP if index < len(self.real)]
        return np.concatenate([self.frame(index) for index in chosen], 1)


def world_model_of(agent: Any, name: str) -> WorldModel:
    """The agent's world model, if it has one that predicts frames."""
    model = getattr(agent, "model", None)
    if isinstance(model, WorldModel) and model.sees_frames:
        return model
    why = "reads vectors, so it predicts no frames" if isinstance(model, WorldModel) else "has no world model"
    models = {other: entry for other, entry in AGENTS.items() if issubclass(entry.settings, WorldModelConfig)}
    able = [other for other, entry in models.items() if entry.observations == "frames"]
    raise ConfigError(f"{name} {why}; --imagine is for {', '.join(able)}")


def record_imagination(
    agent: Any,
    env: Env,
    spec: EnvSpec,
    *,
    seeds: list[int],
    run_seed: int,
    out: Path,
    fps: float | None = None,
    max_steps: int | None = None,
    show: Callable[[int, int], None] = lambda episode, step: None,
) -> Evaluation:
    """One episode per seed into ``out``, as `video.record` does, and some steps of the first as a PNG next to it."""
    model = agent.model
    acting, imagining = (Stream(run_seed, name, device=agent.device) for name in ("act", "imagine"))
    played = Evaluation(seeds, [], [])
    with Video(out, float(fps or env.metadata.get("render_fps") or FPS)) as video:
        for index, seed in enumerate(seeds):
            episode = play(agent, env, spec, seed=seed, rng=acting, max_steps=max_steps)
            found = imagine(model, episode, stack=spec.stack, rng=imagining)
            for step in range(len(found.seen)):
                video.add(found.frame(step))
                show(index, step)
            if index == 0:
                write_png(out.with_suffix(".png"), found.strip())
            played.returns.append(episode.total)
            played.lengths.append(len(episode.actions))
    return played


def play(agent: Any, env: Env, spec: EnvSpec, *, seed: int, rng: Stream, max_steps: int | None) -> Episode:
    """One episode of the policy, with everything that it saw and did."""
    seen, total, over = [spec.encode(env.reset(seed=seed)[0])], 0.0, False
    acted: list[Any] = []
    while not over and len(acted) != max_steps:
        action = agent.act(seen[-1][None], first=np.array([not acted]), explore=False, rng=rng)[0]
        observation, reward, terminated, truncated, _ = env.step(spec.decode(action))
        seen.append(spec.encode(observation))
        acted.append(action)
        total, over = total + float(reward), terminated or truncated
    return Episode(np.stack(seen), np.stack(acted), total)


@torch.no_grad()
def imagine(model: WorldModel, episode: Episode, *, stack: int, rng: Stream) -> Imagined:
    """The model's reconstruction and prediction of an episode."""
    device = next(model.parameters()).device
    target = model.see(torch.from_numpy(episode.obs).to(device), rng.torch)
    actions = model.one_hot(torch.from_numpy(episode.actions).to(device)).unsqueeze(1)  # (T, 1, A)
    led_here = torch.cat([torch.zeros_like(actions[:1]), actions])
    first = torch.zeros(len(target), 1, device=device)
    first[0] = 1
    posteriors, _ = model.rssm.observe(model.encoder(target).unsqueeze(1), led_here, first, rng.torch)
    rebuilt: Tensor = model.decoder(posteriors.features.flatten(0, 1))
    predicted, seen = rebuilt.clone(), np.ones(len(target), bool)
    for begin in range(CONTEXT - 1, len(target) - 1, WINDOW):  # the last frame that the model sees
        end = min(begin + 1 + WINDOW - CONTEXT, len(target))
        following = iter(actions[begin : end - 1])
        states, _ = model.rssm.imagine(posteriors.rows(begin), partial(_next_of, following), end - 1 - begin, rng.torch)
        predicted[begin + 1 : end] = model.decoder(states.features.flatten(0, 1))
        seen[begin + 1 : end] = False
    return Imagined(_frames(target, stack), _frames(rebuilt, stack), _frames(predicted, stack), seen)


def _next_of(actions: Iterator[Tensor], state: State) -> Tensor:
    """What was done next, whatever the state."""
    del state
    return next(actions)


def _frames(values: Tensor, stack: int) -> Frame:
    """The newest frame of each stack from values in [-0.5, 0.5], as bytes with three channels."""
    newest = values[:, -values.shape[1] // stack :]
    bytes_ = ((newest + 0.5).clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
    frames: Frame = np.repeat(bytes_, 3, -1) if bytes_.shape[-1] == 1 else bytes_
    return frames


def write_png(path: Path, frame: Frame) -> None:
    """Write a PNG without an imaging package."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = frame.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), frame.reshape(height, -1)], 1)  # each row's filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
        + chunk(b"IEND", b"")
    )
