"""n-step returns, over the rows of any store."""

from __future__ import annotations

import numpy as np

from peer_rl.replay.ring import Array, Columns, Ring

STEP: Columns = {"reward": ((), np.float32), "discount": ((), np.float32), "last": ((), np.bool_)}
"""What a row tells of its step. ``discount`` is 0 where bootstrapping stops, else 1; ``last`` ends the episode."""


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
