"""REDQ (Chen et al. 2021): SAC with N critics, targets from M of them, and many updates per step."""

from __future__ import annotations

import torch
from torch import Tensor

from peer_rl.agents.sac import SAC, networks
from peer_rl.envs.spec import EnvSpec
from peer_rl.plugin import Regularizer
from peer_rl.rng import Stream
from peer_rl.settings.redq import REDQConfig


def average(q: Tensor) -> Tensor:
    """The actor climbs the mean of all critics; (N, B) -> (B,)."""
    return q.mean(0)


def build(settings: REDQConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device) -> SAC:
    """SAC whose N heads all learn y = R + discount * (min over M drawn target heads - alpha log pi).

    As in the authors' code, the actor's loss reads the critics before their step, and the heads are drawn once per
    update. A regularizer pairs all N heads with their targets: it needs N target passes where plain REDQ needs M.
    """

    def draw_heads(rng: Stream) -> Tensor:
        chosen = rng.numpy.choice(settings.heads, settings.target_heads, replace=False)
        return torch.from_numpy(chosen).to(device)

    actor, critic = networks(settings, spec, rng=rng, device=device, heads=settings.heads)
    return SAC(
        settings,
        actor,
        critic,
        actions=spec.action_size,
        regularizer=regularizer,
        device=device,
        draw_heads=draw_heads,
        actor_value=average,
        policy_first=True,
    )
