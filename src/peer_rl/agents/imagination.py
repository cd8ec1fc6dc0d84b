"""Imagined trajectories and the returns along them, which Dreamer and Dreamer-V2 learn from."""

from __future__ import annotations

import torch
from torch import Tensor

from peer_rl.networks.policies import Policy
from peer_rl.networks.rssm import RSSM, State


def imagine(rssm: RSSM, policy: Policy, start: State, steps: int, rng: torch.Generator) -> tuple[State, Tensor]:
    """The states that the policy's actions lead to from each row of ``start``, and the actions, (steps, rows, ...)."""

    def choose(state: State) -> Tensor:
        features = state.features.detach()
        return policy.draw(features, policy.noise(len(features), rng))

    return rssm.imagine(start, choose, steps, rng)


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
