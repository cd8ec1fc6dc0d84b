"""Layers whose initial weights come from a generator of the run, never from torch's global one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn


def linear(inputs: int, outputs: int, rng: torch.Generator) -> nn.Linear:
    """A linear layer with PyTorch's default initialisation, U(-1/sqrt(inputs), 1/sqrt(inputs))."""
    layer = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")  # draws nothing from the global generator
    bound = inputs**-0.5
    nn.init.uniform_(layer.weight, -bound, bound, generator=rng)
    nn.init.uniform_(layer.bias, -bound, bound, generator=rng)
    return layer


def mlp(inputs: int, hidden: Sequence[int], rng: torch.Generator) -> nn.Sequential:
    """Linear layers, each followed by a ReLU."""
    layers: list[nn.Module] = []
    for units in hidden:
        layers += [linear(inputs, units, rng), nn.ReLU()]
        inputs = units
    return nn.Sequential(*layers)
