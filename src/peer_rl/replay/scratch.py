"""Large arrays that are used again."""

from __future__ import annotations

import weakref

import numpy as np
from numpy.typing import DTypeLike

from peer_rl.replay.batch import Array


class Scratch:
    """Arrays of one type for batches of frames, used again once nobody holds the batch any more.

    A fresh array of 90 MB costs as much in page faults as it takes to fill. Two are kept: the last batch is often
    still held while the next one is made.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[Array, weakref.ref[Array]]] = []

    def array(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """An array of any content. Hand out this very object, or a tensor made of it, never a slice of it.

        A tensor holds the object that it was made of, and a slice would hold only what is below it.
        """
        free = [whole for whole, handed_out in self._kept if handed_out() is None and whole.shape == shape]
        whole = free[0] if free else np.empty(shape, dtype)
        array = whole.view()
        others = [kept for kept in self._kept if kept[0] is not whole]
        self._kept = [(whole, weakref.ref(array)), *others[:1]]
        return array
