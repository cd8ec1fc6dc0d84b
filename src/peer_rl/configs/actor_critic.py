"""Hyper-parameters of the agents for continuous actions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from peer_rl.configs.checks import check_fraction, check_not_negative, check_positive
from peer_rl.configs.networks import ActorConfig, CriticConfig
from peer_rl.errors import ConfigError


@dataclass(frozen=True)
class TD3Config:
    """TD3 (Fujimoto et al. 2018): twin critics, a delayed actor, a smoothed target; actions are in [-1, 1]."""

    actor_learning_rate: float = 3e-4
    """Adam's step size for the actor."""
    critic_learning_rate: float = 3e-4
    """Adam's step size for the critics."""
    tau: float = 0.005
    """Share of the online networks that enters the targets at each of their updates (eta in the paper)."""
    policy_every: int = 2
    """Critic updates to one update of the actor and of all target networks (d in the paper)."""
    exploration_noise: float = 0.1
    """Standard deviation of the Gaussian noise on actions in training."""
    smoothing_noise: float = 0.2
    """Standard deviation of the noise on the target policy's action."""
    smoothing_clip: float = 0.5
    """Largest noise on the target policy's action."""
    compile: bool = False
    """torch.compile for the losses: for accelerators; on a CPU the plain update is quicker."""
    actor: ActorConfig = field(default_factory=ActorConfig)
    """The actor's network."""
    critic: CriticConfig = field(default_factory=CriticConfig)
    """The critics' networks."""

    def __post_init__(self) -> None:
        check_positive("actor_learning_rate", self.actor_learning_rate)
        check_positive("critic_learning_rate", self.critic_learning_rate)
        check_fraction("tau", self.tau, above_zero=True)
        check_positive("policy_every", self.policy_every)
        for name in ("exploration_noise", "smoothing_noise", "smoothing_clip"):
            check_not_negative(name, getattr(self, name))


@dataclass(frozen=True)
class METD3Config(TD3Config):
    """METD3 (MEPG on TD3): one dropout mask on each critic and its target."""

    dropout: float = 0.1
    """Share of the critic's last hidden units that a mask puts out."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must be in [0, 1), but is {self.dropout}")


@dataclass(frozen=True)
class SACConfig:
    """SAC (Haarnoja et al. 2018) with twin critics and a learned temperature."""

    actor_learning_rate: float = 3e-4
    """Adam's step size for the actor."""
    critic_learning_rate: float = 3e-4
    """Adam's step size for the critics."""
    temperature_learning_rate: float = 3e-4
    """Adam's step size for the logarithm of the temperature."""
    temperature_beta1: float = 0.9
    """Adam's first decay for the logarithm of the temperature."""
    initial_temperature: float = 1.0
    """The entropy's weight (alpha) at the start."""
    target_entropy: float | None = None
    """Entropy that the temperature steers to; without it, minus the number of action units."""
    tau: float = 0.005
    """Share of the online critics that enters the targets at each of their updates (eta in the paper)."""
    target_every: int = 1
    """Critic updates to one update of the target networks."""
    policy_every: int = 1
    """Critic updates to one update of the actor and the temperature."""
    log_std_low: float = -20.0
    """Lowest logarithm of the policy's standard deviation."""
    log_std_high: float = 2.0
    """Highest logarithm of the policy's standard deviation."""
    log_std_by: Literal["clip", "tanh"] = "clip"
    """How the logarithm is kept within its bounds."""
    compile: bool = False
    """torch.compile for the losses: for accelerators; on a CPU the plain update is quicker."""
    actor: ActorConfig = field(default_factory=ActorConfig)
    """The actor's network."""
    critic: CriticConfig = field(default_factory=CriticConfig)
    """The critics' networks."""

    def __post_init__(self) -> None:
        for name in (
            "actor_learning_rate",
            "critic_learning_rate",
            "temperature_learning_rate",
            "initial_temperature",
            "target_every",
            "policy_every",
        ):
            check_positive(name, getattr(self, name))
        check_fraction("tau", self.tau, above_zero=True)
        if not 0 <= self.temperature_beta1 < 1:
            raise ConfigError(f"temperature_beta1 must be in [0, 1), but is {self.temperature_beta1}")
        if not self.log_std_low < self.log_std_high:
            raise ConfigError(f"log_std_low must be below log_std_high, but is {self.log_std_low}")


@dataclass(frozen=True)
class REDQConfig(SACConfig):
    """REDQ (Chen et al. 2021): SAC with N critics, a target from M of them, and many updates per step."""

    policy_every: int = 20
    """Critic updates to one update of the actor and the temperature."""
    heads: int = 10
    """Critics (N)."""
    target_heads: int = 2
    """Critics drawn for each target (M)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.target_heads <= self.heads:
            raise ConfigError(f"target_heads must be from 1 to heads, {self.heads}, but is {self.target_heads}")
