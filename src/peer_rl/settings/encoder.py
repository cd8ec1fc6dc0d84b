"""Shape and initial weights of the convolutions that read frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peer_rl.errors import ConfigError
from peer_rl.settings.fields import Checked, Positive


@dataclass(frozen=True)
class EncoderConfig(Checked):
    """The convolutions in front of a critic that sees pixels. The defaults are DQN's (Mnih et al. 2015)."""

    section = "encoder."

    channels: tuple[Positive[int], ...] = (32, 64, 64)
    """Filters of each convolution, ReLU after each."""
    kernels: tuple[Positive[int], ...] = (8, 4, 3)
    """Kernel size of each convolution."""
    strides: tuple[Positive[int], ...] = (4, 2, 1)
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
        super().__post_init__()
