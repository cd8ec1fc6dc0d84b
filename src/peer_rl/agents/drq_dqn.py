"""DrQ on DQN (Kostrikov et al. 2021), the paper's backbone on Atari: every s and s' is seen through a random change."""

from __future__ import annotations

import torch
from torch import Tensor

from peer_rl.agents.dqn import DQN
from peer_rl.envs.spec import EnvSpec
from peer_rl.networks.augment import random_flip, random_intensity, random_rotation, random_shift
from peer_rl.plugin import Regularizer
from peer_rl.rng import Stream
from peer_rl.settings.drq_dqn import DrQDQNConfig


def build(settings: DrQDQNConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device) -> DQN:
    """A DQN whose updates see s and s' augmented, each by a draw of its own; acting uses frames as they are.

    PEER pairs phi(aug s) with phi'(aug s'), the views behind Q and its target.
    """

    def augment(frames: Tensor, rng: Stream) -> Tensor:
        frames = random_shift(frames, settings.shift, rng.torch)
        if settings.flip:
            frames = random_flip(frames, settings.flip, rng.torch)
        if settings.rotation:
            frames = random_rotation(frames, settings.rotation, rng.torch)
        if settings.intensity:
            frames = random_intensity(frames, settings.intensity, rng.torch)
        return frames

    return DQN(settings, spec, regularizer=regularizer, rng=rng, device=device, augment=augment)
