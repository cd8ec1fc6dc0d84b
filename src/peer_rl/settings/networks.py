"""Shapes and initial weights of actors and critics."""

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
