"""Shapes and initial weights of actors and critics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peer_rl.errors import ConfigError
from peer_rl.settings.fields import Checked, Positive


@dataclass(frozen=True)
class MLPConfig(Checked):
    """A multi-layer perceptron."""

    hidden: tuple[Positive[int], ...] = (256, 256)
    """Units of each hidden layer, ReLU after each."""
    weight_init: Literal["uniform", "orthogonal", "xavier"] = "uniform"
    """Initial weights: uniform is PyTorch's own, U(-1/sqrt(inputs), 1/sqrt(inputs))."""
    bias_init: Literal["uniform", "zero"] = "uniform"
    """Initial biases: uniform is PyTorch's own, with the bounds of the weights."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.hidden:
            reason = "its output is phi" if isinstance(self, CriticConfig) else "the policy needs one"
            raise ConfigError(f"{self.section}hidden must name at least one layer: {reason}")


@dataclass(frozen=True)
class ActorConfig(MLPConfig):
    """The actor's network."""

    section = "actor."


@dataclass(frozen=True)
class CriticConfig(MLPConfig):
    """The critic's network."""

    section = "critic."
    hidden: tuple[Positive[int], ...] = (256, 256)
    """Units of each hidden layer, ReLU after each; the last one is the representation phi."""
    layer_norm: bool = False
    """LayerNorm before each ReLU: a control to compare PEER with."""
