"""What the loop asks of an agent. An agent knows no environment, buffer, file, clock or logger."""

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
    """What an update tells the loop. Metrics are scalar tensors, read out once per window."""

    metrics: dict[str, Tensor]
    priorities: Tensor | None = None
    """(B,) new priorities of the batch's transitions, before the exponent; None if the agent has no opinion."""


class Actor(Protocol):
    """Whatever can be evaluated. ``rng`` is the run's stream for the purpose at hand."""

    device: torch.device

    def act(self, obs: Array, *, first: Array, explore: bool, rng: Stream) -> Array:
        """Actions for a batch of observations; ``first`` marks rows that begin an episode."""
        ...


class Agent(Actor, Protocol):
    """Every agent of ours."""

    regularizer: Regularizer

    def value(self, obs: Array) -> Tensor:
        """The critic's value of each observation under the greedy policy, (B,)."""
        ...

    def temporal_difference(self, batch: Any, rng: Stream) -> TD:
        """The critic's TD loss on a batch and the features behind it; changes nothing."""
        ...

    def critic_parameters(self) -> list[Tensor]:
        """What the critic's loss trains."""
        ...

    def update(self, batch: Any, *, index: int, rng: Stream) -> Update:
        """Learn from one Batch, or from Sequences if its settings ask for them; ``index`` counts updates from 0."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed agent needs, as nested dicts of tensors and JSON values."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        ...
