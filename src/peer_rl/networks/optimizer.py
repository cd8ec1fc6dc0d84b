"""Adam, fused where torch has it: one pass over the parameters instead of ten."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def adam(
    parameters: Iterable[Tensor], learning_rate: float, betas: tuple[float, float] = (0.9, 0.999)
) -> torch.optim.Adam:
    """Adam over ``parameters``."""
    parameters = list(parameters)
    fused = parameters[0].device.type in ("cpu", "cuda")
    return torch.optim.Adam(parameters, lr=learning_rate, betas=betas, fused=fused)


def minimise(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step down the gradient of ``loss``."""
    optimizer.zero_grad(set_to_none=True)
    torch.autograd.backward(loss)
    optimizer.step()
