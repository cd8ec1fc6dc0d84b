"""What a world-model agent remembers while it acts: a state and the last action for each row.

Training and evaluation have separate memories, so evaluation changes nothing (law 2). A memory is empty at an episode's
start, when checkpoints are taken, so none is saved (law 3).
"""

from __future__ import annotations

import torch
from torch import Tensor

from peer_rl.agents import Array
from peer_rl.networks.rssm import State
from peer_rl.networks.world_model import WorldModel
from peer_rl.rng import Stream


class Beliefs:
    """The posterior after each observation of an episode."""

    def __init__(self, model: WorldModel, device: torch.device) -> None:
        self.model, self.device = model, device
        self._kept: dict[bool, tuple[State, Tensor]] = {}

    def after(self, obs: Array, first: Array, explore: bool, rng: Stream) -> State:
        """The state after another observation of each row."""
        rows = len(obs)
        kept = self._kept.get(explore)
        begins = torch.as_tensor(first, dtype=torch.float32, device=self.device)
        if kept is None or len(kept[1]) != rows:  # nothing remembered yet, or of other rows
            begins = torch.ones(rows, device=self.device)
            kept = self.model.rssm.start(rows), torch.zeros(rows, self.model.actions, device=self.device)
        seen = self.model.see(torch.from_numpy(obs).to(self.device), rng.torch)
        encoded = self.model.encoder(seen).unsqueeze(0)
        posteriors, _ = self.model.rssm.observe(encoded, kept[1][None], begins[None], rng.torch, kept[0])
        return posteriors.rows(0)

    def keep(self, explore: bool, state: State, action: Tensor) -> None:
        """Remember a state and the action, one-hot if it is discrete, that was taken in it."""
        self._kept[explore] = state, action
