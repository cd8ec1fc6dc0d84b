"""Each agent's policy without exploration as one module of tensors: what TorchScript and ONNX can hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import torch
from torch import Tensor, nn

from peer_rl.agents.dqn import DQN
from peer_rl.agents.drq_v2 import DrQv2
from peer_rl.agents.pixel_sac import PixelSAC
from peer_rl.agents.rainbow import Rainbow
from peer_rl.agents.sac import SAC
from peer_rl.agents.td3 import TD3
from peer_rl.networks.encoders import as_floats
from peer_rl.networks.mlp import CriticOutput


@singledispatch
def policy_module(agent: Any) -> nn.Module | None:
    """From encoded observations to the agent's actions; None where these are no function of the observation alone.

    An agent of another package, or of a user, has a method of this name instead.
    """
    return agent.policy_module() if hasattr(agent, "policy_module") else None


@policy_module.register
def _(agent: TD3) -> nn.Module:
    return agent.actor


@policy_module.register
def _(agent: SAC) -> nn.Module:
    return Chain(agent.actor, _squashed_mean)


@policy_module.register
def _(agent: PixelSAC) -> nn.Module:
    return Chain(agent.preprocess, agent.encoder, agent.sac.actor, _squashed_mean)


@policy_module.register
def _(agent: DrQv2) -> nn.Module:
    return Chain(as_floats, lambda frames: frames - 0.5, agent.encoder, agent.actor)


@policy_module.register(DQN)
@policy_module.register(Rainbow)
def _(agent: DQN | Rainbow) -> nn.Module:
    return Chain(agent.critic, _greedy)


class Chain(nn.Module):
    """Modules and functions, each called with what the one before returned."""

    def __init__(self, *steps: Callable[..., Any]) -> None:
        super().__init__()
        self.steps = steps
        self.learned = nn.ModuleList(step for step in steps if isinstance(step, nn.Module))

    def forward(self, x: Tensor) -> Tensor:
        """The last step's output."""
        for step in self.steps:
            x = step(x)
        return x


def _squashed_mean(output: tuple[Tensor, Tensor]) -> Tensor:
    return torch.tanh(output[0])


def _greedy(output: CriticOutput) -> Tensor:
    return output.q.argmax(-1)
