"""Settings of ``drq-v2``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass

from peer_rl.errors import ConfigError
from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.fields import Checked, NotNegative, Positive, PositiveFraction, of, part
from peer_rl.settings.networks import ActorConfig, CriticConfig
from peer_rl.settings.pixel_sac import CURL_CODE, FOUR_CONVOLUTIONS, TABLE_DMC_CURL, WIDE_ACTOR, WIDE_CRITIC
from peer_rl.settings.run import LearningConfig

DRQ_V2_CODE = "the DrQ-v2 authors' code"


@dataclass(frozen=True)
class DrQv2Config(Checked):
    """DrQ-v2 (Yarats et al. 2022): a deterministic policy, twin critics, one shift, no target encoder."""

    actor_learning_rate: Positive[float] = of(1e-4, DRQ_V2_CODE)
    """Adam's learning rate for the actor."""
    critic_learning_rate: Positive[float] = of(1e-4, DRQ_V2_CODE)
    """Adam's learning rate for the critics and, by their loss, the encoder."""
    tau: PositiveFraction = of(0.01, DRQ_V2_CODE)
    """Fraction of the online critics in each update of the targets."""
    noise_start: NotNegative[float] = of(1.0, DRQ_V2_CODE)
    """Standard deviation of the exploration noise at the end of the random phase."""
    noise_final: NotNegative[float] = of(0.1, DRQ_V2_CODE)
    """Final standard deviation of the exploration noise."""
    noise_steps: Positive[int] = of(100_000, DRQ_V2_CODE + ", which counts agent steps: the easy tasks' horizon")
    """Agent steps over which it falls linearly; independent of --steps."""
    smoothing_clip: NotNegative[float] = of(0.3, DRQ_V2_CODE)
    """Clip of the noise on actions in the losses; its standard deviation is that of exploration."""
    shift: NotNegative[int] = of(4, DRQ_V2_CODE)
    """Largest shift of a frame in pixels, in each direction; the border is repeated."""
    latent: Positive[int] = 50
    """Units of the latent between convolutions and MLP, one latent for the actor and one for the critics."""
    actor: ActorConfig = part(WIDE_ACTOR)
    """The actor's network."""
    critic: CriticConfig = part(WIDE_CRITIC)
    """The critics' networks."""
    encoder: EncoderConfig = part(FOUR_CONVOLUTIONS, channels=TABLE_DMC_CURL, kernels=CURL_CODE, strides=CURL_CODE)
    """The convolutions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise_final > self.noise_start:
            raise ConfigError(f"noise_final must be at most noise_start, but is {self.noise_final}")


@dataclass(frozen=True)
class DrQv2Learning(LearningConfig):
    """Replay and update schedule of ``drq-v2``."""

    gamma: float = of(0.99, DRQ_V2_CODE)
    n_step: int = of(3, DRQ_V2_CODE)
    buffer_size: int = of(251_000, "ours: all of the frames; the authors' million would take four times")
    batch_size: int = of(256, DRQ_V2_CODE)
    start_steps: int = of(2_000, DRQ_V2_CODE + ": 4,000 frames")
    update_every: int = of(2, DRQ_V2_CODE)
