"""Planning by sampling: draw action sequences, keep the best, draw again around them (MPPI, cross-entropy method)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from peer_rl.settings.td_mpc import PlannerConfig

Values = Callable[[Tensor], Tensor]
"""The estimated return of each action sequence: (H, N, A) -> (N,)."""


@dataclass(frozen=True)
class Plan:
    """The last iteration's result. Without finite values of the candidates, all of it is NaN."""

    mean: Tensor
    """(H, A), what the cross-entropy method acts on and a next plan may start from"""
    std: Tensor
    """(H, A)"""
    elites: Tensor
    """(H, K, A), best first"""
    weights: Tensor
    """(K,), their sum is 1"""

    def draw(self, rng: torch.Generator) -> Tensor:
        """One of the elites, with the probability of its weight, (H, A)."""
        shares = self.weights.cumsum(0)
        mark = torch.rand(1, generator=rng, device=shares.device) * shares[-1]
        index = torch.searchsorted(shares, mark, right=True).clamp(max=len(shares) - 1)
        return self.elites[:, index[0]]


def plan(
    values: Values,
    start: Tensor,
    config: PlannerConfig,
    rng: torch.Generator,
    *,
    least_std: float = 0.0,
    proposals: Tensor | None = None,
) -> Plan:
    """Search for the best actions in [-1, 1] around ``start`` (H, A).

    ``proposals`` (H, P, A) are candidates in every iteration. The number of random draws depends on shapes alone.
    """
    mean, std = start, torch.full_like(start, config.std_start)
    for _ in range(config.iterations):
        noise = torch.randn((len(mean), config.samples, mean.shape[-1]), generator=rng, device=mean.device)
        candidates = (mean.unsqueeze(1) + std.unsqueeze(1) * noise).clamp(-1.0, 1.0)  # (H, N, A)
        if proposals is not None:
            candidates = torch.cat([candidates, proposals], 1)
        estimated = values(candidates)  # (N,)
        best, index = estimated.topk(config.elites)
        elites = candidates[:, index]
        weights = (config.temperature * (best - best[0])).exp()
        weights = weights / weights.sum()
        centre = (weights.unsqueeze(-1) * elites).sum(1)  # (H, A)
        spread = (weights.unsqueeze(-1) * (elites - centre.unsqueeze(1)).square()).sum(1).sqrt()
        mean = config.momentum * mean + (1 - config.momentum) * centre
        std = spread.clamp(least_std, config.std_start)
    if not bool(estimated.isfinite().all()):
        mean, std, elites, weights = (torch.full_like(part, torch.nan) for part in (mean, std, elites, weights))
    return Plan(mean, std, elites, weights)


def shifted(mean: Tensor, horizon: int) -> Tensor:
    """A plan's mean one step later, as the start of the next plan: its first action is gone, zeros follow."""
    start = torch.zeros((horizon, *mean.shape[1:]), dtype=mean.dtype, device=mean.device)
    kept = min(len(mean) - 1, horizon)
    start[:kept] = mean[1 : kept + 1]
    return start
