"""Shape and initial weights of the convolutions that read frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peer_rl.errors import ConfigError
from peer_rl.settings.fields import check_positive


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
                f"encoder.channels, kernels and strides must have the same length, at least 1, "
                f"not {len(self.channels)}, {len(self.kernels)} and {len(self.strides)}"
            )
        for name in ("channels", "kernels", "strides"):
            for value in getattr(self, name):
                check_positive(f"encoder.{name}", value)
