"""Layers whose initial weights come from a generator of the run, never from torch's global one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import nn

BiasInit = Literal["uniform", "zero"]


def linear(inputs: int, outputs: int, rng: torch.Generator, bias: BiasInit = "uniform") -> nn.Linear:
    """A linear layer with PyTorch's default initialisation, U(-1/sqrt(inputs), 1/sqrt(inputs)), or with zero biases."""
    layer = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")  # draws nothing from the global generator
    bound = inputs**-0.5
    nn.init.uniform_(layer.weight, -bound, bound, generator=rng)
    if bias == "zero":
        nn.init.zeros_(layer.bias)
    else:
        nn.init.uniform_(layer.bias, -bound, bound, generator=rng)
    return layer


def mlp(inputs: int, hidden: Sequence[int], rng: torch.Generator, bias: BiasInit = "uniform") -> nn.Sequential:
    """Linear layers, each followed by a ReLU."""
    layers: list[nn.Module] = []
    for units in hidden:
        layers += [linear(inputs, units, rng, bias), nn.ReLU()]
        inputs = units
    return nn.Sequential(*layers)
