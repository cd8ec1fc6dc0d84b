"""Critics: an encoder that ends in phi, and a linear head on it (the paper's equation 3)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peer_rl.networks.encoders import ConvEncoder
from peer_rl.networks.mlp import linear, mlp
from peer_rl.settings.networks import CriticConfig, EncoderConfig


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

    def logits_of(self, action: Tensor) -> Tensor:
        """The distributional head's outputs for each row's action, (B, atoms)."""
        assert self.logits is not None
        return self.logits[torch.arange(len(action), device=action.device), action]


class ActionValues(nn.Module):
    """Q(s, .): one output per action, so phi depends on the state alone.

    Dueling (Wang et al. 2016): the last hidden layer is doubled, and phi holds both halves, one read by V and one by A:
    Q = V + A - mean A.
    """

    def __init__(
        self,
        observation: tuple[int, ...],
        actions: int,
        shape: CriticConfig,
        rng: torch.Generator,
        *,
        encoder: EncoderConfig | None = None,
        dueling: bool = False,
    ) -> None:
        super().__init__()
        self.encoder = ConvEncoder(observation, encoder, rng) if encoder else None
        inputs, units = self.encoder.features if self.encoder else observation[0], shape.hidden[-1]
        self.trunk = mlp(inputs, replace(shape, hidden=shape.hidden[:-1]), rng) if len(shape.hidden) > 1 else None
        inputs = shape.hidden[-2] if self.trunk else inputs
        streams = (1, actions) if dueling else (actions,)
        self.streams = nn.ModuleList(mlp(inputs, replace(shape, hidden=(units,)), rng) for _ in streams)
        self.heads = nn.ModuleList(linear(units, outputs, shape, rng) for outputs in streams)

    def forward(self, obs: Tensor) -> CriticOutput:
        """Values of every action."""
        conv = self.encoder(obs) if self.encoder else None
        x = obs if conv is None else conv
        x = self.trunk(x) if self.trunk else x
        halves = [stream(x) for stream in self.streams]
        phi = torch.cat(halves, -1) if len(halves) > 1 else halves[0]  # (B, D), or (B, 2 D)
        return CriticOutput(q=self.head(phi), phi=phi, conv=conv)

    def head(self, phi: Tensor) -> Tensor:
        """Values from phi, (B, actions)."""
        if len(self.heads) == 1:
            alone: Tensor = self.heads[0](phi)
            return alone
        value, advantage = (head(half) for head, half in zip(self.heads, phi.chunk(2, -1), strict=True))
        both: Tensor = value + advantage - advantage.mean(-1, keepdim=True)
        return both

    def head_weight(self) -> Tensor:
        """The matrix W of Q = W phi + bias, (actions, D), both streams side by side."""
        *value, advantage = (head.get_parameter("weight") for head in self.heads)
        if not value:
            return advantage
        return torch.cat([value[0].expand_as(advantage), advantage - advantage.mean(0)], -1)


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

    def __init__(self, heads: int, inputs: int, shape: CriticConfig, rng: torch.Generator) -> None:
        super().__init__()
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
            if mask is not None and index == len(self.layers) - 1:
                phi = phi * mask
            phi = F.relu(phi, inplace=True)
        return CriticOutput(q=self.head(phi, heads), phi=phi)
