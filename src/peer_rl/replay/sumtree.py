"""Draws in proportion to weights that change with every update."""

from __future__ import annotations

import numpy as np

from peer_rl.replay.store import Array


class SumTree:
    """A binary tree over leaves, each node the sum of its two children; a whole batch goes up or down in one operation.

    Nodes are always computed anew from their children, never moved by a difference, so the tree depends on its leaves
    alone: one that is rebuilt from them is the same bit for bit.
    """

    def __init__(self, leaves: int) -> None:
        self._depth = (leaves - 1).bit_length()
        self._base = 1 << self._depth
        self._nodes = np.zeros(2 * self._base)  # the root is node 1, the children of node i are 2i and 2i + 1
        self.leaves: Array = self._nodes[self._base : self._base + leaves]
        self._changed: list[Array] = []

    @staticmethod
    def bytes_for(leaves: int) -> int:
        """Memory that a tree takes."""
        return 16 << (leaves - 1).bit_length()

    @property
    def total(self) -> float:
        """Sum of all leaves."""
        self._sum_up()
        return float(self._nodes[1])

    def set(self, slots: Array, values: Array) -> None:
        """Change leaves; where a slot comes twice, its last value counts."""
        self.leaves[slots] = values
        self._changed.append(slots)

    def _sum_up(self) -> None:
        """Compute the nodes above changed leaves: once before they are read, however often leaves were changed."""
        if not self._changed:
            return
        nodes, at = self._nodes, np.concatenate(self._changed) + self._base
        self._changed = []
        for _ in range(self._depth):
            at = at >> 1
            left = at << 1
            nodes[at] = nodes.take(left) + nodes.take(left + 1)

    def rebuild(self, leaves: Array) -> None:
        """Exchange all leaves."""
        nodes = self._nodes
        self.leaves[:] = leaves
        self._changed = []
        for depth in reversed(range(self._depth)):
            first = 1 << depth
            children = nodes[2 * first : 4 * first]
            nodes[first : 2 * first] = children[::2] + children[1::2]

    def find(self, targets: Array) -> Array:
        """The leaf in which each target falls, if leaves lie side by side; targets go from 0 to ``total``.

        A leaf of 0 is never found, even where rounding puts a target at or past the end: of two children, one that is
        0 is not entered, and the tree as a whole must not be 0.
        """
        self._sum_up()
        nodes, at = self._nodes, np.ones(len(targets), np.int64)
        for _ in range(self._depth):
            left = at << 1
            below = nodes.take(left)
            to_the_right = (targets >= below) & (nodes.take(left + 1) > 0)
            targets = targets - below * to_the_right
            at = left + to_the_right
        return at - self._base
