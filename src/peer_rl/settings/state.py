"""Replay, schedule and protocol of the agents that learn from state."""

from __future__ import annotations

from dataclasses import dataclass

from peer_rl.settings.origins import (
    EVERY_CODE,
    TABLE_STATE,
    of,
)
from peer_rl.settings.run import LearningConfig, ProtocolConfig


@dataclass(frozen=True)
class StateLearning(LearningConfig):
    """What the agents from state share: replay and schedule of the paper."""

    gamma: float = of(0.99, TABLE_STATE)
    buffer_size: int = of(1_000_000, TABLE_STATE)
    batch_size: int = of(256, TABLE_STATE)
    start_steps: int = of(25_000, TABLE_STATE)
    n_step: int = of(1, EVERY_CODE)
    update_every: int = of(1, EVERY_CODE)
    updates: int = of(1, EVERY_CODE)


@dataclass(frozen=True)
class StateProtocol(ProtocolConfig):
    """What the agents from state write down while training."""

    diagnose_every: int = of(2_500, "ours: figure 1 does not say how often")
