"""METD3: MEPG's dropout (He et al. 2021) on TD3, the paper's baseline. Twin critics, as we read it."""

from __future__ import annotations

import torch
from torch import Tensor

from peer_rl.agents.td3 import TD3
from peer_rl.envs.spec import EnvSpec
from peer_rl.plugin import Regularizer
from peer_rl.rng import Stream
from peer_rl.settings.metd3 import METD3Config


def build(settings: METD3Config, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device) -> TD3:
    """TD3 whose critics and targets share a mask, drawn anew for each update.

    It multiplies the last hidden layer before its ReLU, one mask per head and row. The actor's loss and acting
    use whole networks.
    """
    keep = 1.0 - settings.dropout
    units = settings.critic.hidden[-1]

    def draw_mask(rows: int, rng: Stream) -> Tensor:
        mask = torch.empty(2, rows, units, device=device)
        return mask.bernoulli_(keep, generator=rng.torch).div_(keep)  # (2, B, D), inverted scaling

    return TD3(settings, spec, regularizer=regularizer, rng=rng, device=device, draw_mask=draw_mask)
