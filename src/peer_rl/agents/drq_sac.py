"""DrQ on SAC (Kostrikov et al. 2021): losses and targets over K = M random shifts of each state."""

from __future__ import annotations

import torch
from torch import Tensor

from peer_rl.agents.pixel_sac import PixelSAC, build_networks
from peer_rl.envs.spec import EnvSpec
from peer_rl.networks.augment import random_shift
from peer_rl.plugin import Regularizer
from peer_rl.rng import Stream
from peer_rl.settings.drq_sac import DrQSACConfig


def build(
    settings: DrQSACConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device
) -> PixelSAC:
    """SAC with one target, the mean over the views of s', for every view of s.

    PEER pairs phi_i(view k of s, a) with phi'_i(view k of s', a'_k), a'_k drawn at that view. Acting reads frames as
    they are; the actor learns from the first view.
    """

    def augment(frames: Tensor, rng: Stream) -> Tensor:
        return torch.cat([random_shift(frames, settings.shift, rng.torch) for _ in range(settings.views)])

    weights = rng.for_weights()
    shape, actions = spec.observation_shape, spec.action_size
    linear_phi = settings.linear_phi
    return PixelSAC(
        settings,
        build_networks(settings, shape, actions, weights=weights, device=device, linear_phi=linear_phi),
        actions=actions,
        regularizer=regularizer,
        device=device,
        augment=augment,
        views=settings.views,
    )
