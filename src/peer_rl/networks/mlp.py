"""Layers, actors and critics from state. Initial weights come from a generator of the run, never torch's global one.

A critic is an encoder that ends in phi, and a linear head on it (the paper's equation 3).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peer_rl.settings.networks import ActorConfig, CriticConfig

ACTIVATIONS = {"relu": nn.ReLU, "elu": nn.ELU}

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


class DeterministicActor(nn.Module):
    """pi(s) = tanh of an MLP."""

    def __init__(self, inputs: int, actions: int, shape: ActorConfig, rng: torch.Generator) -> None:
        super().__init__()
        self.trunk = mlp(inputs, shape, rng)
        self.head = linear(shape.hidden[-1], actions, shape, rng)

    def forward(self, obs: Tensor) -> Tensor:
        """The action, (B, A)."""
        return torch.tanh(self.head(self.trunk(obs)))


class CriticOutput(NamedTuple):
    """What every critic returns. An ensemble has a leading axis: q (N, B), phi (N, B, D)."""

    q: Tensor
    """Values: (B,), or (B, actions) for a head with one output per action."""
    phi: Tensor
    """Input of the last layer: head(phi) equals logits for a distributional critic and q otherwise."""
    logits: Tensor | None = None
    """Outputs of a distributional head."""
    conv: Tensor | None = None
    """Flattened convolutions of a pixel encoder."""

    def read_by_peer(self, features: str) -> Tensor:
        """phi, or with "conv" the flattened convolutions, as in the PEER authors' Atari code."""
        return self.conv if features == "conv" and self.conv is not None else self.phi


Heads = Tensor | slice | None
"""Which heads of an ensemble: indices, a slice, or all of them."""


def pick(of_heads: Tensor, heads: Heads) -> Tensor:
    """The chosen heads of a tensor that begins with them."""
    return of_heads if heads is None else of_heads[heads]  # a slice of all would cost a copy of the gradient


class EnsembleLinear(nn.Module):
    """N linear layers in one batched product: (N, B, inputs) -> (N, B, outputs)."""

    def __init__(self, heads: int, inputs: int, outputs: int, shape: CriticConfig, rng: torch.Generator) -> None:
        super().__init__()
        layers = [linear(inputs, outputs, shape, rng) for _ in range(heads)]
        self.weight = nn.Parameter(torch.stack([layer.weight.detach().T for layer in layers]))  # (N, inputs, outputs)
        self.bias = nn.Parameter(torch.stack([layer.bias.detach() for layer in layers]).unsqueeze(1))  # (N, 1, outputs)

    def forward(self, x: Tensor, heads: Heads = None) -> Tensor:
        """The chosen heads' outputs."""
        return torch.baddbmm(pick(self.bias, heads), x, pick(self.weight, heads))


class EnsembleHead(EnsembleLinear):
    """The same with one output, as inner products: <phi_i, w_i> + b_i, (N, B, D) -> (N, B)."""

    def __init__(self, heads: int, inputs: int, shape: CriticConfig, rng: torch.Generator) -> None:
        super().__init__(heads, inputs, 1, shape, rng)

    def forward(self, x: Tensor, heads: Heads = None) -> Tensor:
        """The chosen heads' values; on a CPU a batched product with one column takes three to ten times as long."""
        weight, bias = pick(self.weight, heads), pick(self.bias, heads)
        values: Tensor = torch.linalg.vecdot(x, weight.mT) + bias.squeeze(-1)
        return values


class EnsembleNorm(nn.Module):
    """A LayerNorm for each of N heads."""

    def __init__(self, heads: int, units: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(heads, 1, units))
        self.bias = nn.Parameter(torch.zeros(heads, 1, units))

    def forward(self, x: Tensor, heads: Heads = None) -> Tensor:
        """Each head's features, normalised."""
        return F.layer_norm(x, x.shape[-1:]) * pick(self.weight, heads) + pick(self.bias, heads)


class EnsembleCritic(nn.Module):
    """N independent Q(s, a) side by side; twin critics are an ensemble of two."""

    def __init__(
        self, heads: int, inputs: int, shape: CriticConfig, rng: torch.Generator, *, linear_phi: bool = False
    ) -> None:
        super().__init__()
        self.linear_phi = linear_phi
        sizes = [inputs, *shape.hidden]
        self.layers = nn.ModuleList(
            EnsembleLinear(heads, before, after, shape, rng) for before, after in pairwise(sizes)
        )
        self.norms = nn.ModuleList(EnsembleNorm(heads, units) for units in shape.hidden) if shape.layer_norm else None
        self.head = EnsembleHead(heads, shape.hidden[-1], shape, rng)

    def forward(self, obs: Tensor, action: Tensor, *, heads: Heads = None, mask: Tensor | None = None) -> CriticOutput:
        """Values of the chosen heads; ``mask`` (N, B, D) multiplies the last hidden layer before its ReLU."""
        x = torch.cat([obs, action], -1)  # (B, inputs)
        phi = x.expand(len(pick(self.head.bias, heads)), *x.shape)  # (N, B, inputs)
        for index, layer in enumerate(self.layers):
            phi = layer(phi, heads)  # (N, B, units)
            if self.norms is not None:
                phi = self.norms[index](phi, heads)
            last = index == len(self.layers) - 1
            if mask is not None and last:
                phi = phi * mask
            if not (last and self.linear_phi):
                phi = F.relu(phi, inplace=True)
        return CriticOutput(q=self.head(phi, heads), phi=phi)
