"""Settings of the agents that learn a distribution of returns from pixels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from peer_rl.configs.checks import check_fraction, check_not_negative, check_positive
from peer_rl.configs.networks import EncoderConfig
from peer_rl.errors import ConfigError


def _data_efficient() -> EncoderConfig:
    return EncoderConfig(channels=(32, 64), kernels=(5, 5), strides=(5, 5))


@dataclass(frozen=True)
class RainbowConfig:
    """Data-efficient Rainbow (van Hasselt et al. 2019): distributional, double, dueling, noisy."""

    learning_rate: float = 1e-4
    """Adam's step size."""
    adam_epsilon: float = 1.5e-4
    """Adam's epsilon."""
    max_gradient_norm: float = 10.0
    """Gradients of all weights together are scaled down to this norm."""
    target_every: int = 2_000
    """Updates between copies of the online network into the target network."""
    hidden: int = 256
    """Units of the hidden layer of each stream, ReLU after it; both together are the representation phi."""
    atoms: int = 51
    """Returns that the distribution knows."""
    lowest_return: float = -10.0
    """The first of them."""
    highest_return: float = 10.0
    """The last of them."""
    noise: float = 0.1
    """Noisy layers' sigma at the start, before it is divided by the square root of their inputs."""
    epsilon_eval: float = 0.001
    """Probability of a random action in evaluation, where the layers' noise is off."""
    features: Literal["penultimate", "conv"] = "penultimate"
    """What PEER reads as phi: the hidden layers of both streams, or the flattened convolutions."""
    blend_losses: bool = False
    """The published code's way: whatever is added to the loss is weighted like a transition, and is in its priority."""
    encoder: EncoderConfig = field(default_factory=_data_efficient)
    """The convolutions."""

    def __post_init__(self) -> None:
        for name in ("learning_rate", "adam_epsilon", "max_gradient_norm", "target_every", "hidden"):
            check_positive(name, getattr(self, name))
        check_not_negative("noise", self.noise)
        check_fraction("epsilon_eval", self.epsilon_eval)
        if self.atoms < 2 or not self.lowest_return < self.highest_return:
            raise ConfigError(
                f"a distribution needs two atoms and a lowest_return below highest_return, "
                f"not {self.atoms} from {self.lowest_return:g} to {self.highest_return:g}"
            )


@dataclass(frozen=True)
class CURLRainbowConfig(RainbowConfig):
    """Rainbow with CURL's contrastive loss (Laskin et al. 2020)."""

    contrastive: float = 1.0
    """Weight of the contrastive loss."""
    contrastive_hidden: int = 256
    """Units of the contrastive head's hidden layer."""
    contrastive_units: int = 128
    """Units of the code that is compared."""
    sharpness: float = 0.1
    """What the contrastive logits are multiplied with."""
    momentum: float = 0.001
    """Share of the online encoder that enters the momentum encoder at each update (tau in the paper)."""
    crop_margin: int = 4
    """Pixels that a view's random crop loses; it is padded by as many on each side and cropped at random again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("contrastive", self.contrastive)
        for name in ("contrastive_hidden", "contrastive_units", "sharpness", "crop_margin"):
            check_positive(name, getattr(self, name))
        check_fraction("momentum", self.momentum, above_zero=True)
