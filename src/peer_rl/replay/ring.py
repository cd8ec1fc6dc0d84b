"""The rows under every replay: named columns that keep the newest ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

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
