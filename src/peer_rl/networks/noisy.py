"""Linear layers with noise in their weights (Fortunato et al. 2018), which explore by themselves."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Noise(NamedTuple):
    """Factorised noise of one layer: the weight's is the outer product."""

    inputs: Tensor
    """(inputs,)"""
    outputs: Tensor
    """(outputs,)"""


class NoisyLinear(nn.Module):
    """y = (W + sigma_W * noise) x + b + sigma_b * noise; without noise the plain layer.

    The caller draws the noise and passes it in: the layer holds no state that a checkpoint would need.
    """

    def __init__(self, inputs: int, outputs: int, noise: float, rng: torch.Generator) -> None:
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound, generator=rng))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound, generator=rng))
        self.weight_sigma = nn.Parameter(torch.full((outputs, inputs), noise * bound))
        self.bias_sigma = nn.Parameter(torch.full((outputs,), noise * outputs**-0.5))

    def draw(self, rng: torch.Generator) -> Noise:
        """Fresh noise: sign(x) sqrt|x| of normal draws, for both sides of the layer."""
        outputs, inputs = self.weight.shape
        x = torch.randn(inputs + outputs, generator=rng, device=self.weight.device)
        scaled = x.sign() * x.abs().sqrt()
        return Noise(scaled[:inputs], scaled[inputs:])

    def forward(self, x: Tensor, noise: Noise | None) -> Tensor:
        """(B, inputs) -> (B, outputs)."""
        if noise is None:
            return F.linear(x, self.weight, self.bias)
        weight = torch.addcmul(self.weight, self.weight_sigma, torch.outer(noise.outputs, noise.inputs))
        return F.linear(x, weight, torch.addcmul(self.bias, self.bias_sigma, noise.outputs))
