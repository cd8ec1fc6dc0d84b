"""Settings of ``sac``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peer_rl.errors import ConfigError
from peer_rl.settings.fields import TABLE_STATE, Checked, Positive, PositiveFraction, of, part
from peer_rl.settings.networks import ActorConfig, CriticConfig

SB3_SAC = "Stable-Baselines3, the paper's SAC on MuJoCo"


@dataclass(frozen=True)
class SACConfig(Checked):
    """SAC (Haarnoja et al. 2018) with twin critics and a learned temperature."""

    actor_learning_rate: Positive[float] = of(3e-4, TABLE_STATE)
    """Adam's learning rate for the actor."""
    critic_learning_rate: Positive[float] = of(3e-4, TABLE_STATE)
    """Adam's learning rate for the critics."""
    temperature_learning_rate: Positive[float] = of(1e-4, TABLE_STATE)
    """Adam's learning rate for the logarithm of the temperature."""
    temperature_beta1: float = of(0.9, SB3_SAC)
    """Adam's beta1 for the logarithm of the temperature."""
    initial_temperature: Positive[float] = of(1.0, SB3_SAC)
    """Initial weight of the entropy (alpha)."""
    target_entropy: float | None = None
    """Target entropy of the policy; not given: minus the number of action units."""
    tau: PositiveFraction = of(5e-3, TABLE_STATE)
    """Fraction of the online critics in each update of the targets (eta in the paper)."""
    target_every: Positive[int] = of(2, TABLE_STATE)
    """Critic updates between updates of the target networks."""
    policy_every: Positive[int] = of(1, SB3_SAC)
    """Critic updates between updates of the actor and the temperature."""
    log_std_low: float = of(-20.0, SB3_SAC)
    """Lower bound of the log standard deviation of the policy."""
    log_std_high: float = of(2.0, SB3_SAC)
    """Upper bound of the log standard deviation of the policy."""
    log_std_by: Literal["clip", "tanh"] = of("clip", SB3_SAC)
    """How the log standard deviation is bounded."""
    compile: bool = False
    """torch.compile for the losses: for accelerators; on a CPU the plain update is faster."""
    actor: ActorConfig = part(ActorConfig(), hidden=TABLE_STATE, weight_init=SB3_SAC, bias_init=SB3_SAC)
    """The actor's network."""
    critic: CriticConfig = part(CriticConfig(), hidden=TABLE_STATE, weight_init=SB3_SAC, bias_init=SB3_SAC)
    """The critics' networks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.temperature_beta1 < 1:
            raise ConfigError(f"temperature_beta1 must be in [0, 1), but is {self.temperature_beta1}")
        if not self.log_std_low < self.log_std_high:
            raise ConfigError(f"log_std_low must be below log_std_high, but is {self.log_std_low}")
