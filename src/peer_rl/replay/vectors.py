"""A store of whole observations, for those that are small."""

from __future__ import annotations

from typing import Any

import torch

from peer_rl.replay.batch import Array, Batch
from peer_rl.replay.ring import Columns, Ring
from peer_rl.replay.windows import STEP, Windows


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
            {
                "obs": obs,
                "action": action,
                "reward": reward,
                "discount": discount,
                "last": last,
                "next_obs": next_obs,
            }
        )

    def gather(self, transitions: Array, device: torch.device) -> Batch:
        """The n-step transitions of these numbers."""
        columns, capacity = self.ring.columns, self.ring.capacity
        reward, discount, end = self._windows.returns(transitions, self.ring.total)
        slots = transitions % capacity
        return Batch.from_numpy(
            obs=columns["obs"].take(slots, 0),  # quicker than columns["obs"][slots]
            action=columns["action"].take(slots, 0),
            reward=reward,
            discount=discount,
            next_obs=columns["next_obs"].take(end % capacity, 0),
            device=device,
        )

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs beside the ring's rows."""
        return {"rows": self.ring.total}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Check that the rows restored are those that were saved."""
        check_rows(self.ring, state)


def check_rows(ring: Ring, state: dict[str, Any]) -> None:
    """Refuse to go on with other rows than were saved."""
    if state["rows"] != ring.total:
        raise ValueError(f"{ring.total} replay rows were restored, but {state['rows']} were saved")
