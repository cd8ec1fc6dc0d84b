"""Settings of ``sac-ae``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.fields import NotNegative, Positive, of, part
from peer_rl.settings.pixel_sac import CURL_CODE, FOUR_CONVOLUTIONS, TABLE_DMC_CURL, PixelSACConfig
from peer_rl.settings.run import LearningConfig

SAC_AE_CODE = "the SAC+AE authors' code"


@dataclass(frozen=True)
class SACAEConfig(PixelSACConfig):
    """SAC+AE (Yarats et al. 2021): the encoder also learns to reconstruct what it saw."""

    actor_learning_rate: float = of(1e-3, SAC_AE_CODE)
    critic_learning_rate: float = of(1e-3, SAC_AE_CODE)
    temperature_learning_rate: float = of(1e-4, SAC_AE_CODE)
    temperature_beta1: float = of(0.5, SAC_AE_CODE)
    initial_temperature: float = of(0.1, SAC_AE_CODE)
    tau: float = of(0.01, SAC_AE_CODE)
    target_every: int = of(2, SAC_AE_CODE)
    policy_every: int = of(2, SAC_AE_CODE)
    log_std_low: float = of(-10.0, SAC_AE_CODE)
    encoder_tau: float = of(0.05, SAC_AE_CODE)
    latent_tanh: bool = of(True, SAC_AE_CODE)
    encoder: EncoderConfig = part(
        replace(FOUR_CONVOLUTIONS, weight_init="delta-orthogonal"),
        channels=TABLE_DMC_CURL,
        kernels=CURL_CODE,
        strides=CURL_CODE,
    )
    reconstruction_learning_rate: Positive[float] = of(1e-3, SAC_AE_CODE)
    """Adam's learning rate for the reconstruction: encoder, critics' latent and decoder."""
    latent_penalty: NotNegative[float] = of(1e-6, SAC_AE_CODE)
    """Weight of half the latent's squared norm in the reconstruction's loss."""
    decoder_decay: NotNegative[float] = of(1e-7, SAC_AE_CODE)
    """Weight of half the decoder's squared weights in the reconstruction's loss."""


@dataclass(frozen=True)
class SACAELearning(LearningConfig):
    """Replay and update schedule of ``sac-ae``."""

    gamma: float = of(0.99, SAC_AE_CODE)
    buffer_size: int = of(100_000, "ours: CURL's and DrQ's; the authors' million would take 21 GB")
    batch_size: int = of(128, SAC_AE_CODE)
    start_steps: int = of(1_000, SAC_AE_CODE)
