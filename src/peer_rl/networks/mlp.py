"""Layers whose initial weights come from a generator of the run, never from torch's global one."""

from __future__ import annotations

import torch
from torch import nn

from peer_rl.settings.networks import ActorConfig, CriticConfig

Shape = ActorConfig | CriticConfig
"""Hidden layers and initial weights."""


def linear(inputs: int, outputs: int, shape: Shape, rng: torch.Generator) -> nn.Linear:
    """A linear layer, initialised as ``shape`` says."""
    layer = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")  # draws nothing from the global generator
    bound = inputs**-0.5
    if shape.weight_init == "orthogonal":
        nn.init.orthogonal_(layer.weight, generator=rng)
    elif shape.weight_init == "xavier":
        nn.init.xavier_uniform_(layer.weight, generator=rng)
    else:
        nn.init.uniform_(layer.weight, -bound, bound, generator=rng)
    if shape.bias_init == "zero":
        nn.init.zeros_(layer.bias)
    else:
        nn.init.uniform_(layer.bias, -bound, bound, generator=rng)
    return layer


def mlp(inputs: int, shape: Shape, rng: torch.Generator) -> nn.Sequential:
    """The hidden layers, each followed by a ReLU; a critic's with a LayerNorm before it if asked."""
    layers: list[nn.Module] = []
    for units in shape.hidden:
        norm = [nn.LayerNorm(units)] if isinstance(shape, CriticConfig) and shape.layer_norm else []
        layers += [linear(inputs, units, shape, rng), *norm, nn.ReLU(inplace=True)]
        inputs = units
    return nn.Sequential(*layers)
