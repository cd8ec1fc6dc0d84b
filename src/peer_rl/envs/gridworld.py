"""The paper's grid world (section 3, figure 3).

The figure is not in the paper's source, so the layout is ours: 4 rows of 5 cells, states 0 to 19 in reading
order, start and S_T in opposite corners, S_1 next to S_T, S_2 next to S_1. Reaching S_T pays 10 and ends the
episode; every other step pays 0; bumping into a wall leaves the agent where it is.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

ROWS, COLUMNS = 4, 5
STATES = ROWS * COLUMNS
START, GOAL = 0, STATES - 1
S1, S2 = GOAL - 1, GOAL - 2
REWARD = 10.0
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
"""up, down, left, right"""
SHORTEST = ROWS + COLUMNS - 2
"""Steps of the best policy."""


def move(state: int, action: int) -> int:
    """The cell that ``action`` leads to from ``state``."""
    row, column = divmod(state, COLUMNS)
    down, right = MOVES[action]
    row = min(max(row + down, 0), ROWS - 1)
    column = min(max(column + right, 0), COLUMNS - 1)
    return row * COLUMNS + column


class GridWorld(gym.Env[np.int64, np.int64]):
    """States are integers from 0 to 19, as in the paper's table; a run's encoding decides how networks read them."""

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(self, render_mode: str | None = None) -> None:
        self.observation_space = spaces.Discrete(STATES)
        self.action_space = spaces.Discrete(len(MOVES))
        self.render_mode = render_mode
        self._state = START

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Back to the start corner."""
        super().reset(seed=seed)
        self._state = START
        return np.int64(self._state), {}

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """One move. The time limit is Gymnasium's, so an episode is never truncated here."""
        self._state = move(self._state, int(action))
        arrived = self._state == GOAL
        return np.int64(self._state), REWARD if arrived else 0.0, arrived, False, {}

    def render(self) -> Any:
        """The grid as text, or as an image of 32 x 32 pixels a cell."""
        if self.render_mode == "rgb_array":
            cells = np.full((ROWS, COLUMNS, 3), 255, dtype=np.uint8)
            cells[divmod(GOAL, COLUMNS)] = (220, 50, 47)
            for state in (S1, S2):
                cells[divmod(state, COLUMNS)] = (170, 170, 170)
            cells[divmod(self._state, COLUMNS)] = (38, 139, 210)
            picture = cells.repeat(32, axis=0).repeat(32, axis=1)
            picture[::32] = picture[:, ::32] = 200  # lines between the cells
            return picture
        signs = ["A" if s == self._state else "T" if s == GOAL else "." for s in range(STATES)]
        return "\n".join("".join(signs[row * COLUMNS : (row + 1) * COLUMNS]) for row in range(ROWS))


gym.register("peer-rl/GridWorld-v0", entry_point="peer_rl.envs.gridworld:GridWorld", max_episode_steps=100)
