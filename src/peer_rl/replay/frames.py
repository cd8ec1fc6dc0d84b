"""A store that keeps each frame once and builds stacks of frames when they are drawn."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike
from torch import Tensor

from peer_rl.errors import ConfigError
from peer_rl.replay.store import STEP, Array, Batch, Columns, Windows, check_rows, to_tensors

_NO_STEP = {"action": 0, "reward": 0.0, "discount": 0.0, "last": False}


def frame_columns(frame: tuple[tuple[int, ...], str], action: tuple[tuple[int, ...], str]) -> Columns:
    """A row is one frame, the step taken from it, and how many frames its episode has before it, counted to a stack."""
    return {"frame": frame, "action": action, **STEP, "age": ((), np.uint8)}


class FrameStore:
    """One row a frame: an episode of T steps takes T + 1 rows, the last of which holds only its final frame.

    The newest row holds the frame that the next step starts from; ``add`` fills in that step and appends its next
    frame, so a checkpoint, whose rows must stay as they are, may be taken between episodes only.

    Transitions are numbered as they are played, without gaps. Those that may be drawn are the ones from ``first`` to
    ``stop``: rows are overwritten from the oldest on, and with them go the transitions whose stack needs them. An
    n-step window only needs newer rows.
    """

    def __init__(self, windows: Windows, *, stack: int) -> None:
        ring = windows.ring
        if ring.capacity <= stack:
            raise ConfigError(
                f"buffer_size {ring.capacity} cannot hold a stack of {stack} frames and the one after it; "
                f"choose at least {stack + 1}"
            )
        self.ring = ring
        self.stack = stack
        self.first = self.stop = 0
        self._channels = ring.columns["frame"].shape[1]
        self._row_of = np.zeros(ring.capacity, np.int64)  # of transition i, in slot i % capacity
        self._windows = windows
        self._scratch = Scratch()

    def add(self, *, obs: Array, action: Any, reward: float, next_obs: Array, discount: float, last: bool) -> None:
        """Store one step. ``obs`` is the ``next_obs`` of the step before, or an episode's first."""
        ring = self.ring
        if self._between_episodes():
            if obs[: -self._channels].any():
                raise ConfigError(
                    "a stack must hold zeros before an episode's first frame; make it with "
                    'gymnasium.wrappers.FrameStackObservation(env, count, padding_type="zero")'
                )
            self._append(obs, age=0)
        slot = (ring.total - 1) % ring.capacity
        ring.amend({"action": action, "reward": reward, "discount": discount, "last": last})
        self._row_of[self.stop % ring.capacity] = ring.total - 1
        self.stop += 1
        self._append(next_obs, age=min(int(ring.columns["age"][slot]) + 1, self.stack))
        self._forget_broken_stacks()

    def _between_episodes(self) -> bool:
        """Whether the newest row is no step's start: an episode ended with the step before it, or there is no row."""
        return self.ring.total == 0 or bool(self.ring.columns["last"][(self.ring.total - 2) % self.ring.capacity])

    def _append(self, obs: Array, age: int) -> None:
        self.ring.append({"frame": obs[-self._channels :], "age": age, **_NO_STEP})

    def _forget_broken_stacks(self) -> None:
        """Move ``first`` past the transitions that need a frame which is overwritten."""
        capacity, age = self.ring.capacity, self.ring.columns["age"]
        while self.first < self.stop:
            row = self._row_of[self.first % capacity]
            # an overwritten row has another's age by now, and is left out whatever that is
            if row - min(int(age[row % capacity]), self.stack - 1) >= self.ring.oldest:
                return
            self.first += 1

    def gather(self, transitions: Array, device: torch.device) -> Batch:
        """The n-step transitions of these numbers, their frames as they came (uint8)."""
        columns, capacity, channels = self.ring.columns, self.ring.capacity, self._channels
        rows = self._row_of[transitions % capacity]
        reward, discount, end = self._windows.returns(rows, self.ring.total - 1)
        if self._windows.n_step == 1:  # the two stacks have all frames but one in common, and share them
            frames = self._stacks(rows, np.arange(1 - self.stack, 2), device)
            obs, next_obs = frames[:, :-channels], frames[:, channels:]
        else:
            obs, next_obs = self._stacks(np.stack([rows, end + 1]), np.arange(1 - self.stack, 1), device)
        step = {"action": columns["action"].take(rows % capacity, 0), "reward": reward, "discount": discount}
        return Batch(obs=obs, next_obs=next_obs, **to_tensors(step, device))

    def _stacks(self, rows: Array, around: Array, device: torch.device) -> Tensor:
        """The frames around each row, gathered and moved once: (*rows, around * channels, height, width)."""
        capacity, column, age = self.ring.capacity, self.ring.columns["frame"], self.ring.columns["age"]
        slots = (rows[..., None] + around) % capacity  # (*rows, around)
        frames = self._scratch.array((*slots.shape, *column.shape[1:]), column.dtype)
        column.take(slots, 0, out=frames, mode="clip")  # the default mode would copy twice
        before_the_episode = age[rows % capacity][..., None] < -around
        if before_the_episode.any():
            frames[before_the_episode] = 0
        moved = torch.from_numpy(frames).to(device)  # done when it returns: the array is used again
        return moved.flatten(slots.ndim - 1, slots.ndim)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs besides the ring's rows."""
        return {"rows": self.ring.total, "transitions": self.stop}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Find the transitions in the rows that the ring got back."""
        check_rows(self.ring, state)
        rows = np.arange(self.ring.oldest, self.ring.total - 1)
        follows = self.ring.columns["age"][(rows + 1) % self.ring.capacity] > 0
        steps = rows[follows]  # the others hold final frames
        self.stop = int(state["transitions"])
        self.first = self.stop - len(steps)
        self._row_of[np.arange(self.first, self.stop) % self.ring.capacity] = steps
        self._forget_broken_stacks()


class Scratch:
    """Arrays for batches of frames, reused once the batch is released.

    A fresh array of 90 MB costs as much in page faults as it takes to fill. Two are kept: the last batch is often
    still held while the next one is made.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[Array, weakref.ref[Array]]] = []

    def array(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """An array of any content. Hand out this very object, or a tensor made of it, never a slice of it.

        A tensor references the array it was made of; a slice would reference only the array below it.
        """
        free = [whole for whole, handed_out in self._kept if handed_out() is None and whole.shape == shape]
        whole = free[0] if free else np.empty(shape, dtype)
        array = whole.view()
        others = [kept for kept in self._kept if kept[0] is not whole]
        self._kept = [(whole, weakref.ref(array)), *others[:1]]
        return array
