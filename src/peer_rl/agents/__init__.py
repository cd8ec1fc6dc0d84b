"""Agents: one file each, with its losses and its update. An agent knows no environment, buffer, file, clock or logger.

This file says what the loop asks of an agent. `td3`, `sac`, `dqn`, `rainbow` and `drq_v2` are whole algorithms;
`metd3` is TD3 with dropout, `redq` SAC with more critics, `pixel_sac` SAC behind an encoder (`curl_sac`, `drq_sac`,
`sac_ae`), `drq_dqn` DQN on augmented frames, `curl_rainbow` Rainbow with a contrastive loss.
`td_mpc` and `planet` plan in a learned model (`planning`), `dreamer` and `dreamer_v2` learn in its `imagination`, and
`beliefs` is what these remember. `make` lists them all and builds the one that a config names, a user's too (`custom`);
`checks` says which environments they refuse, `deterministic` is what an export holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from peer_rl.plugin import Features, Regularizer
from peer_rl.rng import Stream

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TD:
    """One evaluation of the critic on a batch: the loss that PEER is added to, and the features it reads."""

    loss: Tensor
    features: Features
    q: Tensor
    """Mean value of the batch, for the log."""
    row_losses: Tensor | None = None
    """(B,) each transition's own loss, before its importance weight: what a prioritised replay asks for."""


@dataclass(frozen=True)
class Update:
    """What an update returns to the loop. Metrics are scalar tensors, read out once per window."""

    metrics: dict[str, Tensor]
    priorities: Tensor | None = None
    """(B,) new priorities of the batch's transitions, before the exponent; None if the agent has no opinion."""


class Actor(Protocol):
    """Anything that can be evaluated. ``rng`` is the random stream for this purpose."""

    device: torch.device

    def act(self, obs: Array, *, first: Array, explore: bool, rng: Stream) -> Array:
        """Actions for a batch of observations; ``first`` marks rows that begin an episode."""


class Agent(Actor, Protocol):
    """What every agent implements."""

    regularizer: Regularizer

    def update(self, batch: Any, *, index: int, rng: Stream) -> Update:
        """Learn from one Batch, or from Sequences if its settings ask for them; ``index`` counts updates from 0."""

    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed agent needs, as nested dicts of tensors and JSON values."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""


class CriticAgent(Agent, Protocol):
    """An agent whose critic learns from a TD target, so that PEER and the diagnostics apply to it."""

    def value(self, obs: Array) -> Tensor:
        """The critic's value of each observation under the greedy policy, (B,)."""

    def temporal_difference(self, batch: Any, rng: Stream) -> TD:
        """The critic's TD loss on a batch and the features behind it; changes nothing."""

    def critic_parameters(self) -> list[Tensor]:
        """The parameters that the critic's loss trains."""


class Stateful:
    """``state_dict`` and ``load_state_dict`` of the attributes that ``parts`` names; those that are None are left out.

    A part is a tensor, a number, or anything that has both methods itself.
    """

    parts: tuple[str, ...]

    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed agent needs, by the part's name."""
        return {name: _state_of(part) for name, part in self._parts().items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        for name, part in self._parts().items():
            if isinstance(part, Tensor):
                part.detach().copy_(state[name])
            elif isinstance(part, int):
                setattr(self, name, state[name])
            else:
                part.load_state_dict(state[name])

    def _parts(self) -> dict[str, Any]:
        return {name: part for name in self.parts if (part := getattr(self, name)) is not None}


def _state_of(part: Any) -> Any:
    if isinstance(part, Tensor):
        return part.detach()
    return part if isinstance(part, int) else part.state_dict()
