"""Settings of ``drq-sac``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass

from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.fields import NotNegative, Positive, of, part
from peer_rl.settings.pixel_sac import CURL_CODE, FOUR_CONVOLUTIONS, TABLE_DMC_CURL, PixelSACConfig
from peer_rl.settings.run import LearningConfig

TABLE_DMC_DRQ = "PEER appendix, DMControl table with DrQ"
DRQ_CODE = "DrQ's code; the paper's table leaves it open"


@dataclass(frozen=True)
class DrQSACConfig(PixelSACConfig):
    """SAC with DrQ (Kostrikov et al. 2021): losses and targets over several random shifts of each state."""

    actor_learning_rate: float = of(1e-3, TABLE_DMC_DRQ)
    critic_learning_rate: float = of(1e-3, TABLE_DMC_DRQ)
    temperature_learning_rate: float = of(1e-3, TABLE_DMC_DRQ)
    initial_temperature: float = of(0.1, TABLE_DMC_DRQ)
    tau: float = of(0.01, TABLE_DMC_DRQ)
    target_every: int = of(2, TABLE_DMC_DRQ)
    policy_every: int = of(2, TABLE_DMC_DRQ)
    log_std_low: float = of(-10.0, TABLE_DMC_DRQ)
    log_std_high: float = of(2.0, TABLE_DMC_DRQ)
    encoder_tau: float = of(0.01, DRQ_CODE)
    latent: int = of(50, DRQ_CODE)
    latent_tanh: bool = of(True, DRQ_CODE)
    encoder: EncoderConfig = part(
        FOUR_CONVOLUTIONS, channels=TABLE_DMC_CURL, kernels=CURL_CODE, strides=CURL_CODE, weight_init=DRQ_CODE
    )
    views: Positive[int] = of(2, DRQ_CODE)
    """Shifts of s, and of s', in one update (K and M in DrQ's paper)."""
    shift: NotNegative[int] = of(4, DRQ_CODE)
    """Largest shift of a frame in pixels, in each direction; the border is repeated."""

    linear_phi: bool = False
    """The critics' last hidden layer has no ReLU, so phi is signed and the inner product unbounded below: the PEER
    authors' code."""


@dataclass(frozen=True)
class DrQSACLearning(LearningConfig):
    """Replay and update schedule of ``drq-sac``."""

    gamma: float = of(0.99, TABLE_DMC_DRQ)
    buffer_size: int = of(100_000, TABLE_DMC_DRQ)
    batch_size: int = of(512, TABLE_DMC_DRQ)
    start_steps: int = of(1_000, TABLE_DMC_DRQ)
