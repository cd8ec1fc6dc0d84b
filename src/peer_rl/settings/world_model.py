"""Settings that the world models (PlaNet, Dreamer, Dreamer-V2) share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peer_rl.errors import ConfigError
from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.fields import Checked, Fraction, NotNegative, Positive, of, part
from peer_rl.settings.replay import SequenceConfig
from peer_rl.settings.run import ProtocolConfig

PLANET_CODE = "the PlaNet authors' code"
DREAMER_CODE = "the Dreamer authors' code"
DREAMER_V2_CODE = "the Dreamer-V2 authors' code"


@dataclass(frozen=True)
class RSSMConfig(Checked):
    """The recurrent state-space model: a deterministic belief and a stochastic state."""

    section = "rssm."

    belief: Positive[int] = of(200, PLANET_CODE)
    """Units of the deterministic belief, the GRU's state."""
    hidden: Positive[int] = of(200, PLANET_CODE)
    """Units of the layers before and after the GRU."""
    latent: Literal["gaussian", "categorical"] = of("gaussian", PLANET_CODE)
    """The stochastic state: independent Gaussians, or one-hot vectors with straight-through gradients."""
    variables: Positive[int] = of(30, PLANET_CODE)
    """Number of Gaussians, or of categorical variables."""
    classes: Positive[int] = of(32, DREAMER_V2_CODE + "; no effect on Gaussians")
    """Classes of each categorical variable."""
    least_std: NotNegative[float] = of(0.1, PLANET_CODE)
    """Smallest standard deviation of a Gaussian state."""
    activation: Literal["relu", "elu"] = of("relu", PLANET_CODE)
    """Activation of linear layers: before and after the GRU, in heads, and around state vectors."""
    normalised_gru: bool = of(False, PLANET_CODE)
    """A LayerNorm over all three gates, and an update gate that starts nearly closed (Dreamer-V2)."""


@dataclass(frozen=True)
class WorldModelConfig(Checked):
    """The world model's networks and losses."""

    model_learning_rate: Positive[float] = of(1e-3, PLANET_CODE)
    """Adam's learning rate for the world model."""
    model_epsilon: Positive[float] = of(1e-4, PLANET_CODE)
    """Adam's epsilon for the world model."""
    max_gradient_norm: Positive[float] = of(1000.0, PLANET_CODE)
    """Gradients with a larger norm are scaled down to it, those of each loss by themselves."""
    free_nats: NotNegative[float] = of(3.0, PLANET_CODE)
    """KL divergence of posterior and prior that costs nothing."""
    free_nats_per_step: bool = of(True, PLANET_CODE)
    """Grant the free nats to every step, rather than to the mean over batch and time."""
    kl_balance: Fraction = of(0.5, PLANET_CODE + ": none, which is an equal share")
    """Fraction of the KL's gradient that trains the prior, rather than the posterior."""
    kl_weight: NotNegative[float] = of(1.0, PLANET_CODE)
    """Weight of the KL divergence."""
    reward_weight: NotNegative[float] = of(10.0, PLANET_CODE)
    """Weight of the loss of predicted rewards."""
    tanh_rewards: bool = of(False, PLANET_CODE)
    """Learn from the hyperbolic tangent of each reward; logged returns are the rewards' own (Dreamer-V2 on Atari)."""
    predict_end: bool = of(True, "ours: tasks may terminate; off on DMControl, where none does")
    """Learn to predict whether an episode ends, and stop imagined returns there."""
    end_weight: NotNegative[float] = of(5.0, DREAMER_V2_CODE)
    """Weight of the loss of predicted ends of episodes."""
    image_bits: int = of(5, PLANET_CODE)
    """Bits of a frame's intensities that the model sees, with uniform noise of one level; 8 for all, without noise."""
    units: Positive[int] = of(300, PLANET_CODE)
    """Units of the hidden layers of every head, and of a state vector's encoder and decoder."""
    reward_layers: Positive[int] = of(3, PLANET_CODE)
    """Hidden layers of the reward's and the end's head."""
    vector_layers: NotNegative[int] = of(4, DREAMER_V2_CODE + ", on state vectors")
    """Hidden layers of a state vector's encoder and decoder."""
    convolution_activation: Literal["relu", "elu"] = of("relu", PLANET_CODE)
    """Activation of convolutions, transposed ones too."""
    decoder_channels: tuple[int, ...] = of((128, 64, 32), PLANET_CODE)
    """Filters of each transposed convolution but the last, which gives the frame."""
    decoder_kernels: tuple[int, ...] = of((5, 5, 6, 6), PLANET_CODE)
    """Side of each transposed convolution's filters; strides are 2."""
    rssm: RSSMConfig = part(RSSMConfig())
    """The recurrent state-space model."""
    encoder: EncoderConfig = part(
        EncoderConfig(channels=(32, 64, 128, 256), kernels=(4,) * 4, strides=(2,) * 4, weight_init="xavier"),
        **dict.fromkeys(("channels", "kernels", "strides", "weight_init"), PLANET_CODE),
    )
    """The convolutions, for observations that are frames."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.image_bits <= 8:
            raise ConfigError(f"image_bits must be from 1 to 8, but is {self.image_bits}")
        if len(self.decoder_kernels) != len(self.decoder_channels) + 1:
            raise ConfigError(
                f"decoder_kernels must have one entry more than decoder_channels, not {len(self.decoder_kernels)} "
                f"and {len(self.decoder_channels)}"
            )


@dataclass(frozen=True)
class WorldModelLearning(SequenceConfig):
    """Replay and update schedule of PlaNet."""

    gamma: float = of(0.99, DREAMER_CODE)
    sequence_length: int = of(49, PLANET_CODE + ": 50 observations")
    batch_size: int = of(50, PLANET_CODE)
    buffer_size: int = of(1_000_000, "ours: the authors keep every episode")


@dataclass(frozen=True)
class WorldModelProtocol(ProtocolConfig):
    """What the world models write down while training."""

    diagnose_every: int = of(0, "ours: there is no critic with a TD target to diagnose")
