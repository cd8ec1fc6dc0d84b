"""Returns along imagined trajectories, which Dreamer and Dreamer-V2 learn from."""

from __future__ import annotations

import torch
from torch import Tensor


def lambda_returns(reward: Tensor, value: Tensor, discount: Tensor, lambda_: float) -> Tensor:
    """R_k = r_k + d_k [(1 - lambda) v_{k+1} + lambda R_{k+1}] for k = 0 ... K - 1, with R_K = v_K; (K, rows).

    All three arguments are (K + 1, rows): of states 0 to K, where r_k is the reward of entering state k.
    """
    found = [value[-1]]
    for k in reversed(range(len(reward) - 1)):
        found.append(reward[k] + discount[k] * ((1 - lambda_) * value[k + 1] + lambda_ * found[-1]))
    return torch.stack(found[:0:-1])


def survival(discount: Tensor) -> Tensor:
    """1, d_0, d_0 d_1, ...: the weight of each state, with the shape of ``discount`` and without a gradient."""
    before = torch.cat([torch.ones_like(discount[:1]), discount[:-1]])
    return before.cumprod(0).detach()
