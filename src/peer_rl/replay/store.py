"""Transitions in memory: rows in a ring, n-step windows over them, and the store of whole observations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike
from torch import Tensor

Array = np.ndarray[Any, Any]
Columns = dict[str, tuple[tuple[int, ...], DTypeLike]]
"""Shape and type of one row's entry, by the column's name."""


def row_bytes(columns: Columns) -> int:
    """Bytes of one row."""
    return sum(math.prod(shape) * np.dtype(kind).itemsize for shape, kind in columns.values())


class Ring:
    """Rows are numbered 0, 1, 2, ... as they come and keep their number; row i lives in slot i % capacity.

    A checkpoint needs only the rows added since the one before it (``rows``), so saving a million transitions
    costs what was played in the last minute.
    """

    def __init__(self, capacity: int, columns: Columns) -> None:
        self.capacity = capacity
        self.total = 0
        self.row_bytes = row_bytes(columns)
        # zeros are not touched by the system until a row is written, so memory grows with use
        self.columns: dict[str, Array] = {
            name: np.zeros((capacity, *shape), dtype) for name, (shape, dtype) in columns.items()
        }

    @property
    def oldest(self) -> int:
        """Number of the oldest row still here."""
        return max(0, self.total - self.capacity)

    def append(self, row: dict[str, Any]) -> None:
        """Add one row, dropping the oldest if the ring is full."""
        slot = self.total % self.capacity
        for name, column in self.columns.items():
            column[slot] = row[name]
        self.total += 1

    def amend(self, row: dict[str, Any]) -> None:
        """Fill in columns of the newest row; only while no checkpoint has written it, for none writes it again."""
        slot = (self.total - 1) % self.capacity
        for name, value in row.items():
            self.columns[name][slot] = value

    def rows(self, start: int, stop: int) -> dict[str, Array]:
        """Copies of rows ``start`` to ``stop``, all of which must still be here."""
        if not self.oldest <= start <= stop <= self.total:
            raise IndexError(f"rows {start} to {stop} are not all among {self.oldest} to {self.total}")
        slots = np.arange(start, stop) % self.capacity
        return {name: column[slots] for name, column in self.columns.items()}

    def restore(self, start: int, rows: dict[str, Array]) -> None:
        """Put back rows from a checkpoint; they follow each other, and the last call ends at the newest row."""
        count = len(next(iter(rows.values())))
        slots = np.arange(start, start + count) % self.capacity
        for name, column in self.columns.items():
            column[slots] = rows[name]
        self.total = start + count


@dataclass(frozen=True)
class Batch:
    """Transitions (s, a, R, s'), n steps apart."""

    obs: Tensor
    """(B, *observation)"""
    action: Tensor
    """(B,) for discrete actions, (B, A) for continuous ones"""
    reward: Tensor
    """(B,) the n-step return: sum of gamma^k r_k"""
    discount: Tensor
    """(B,) gamma^n, or 0 where the episode terminated: what multiplies the value of next_obs"""
    next_obs: Tensor
    """(B, *observation)"""
    weight: Tensor | None = None
    """(B,) importance weights of a prioritised draw, the largest is 1; None for a uniform one"""

    @classmethod
    def from_numpy(cls, *, device: torch.device, **columns: Array) -> Batch:
        """Columns on ``device``, without a copy on the CPU."""
        return cls(**to_tensors(columns, device))


def to_tensors(columns: dict[str, Array], device: torch.device) -> dict[str, Tensor]:
    """Arrays as tensors on ``device``, without a copy on the CPU."""
    return {name: torch.from_numpy(array).to(device, non_blocking=True) for name, array in columns.items()}


STEP: Columns = {"reward": ((), np.float32), "discount": ((), np.float32), "last": ((), np.bool_)}
"""A row's columns about its step. ``discount`` is 0 where bootstrapping stops, else 1; ``last`` ends the episode."""


class Windows:
    """The next n steps from a row: R = sum_k gamma^k r_k, and gamma^n, or 0 where bootstrapping stops.

    A window ends early at the end of an episode, at a lost life (a row with discount 0) and at the newest step. It then
    is a return of fewer steps, bootstrapped from the state right after it unless that discount is 0: a truncated
    episode, and the newest step, bootstrap (law 5).
    """

    def __init__(self, ring: Ring, *, gamma: float, n_step: int, flat_returns: bool = False) -> None:
        self.ring = ring
        self.gamma, self.n_step = gamma, n_step
        # one factor after the other, in single precision
        self._powers: Array = np.cumprod(np.array([[1.0]] + [[gamma]] * n_step, np.float32), 0)  # (n + 1, 1)
        # the published bug that flat_returns brings back: every reward is multiplied by gamma^n
        self._weights = np.full_like(self._powers[:-1], self._powers[-1]) if flat_returns else self._powers[:-1]
        self._ahead: Array = np.arange(n_step)[:, None]

    def returns(self, rows: Array, stop: int) -> tuple[Array, Array, Array]:
        """Return, discount and last row of the window from each row; the newest step is row ``stop - 1``."""
        columns, capacity = self.ring.columns, self.ring.capacity
        if self.n_step == 1:
            slots = rows % capacity
            return self._weights[0] * columns["reward"][slots], self._powers[1] * columns["discount"][slots], rows
        here = rows + self._ahead  # (n, batch)
        slots = here % capacity
        discount = columns["discount"].take(slots)
        ends = columns["last"].take(slots) | (discount == 0) | (here == stop - 1)
        ends[-1] = True
        length = ends.argmax(0)  # (batch,) steps before the window's last one
        chosen = length, np.arange(len(rows))
        returns = (self._weights * columns["reward"].take(slots)).cumsum(0)[chosen]
        return returns, self._powers[length + 1, 0] * discount[chosen], rows + length


def vector_columns(observation: tuple[tuple[int, ...], str], action: tuple[tuple[int, ...], str]) -> Columns:
    """A row is one transition: both observations, and the step between them."""
    return {"obs": observation, "action": action, **STEP, "next_obs": observation}


class VectorStore:
    """One row a transition, so transitions have the numbers of their rows, and all that are here may be drawn."""

    def __init__(self, windows: Windows) -> None:
        self.ring = windows.ring
        self._windows = windows

    @property
    def first(self) -> int:
        """Number of the oldest transition that may be drawn."""
        return self.ring.oldest

    @property
    def stop(self) -> int:
        """Number of the transition to come."""
        return self.ring.total

    def add(self, *, obs: Array, action: Any, reward: float, next_obs: Array, discount: float, last: bool) -> None:
        """Store one step."""
        self.ring.append(
            {"obs": obs, "action": action, "reward": reward, "discount": discount, "last": last, "next_obs": next_obs}
        )

    def gather(self, transitions: Array, device: torch.device) -> Batch:
        """The n-step transitions of these numbers."""
        columns, capacity = self.ring.columns, self.ring.capacity
        reward, discount, end = self._windows.returns(transitions, self.ring.total)
        slots = transitions % capacity
        return Batch.from_numpy(
            obs=columns["obs"].take(slots, 0),  # faster than columns["obs"][slots]
            action=columns["action"].take(slots, 0),
            reward=reward,
            discount=discount,
            next_obs=columns["next_obs"].take(end % capacity, 0),
            device=device,
        )

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs besides the ring's rows."""
        return {"rows": self.ring.total}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Check that the rows restored are those that were saved."""
        check_rows(self.ring, state)


def check_rows(ring: Ring, state: dict[str, Any]) -> None:
    """Refuse to resume with other rows than were saved."""
    if state["rows"] != ring.total:
        raise ValueError(f"{ring.total} replay rows were restored, but {state['rows']} were saved")
