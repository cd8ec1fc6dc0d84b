"""Hyper-parameters of the agents for continuous actions that see frames."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from peer_rl.configs.actor_critic import SACConfig
from peer_rl.configs.checks import check_fraction, check_not_negative, check_positive
from peer_rl.configs.networks import ActorConfig, CriticConfig, EncoderConfig
from peer_rl.errors import ConfigError


def _actor() -> ActorConfig:
    return ActorConfig(hidden=(1024, 1024), weight_init="orthogonal", bias_init="zero")


def _critic() -> CriticConfig:
    return CriticConfig(hidden=(1024, 1024), weight_init="orthogonal", bias_init="zero")


def _encoder(weight_init: Literal["orthogonal", "delta-orthogonal"]) -> EncoderConfig:
    return EncoderConfig(channels=(32,) * 4, kernels=(3,) * 4, strides=(2, 1, 1, 1), weight_init=weight_init)


def _orthogonal() -> EncoderConfig:
    return _encoder("orthogonal")


def _delta_orthogonal() -> EncoderConfig:
    return _encoder("delta-orthogonal")


@dataclass(frozen=True)
class PixelSACConfig(SACConfig):
    """SAC on convolutions that actor and critics share."""

    actor_learning_rate: float = 1e-3
    """Adam's step size for the actor."""
    critic_learning_rate: float = 1e-3
    """Adam's step size for the critics and, by their loss, the encoder."""
    temperature_learning_rate: float = 1e-4
    """Adam's step size for the logarithm of the temperature."""
    initial_temperature: float = 0.1
    """The entropy's weight (alpha) at the start."""
    tau: float = 0.01
    """Share of the online Q functions that enters the targets at each of their updates (eta in the paper)."""
    encoder_tau: float = 0.05
    """Share of the critics' convolutions and latent that enters the targets at each of their updates."""
    target_every: int = 2
    """Critic updates to one update of the target networks."""
    policy_every: int = 2
    """Critic updates to one update of the actor and the temperature."""
    log_std_low: float = -10.0
    """Lowest logarithm of the policy's standard deviation."""
    log_std_by: Literal["clip", "tanh"] = "tanh"
    """How the logarithm is kept within its bounds."""
    latent: int = 50
    """Units that the convolutions are summed up in, one set for the actor and one for the critics."""
    latent_tanh: bool = True
    """Whether the latent goes through a tanh after its LayerNorm."""
    actor: ActorConfig = field(default_factory=_actor)
    """The actor's network."""
    critic: CriticConfig = field(default_factory=_critic)
    """The critics' networks."""
    encoder: EncoderConfig = field(default_factory=_delta_orthogonal)
    """The convolutions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("encoder_tau", self.encoder_tau, above_zero=True)
        check_positive("latent", self.latent)


@dataclass(frozen=True)
class CURLSACConfig(PixelSACConfig):
    """SAC with CURL's contrastive loss (Laskin et al. 2020) on random crops."""

    temperature_beta1: float = 0.5
    """Adam's first decay for the logarithm of the temperature."""
    latent_tanh: bool = False
    """Whether the latent goes through a tanh after its LayerNorm; what CURL compares is unbounded."""
    crop: int = 84
    """Side of the square that is cut out of each frame: at random in updates, from the middle in acting."""
    contrastive_learning_rate: float = 1e-3
    """Adam's step size for the contrastive loss: encoder, critics' latent and bilinear form."""
    step_encoder_twice: bool = False
    """A second optimizer takes another step of the encoder down the same contrastive gradient: a bug behind
    published numbers."""
    omit_last_offset: bool = False
    """Random crops never touch the frame's lower or right edge: a bug behind published numbers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("crop", self.crop)
        check_positive("contrastive_learning_rate", self.contrastive_learning_rate)


@dataclass(frozen=True)
class DrQSACConfig(PixelSACConfig):
    """SAC with DrQ (Kostrikov et al. 2021): losses and targets over several random shifts of each state."""

    temperature_learning_rate: float = 1e-3
    """Adam's step size for the logarithm of the temperature."""
    encoder_tau: float = 0.01
    """Share of the critics' convolutions and latent that enters the targets at each of their updates."""
    views: int = 2
    """Shifts of s, and of s', in one update (K and M in DrQ's paper)."""
    shift: int = 4
    """Pixels that a frame is shifted at most, each way; what comes in is the border repeated."""
    encoder: EncoderConfig = field(default_factory=_orthogonal)
    """The convolutions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("views", self.views)
        check_not_negative("shift", self.shift)


@dataclass(frozen=True)
class SACAEConfig(PixelSACConfig):
    """SAC+AE (Yarats et al. 2021): the encoder also learns to reconstruct what it saw."""

    temperature_beta1: float = 0.5
    """Adam's first decay for the logarithm of the temperature."""
    reconstruction_learning_rate: float = 1e-3
    """Adam's step size for the reconstruction: encoder, critics' latent and decoder."""
    latent_penalty: float = 1e-6
    """Weight of half the latent's squared norm in the reconstruction's loss."""
    decoder_decay: float = 1e-7
    """Weight of half the decoder's squared weights in the reconstruction's loss."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("reconstruction_learning_rate", self.reconstruction_learning_rate)
        check_not_negative("latent_penalty", self.latent_penalty)
        check_not_negative("decoder_decay", self.decoder_decay)


@dataclass(frozen=True)
class DrQv2Config:
    """DrQ-v2 (Yarats et al. 2022): a deterministic policy, twin critics, one shift, no target encoder."""

    actor_learning_rate: float = 1e-4
    """Adam's step size for the actor."""
    critic_learning_rate: float = 1e-4
    """Adam's step size for the critics and, by their loss, the encoder."""
    tau: float = 0.01
    """Share of the online critics that enters the targets at each update."""
    noise_start: float = 1.0
    """Standard deviation of the noise on actions when the random phase has ended."""
    noise_final: float = 0.1
    """Standard deviation of the noise on actions in the long run."""
    noise_steps: int = 50_000
    """Acting steps over which it falls linearly; its own horizon, whatever --steps says."""
    smoothing_clip: float = 0.3
    """Largest noise on an action that a loss reads; its standard deviation is that of acting."""
    shift: int = 4
    """Pixels that a frame is shifted at most, each way; what comes in is the border repeated."""
    latent: int = 50
    """Units that the convolutions are summed up in, one set for the actor and one for the critics."""
    actor: ActorConfig = field(default_factory=_actor)
    """The actor's network."""
    critic: CriticConfig = field(default_factory=_critic)
    """The critics' networks."""
    encoder: EncoderConfig = field(default_factory=_orthogonal)
    """The convolutions."""

    def __post_init__(self) -> None:
        for name in ("actor_learning_rate", "critic_learning_rate", "noise_steps", "latent"):
            check_positive(name, getattr(self, name))
        check_fraction("tau", self.tau, above_zero=True)
        for name in ("noise_start", "noise_final", "smoothing_clip", "shift"):
            check_not_negative(name, getattr(self, name))
        if self.noise_final > self.noise_start:
            raise ConfigError(f"noise_final must be at most noise_start, but is {self.noise_final}")
