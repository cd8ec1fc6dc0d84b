"""The target network: a copy of the critic that follows it slowly."""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import nn

Network = TypeVar("Network", bound=nn.Module)


def target_of(network: Network) -> Network:
    """A copy that takes no gradients."""
    return copy.deepcopy(network).requires_grad_(False)


class SoftUpdate:
    """theta' <- tau theta + (1 - tau) theta', all parameters in one call."""

    def __init__(self, network: nn.Module, target: nn.Module, tau: float) -> None:
        self.online = [parameter.detach() for parameter in network.parameters()]
        self.target = [parameter.detach() for parameter in target.parameters()]
        self.tau = tau

    @torch.no_grad()
    def __call__(self) -> None:
        """One step of the target."""
        torch._foreach_lerp_(self.target, self.online, self.tau)
