"""Settings that the pixel agents on SAC share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peer_rl.settings.fields import (
    check_fraction,
    check_positive,
    part,
)
from peer_rl.settings.networks import ActorConfig, CriticConfig, EncoderConfig
from peer_rl.settings.sac import SACConfig


@dataclass(frozen=True)
class PixelSACConfig(SACConfig):
    """SAC on convolutions that actor and critics share."""

    actor_learning_rate: float = 1e-3
    critic_learning_rate: float = 1e-3
    initial_temperature: float = 0.1
    tau: float = 0.01
    policy_every: int = 2
    log_std_low: float = -10.0
    log_std_by: Literal["clip", "tanh"] = "tanh"
    actor: ActorConfig = part(ActorConfig(hidden=(1_024, 1_024), weight_init="orthogonal", bias_init="zero"))
    critic: CriticConfig = part(CriticConfig(hidden=(1_024, 1_024), weight_init="orthogonal", bias_init="zero"))
    encoder_tau: float = 0.05
    """Share of the critics' convolutions and latent that enters the targets at each of their updates."""
    latent: int = 50
    """Units that the convolutions are summed up in, one set for the actor and one for the critics."""
    latent_tanh: bool = True
    """Whether the latent goes through a tanh after its LayerNorm."""
    encoder: EncoderConfig = part(
        EncoderConfig(
            channels=(32, 32, 32, 32), kernels=(3, 3, 3, 3), strides=(2, 1, 1, 1), weight_init="delta-orthogonal"
        )
    )
    """The convolutions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("encoder_tau", self.encoder_tau, above_zero=True)
        check_positive("latent", self.latent)
