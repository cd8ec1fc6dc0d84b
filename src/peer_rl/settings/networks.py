"""Shapes and initial weights of networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peer_rl.errors import ConfigError
from peer_rl.settings.fields import check_positive


@dataclass(frozen=True)
class ActorConfig:
    """The actor's network."""

    hidden: tuple[int, ...] = (256, 256)
    """Units of each hidden layer, ReLU after each."""
    weight_init: Literal["uniform", "orthogonal", "xavier"] = "uniform"
    """Initial weights: uniform is PyTorch's own, U(-1/sqrt(inputs), 1/sqrt(inputs))."""
    bias_init: Literal["uniform", "zero"] = "uniform"
    """Initial biases: uniform is PyTorch's own, with the bounds of the weights."""

    def __post_init__(self) -> None:
        _check_layers("actor.hidden", self.hidden, "the policy needs one")


@dataclass(frozen=True)
class CriticConfig:
    """The critic's network."""

    hidden: tuple[int, ...] = (256, 256)
    """Units of each hidden layer, ReLU after each; the last one is the representation phi."""
    weight_init: Literal["uniform", "orthogonal", "xavier"] = "uniform"
    """Initial weights: uniform is PyTorch's own, U(-1/sqrt(inputs), 1/sqrt(inputs))."""
    bias_init: Literal["uniform", "zero"] = "uniform"
    """Initial biases: uniform is PyTorch's own, with the bounds of the weights."""
    layer_norm: bool = False
    """LayerNorm before each ReLU: a control to compare PEER with."""

    def __post_init__(self) -> None:
        _check_layers("critic.hidden", self.hidden, "its output is phi")


def _check_layers(name: str, hidden: tuple[int, ...], reason: str) -> None:
    if not hidden:
        raise ConfigError(f"{name} must name at least one layer: {reason}")
    for units in hidden:
        check_positive(name, units)


@dataclass(frozen=True)
class EncoderConfig:
    """The convolutions in front of a critic that sees pixels. The defaults are DQN's (Mnih et al. 2015)."""

    channels: tuple[int, ...] = (32, 64, 64)
    """Filters of each convolution, ReLU after each."""
    kernels: tuple[int, ...] = (8, 4, 3)
    """Kernel size of each convolution."""
    strides: tuple[int, ...] = (4, 2, 1)
    """Stride of each convolution."""
    padding: Literal["valid", "same"] = "valid"
    """same: padded with zeros as TensorFlow does, so that only the strides reduce the frame's size."""
    weight_init: Literal["uniform", "orthogonal", "delta-orthogonal", "xavier"] = "uniform"
    """Initial weights: uniform is PyTorch's own; orthogonal has ReLU's gain and zero biases; delta-orthogonal has
    them at each filter's centre and zeros around it; xavier has zero biases."""

    def __post_init__(self) -> None:
        if not len(self.channels) == len(self.kernels) == len(self.strides) > 0:
            raise ConfigError(
                f"encoder.channels, kernels and strides must be equally many, and one at least, "
                f"not {len(self.channels)}, {len(self.kernels)} and {len(self.strides)}"
            )
        for name in ("channels", "kernels", "strides"):
            for value in getattr(self, name):
                check_positive(f"encoder.{name}", value)
