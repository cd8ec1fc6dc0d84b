"""Settings of ``planet`` and ``planet-pixels``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass

from peer_rl.settings.fields import NotNegative, of, part
from peer_rl.settings.td_mpc import PlannerConfig
from peer_rl.settings.world_model import PLANET_CODE, WorldModelConfig, WorldModelLearning


@dataclass(frozen=True)
class PlaNetConfig(WorldModelConfig):
    """PlaNet (Hafner et al. 2019): planning by the cross-entropy method in a recurrent state-space model."""

    exploration_noise: NotNegative[float] = of(0.3, PLANET_CODE)
    """Standard deviation of the Gaussian noise on actions in training."""
    planner: PlannerConfig = part(
        PlannerConfig(
            horizon=12, samples=1_000, elites=100, iterations=10, temperature=0.0, momentum=0.0, std_start=1.0
        ),
        temperature=PLANET_CODE + ": elites count alike",
        momentum=PLANET_CODE + ": none",
        **dict.fromkeys(("horizon", "samples", "elites", "iterations", "std_start"), PLANET_CODE),
    )
    """The planner."""


@dataclass(frozen=True)
class PlaNetLearning(WorldModelLearning):
    """Replay and update schedule of ``planet``."""

    start_steps: int = of(1_250, PLANET_CODE + ": 5 random episodes, of 250 steps at an action repeat of 4")
    pretrain: int = of(100, PLANET_CODE)
    update_every: int = of(250, PLANET_CODE + ": an episode at an action repeat of 4")
    updates: int = of(100, PLANET_CODE)
