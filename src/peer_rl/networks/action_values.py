"""DQN's network: one output per action."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from peer_rl.networks.encoders import ConvEncoder
from peer_rl.networks.mlp import CriticOutput, linear, mlp
from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.networks import CriticConfig


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
