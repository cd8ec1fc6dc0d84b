"""Settings of ``curl-sac``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.fields import Positive, of, part
from peer_rl.settings.networks import ActorConfig, CriticConfig
from peer_rl.settings.pixel_sac import (
    CURL_CODE,
    FOUR_CONVOLUTIONS,
    TABLE_DMC_CURL,
    WIDE_ACTOR,
    WIDE_CRITIC,
    PixelSACConfig,
)
from peer_rl.settings.run import LearningConfig


@dataclass(frozen=True)
class CURLSACConfig(PixelSACConfig):
    """SAC with CURL's contrastive loss (Laskin et al. 2020) on random crops."""

    actor_learning_rate: float = of(1e-3, TABLE_DMC_CURL)
    critic_learning_rate: float = of(1e-3, TABLE_DMC_CURL)
    temperature_learning_rate: float = of(1e-4, TABLE_DMC_CURL)
    temperature_beta1: float = of(0.5, "CURL's code and the PEER authors'; the paper's table prints 0.9")
    initial_temperature: float = of(0.1, "CURL's code and the PEER authors'; the paper's table prints 0.99")
    tau: float = of(0.01, TABLE_DMC_CURL)
    target_every: int = of(2, TABLE_DMC_CURL)
    policy_every: int = of(2, CURL_CODE)
    log_std_low: float = of(-10.0, CURL_CODE)
    log_std_high: float = of(2.0, CURL_CODE)
    actor: ActorConfig = part(WIDE_ACTOR, hidden=TABLE_DMC_CURL)
    critic: CriticConfig = part(WIDE_CRITIC, hidden=TABLE_DMC_CURL)
    encoder_tau: float = of(0.05, TABLE_DMC_CURL)
    latent: int = of(50, TABLE_DMC_CURL)
    latent_tanh: bool = of(False, CURL_CODE)
    encoder: EncoderConfig = part(
        replace(FOUR_CONVOLUTIONS, weight_init="delta-orthogonal"),
        channels=TABLE_DMC_CURL,
        **dict.fromkeys(("kernels", "strides", "weight_init"), CURL_CODE),
    )
    crop: Positive[int] = of(84, TABLE_DMC_CURL)
    """Side of the crop in pixels: random in updates, central in acting."""
    contrastive_learning_rate: Positive[float] = of(1e-3, TABLE_DMC_CURL)
    """Adam's learning rate for the contrastive loss: encoder, critics' latent and bilinear form."""
    step_encoder_twice: bool = False
    """A second optimizer steps the encoder again down the same contrastive gradient: a bug of CURL's code."""
    omit_last_offset: bool = False
    """Random crops never touch the frame's lower or right edge: a bug of CURL's code."""


@dataclass(frozen=True)
class CURLSACLearning(LearningConfig):
    """Replay and update schedule of ``curl-sac``."""

    gamma: float = of(0.99, TABLE_DMC_CURL)
    buffer_size: int = of(100_000, TABLE_DMC_CURL)
    batch_size: int = of(512, TABLE_DMC_CURL)
    start_steps: int = of(1_000, TABLE_DMC_CURL)
