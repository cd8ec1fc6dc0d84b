"""What CURL compares states with (Laskin et al. 2020): a bilinear form of two codes, and Rainbow's projection."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def bilinear_form(units: int, rng: torch.Generator, device: torch.device) -> nn.Parameter:
    """The matrix W, uniform in [0, 1) at the start as in the authors' code."""
    return nn.Parameter(torch.rand(units, units, generator=rng).to(device))


def contrastive_loss(queries: Tensor, keys: Tensor, bilinear: Tensor, sharpness: float = 1.0) -> Tensor:
    """Cross entropy of the logits q_i W k_j with the diagonal: row i's key is another view of state i."""
    logits = queries @ bilinear @ keys.T  # (B, B)
    logits = (logits - logits.amax(1, keepdim=True).detach()) * sharpness
    return F.cross_entropy(logits, torch.arange(len(logits), device=logits.device))


class Projection(nn.Module):
    """Linear, LayerNorm, ReLU, linear, LayerNorm; the norms have no weights of their own.

    Weights are uniform in [0, 1) at the start, as in the authors' code: the norms undo their scale.
    """

    def __init__(self, inputs: int, hidden: int, units: int, rng: torch.Generator) -> None:
        super().__init__()
        sizes = (inputs, hidden, units)
        self.weights = nn.ParameterList(torch.rand(after, before, generator=rng) for before, after in pairwise(sizes))
        self.biases = nn.ParameterList(torch.zeros(units) for units in sizes[1:])

    def forward(self, x: Tensor) -> Tensor:
        """(B, D) -> (B, units)."""
        hidden, code = zip(self.weights, self.biases, strict=True)
        x = F.relu(F.layer_norm(F.linear(x, *hidden), hidden[1].shape))
        return F.layer_norm(F.linear(x, *code), code[1].shape)
