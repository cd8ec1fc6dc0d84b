"""The store under every replay: named columns that keep the newest rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

Array = np.ndarray[Any, Any]


class Ring:
    """Rows are numbered 0, 1, 2, ... as they come and keep their number; row i lives in slot i % capacity.

    A checkpoint needs only the rows added since the one before it (``rows``), so saving a million transitions
    costs what was played in the last minute.
    """

    def __init__(self, capacity: int, columns: dict[str, tuple[tuple[int, ...], DTypeLike]]) -> None:
        self.capacity = capacity
        self.total = 0
        # zeros are not touched by the system until a row is written, so memory grows with use
        self.columns: dict[str, Array] = {
            name: np.zeros((capacity, *shape), dtype) for name, (shape, dtype) in columns.items()
        }

    @property
    def oldest(self) -> int:
        """Number of the oldest row still here."""
        return max(0, self.total - self.capacity)

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return sum(column.nbytes for column in self.columns.values()) // self.capacity

    def append(self, row: dict[str, Any]) -> None:
        """Add one row, dropping the oldest if the ring is full."""
        slot = self.total % self.capacity
        for name, column in self.columns.items():
            column[slot] = row[name]
        self.total += 1

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
