"""Settings of ``redq``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peer_rl.errors import ConfigError
from peer_rl.settings.fields import TABLE_STATE, of, part
from peer_rl.settings.networks import ActorConfig, CriticConfig
from peer_rl.settings.run import StateLearning
from peer_rl.settings.sac import SACConfig

REDQ_CODE = "the REDQ authors' code"


@dataclass(frozen=True)
class REDQConfig(SACConfig):
    """REDQ (Chen et al. 2021): SAC with N critics, a target from M of them, and many updates per step."""

    temperature_learning_rate: float = of(3e-4, REDQ_CODE)
    temperature_beta1: float = of(0.9, REDQ_CODE)
    initial_temperature: float = of(1.0, REDQ_CODE)
    target_every: int = of(1, REDQ_CODE)
    policy_every: int = of(20, REDQ_CODE)
    log_std_low: float = of(-20.0, REDQ_CODE)
    log_std_high: float = of(2.0, REDQ_CODE)
    log_std_by: Literal["clip", "tanh"] = of("clip", REDQ_CODE)
    actor: ActorConfig = part(
        ActorConfig(weight_init="xavier", bias_init="zero"),
        hidden=TABLE_STATE,
        weight_init=REDQ_CODE,
        bias_init=REDQ_CODE,
    )
    critic: CriticConfig = part(
        CriticConfig(weight_init="xavier", bias_init="zero"),
        hidden=TABLE_STATE,
        weight_init=REDQ_CODE,
        bias_init=REDQ_CODE,
    )
    heads: int = of(10, REDQ_CODE)
    """Number of critics (N)."""
    target_heads: int = of(2, REDQ_CODE)
    """Critics drawn for each TD target (M)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.target_heads <= self.heads:
            raise ConfigError(f"target_heads must be from 1 to heads, {self.heads}, but is {self.target_heads}")


@dataclass(frozen=True)
class REDQLearning(StateLearning):
    """Replay and update schedule of ``redq``."""

    start_steps: int = of(5_000, REDQ_CODE)
    updates: int = of(20, REDQ_CODE)
