"""Windows of consecutive steps, for agents that learn a model: same ring, same samplers, other batches.

A window has the number of its first step, so every transition may be drawn and a sampler needs to know nothing of
windows. One that meets the end of its episode, a lost life or the newest step is shorter: ``mask`` is 0 from there on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from peer_rl.replay.frames import FrameStore
from peer_rl.replay.store import Array, Batch, Ring, VectorStore, Windows, to_tensors


@dataclass(frozen=True)
class Sequences(Batch):
    """B windows of L steps (s_0, a_0, r_0, s_1, ..., s_L); time is the first axis.

    ``obs`` is (L + 1, B, *observation) and ``next_obs`` its last L entries; ``action``, ``reward`` and ``discount`` are
    (L, B, ...), each step's own; ``weight`` is (B,). Behind the end of a window the last observation (its newest
    frame, of a stack) and action are repeated, while reward and discount are 0.
    """

    mask: Tensor = field(kw_only=True)
    """(L, B) 1 where the window has a step, else 0; the first step always is one."""
    last: Tensor = field(kw_only=True)
    """(L, B) 1 where the step ended its episode, terminated or truncated."""
    first: Tensor = field(kw_only=True)
    """(B,) 1 where s_0 begins an episode, or nothing before it is kept any more."""
    previous_action: Tensor = field(kw_only=True)
    """(B, ...) the action that led to s_0; 0 where ``first``."""


class VectorSequences(VectorStore):
    """Windows over whole observations."""

    def __init__(self, windows: Windows, *, length: int) -> None:
        super().__init__(windows)
        self._steps = _Steps(windows, length)

    def gather(self, transitions: Array, device: torch.device) -> Sequences:
        """The windows that start at these transitions."""
        columns, capacity = self.ring.columns, self.ring.capacity
        rows, steps = self._steps.from_rows(transitions, newest=self.ring.total - 1)
        before = transitions - 1
        known = (before >= self.ring.oldest) & ~columns["last"][before % capacity]
        start = columns["obs"].take(transitions % capacity, 0)
        ahead = columns["next_obs"].take(rows % capacity, 0)  # (L, B, *observation)
        obs = torch.from_numpy(np.concatenate([start[None], ahead])).to(device)
        return _sequences(obs, steps, self._steps.before(before, known), device)


class FrameSequences(FrameStore):
    """Windows over stacks of frames: each frame is gathered and moved once, and stacks are views of it."""

    def __init__(self, windows: Windows, *, stack: int, length: int) -> None:
        super().__init__(windows, stack=stack)
        self._steps, self._length = _Steps(windows, length), length

    def gather(self, transitions: Array, device: torch.device) -> Sequences:
        """The windows that start at these transitions."""
        ring, capacity = self.ring, self.ring.capacity
        start = self._row_of[transitions % capacity]
        rows, steps = self._steps.from_rows(start, newest=ring.total - 2)
        age = ring.columns["age"][start % capacity]
        around = np.arange(1 - self.stack, self._length + 1)
        places = np.minimum(start[:, None] + around, rows[-1][:, None] + 1)  # (B, stack + L), the last frame repeated
        column = ring.columns["frame"]
        frames = self._scratch.array((*places.shape, *column.shape[1:]), column.dtype)
        column.take(places % capacity, 0, out=frames, mode="clip")  # the default mode would copy twice
        frames[age[:, None] < -around] = 0  # before the episode
        channels = self._channels
        moved = torch.from_numpy(frames).to(device).flatten(1, 2)  # (B, (stack + L) * channels, height, width)
        obs = moved.unfold(1, self.stack * channels, channels).permute(1, 0, 4, 2, 3)  # (L + 1, B, ...), a view
        known = (age > 0) & (start > ring.oldest)
        return _sequences(obs, steps, self._steps.before(start - 1, known), device)


class _Steps:
    """The rows of windows, and what each step's row says."""

    def __init__(self, windows: Windows, length: int) -> None:
        self.ring: Ring = windows.ring
        self.gamma = np.float32(windows.gamma)
        self.ahead: Array = np.arange(length)[:, None]

    def from_rows(self, start: Array, *, newest: int) -> tuple[Array, dict[str, Array]]:
        """Row of each step, (L, B), the last one repeated, and the steps' columns; ``newest`` is the newest step's."""
        columns, capacity = self.ring.columns, self.ring.capacity
        here = np.minimum(start + self.ahead, newest)
        slots = here % capacity
        discount, last = columns["discount"].take(slots), columns["last"].take(slots)
        ends = last | (discount == 0) | (here == newest)
        mask = np.ones(here.shape, np.float32)
        mask[1:] = ~np.logical_or.accumulate(ends[:-1])
        rows = start + np.minimum(self.ahead, mask.sum(0).astype(np.int64) - 1)
        steps = {
            "action": columns["action"].take(rows % capacity, 0),
            "reward": mask * columns["reward"].take(slots),
            "discount": mask * self.gamma * discount,
            "mask": mask,
            "last": mask * last,
        }
        return rows, steps

    def before(self, rows: Array, known: Array) -> dict[str, Array]:
        """What the step before a window did, if it is known."""
        action = self.ring.columns["action"].take(rows % self.ring.capacity, 0)
        action[~known] = 0
        return {"first": (~known).astype(np.float32), "previous_action": action}


def _sequences(obs: Tensor, steps: dict[str, Array], before: dict[str, Array], device: torch.device) -> Sequences:
    return Sequences(obs=obs, next_obs=obs[1:], **to_tensors({**steps, **before}, device))
