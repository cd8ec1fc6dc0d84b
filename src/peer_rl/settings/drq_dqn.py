"""Settings of ``drq-dqn``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peer_rl.settings.dqn import TABLE_ATARI_DRQ, DQNConfig
from peer_rl.settings.fields import Fraction, NotNegative, of, part
from peer_rl.settings.networks import CriticConfig
from peer_rl.settings.run import LearningConfig

DOPAMINE = "Dopamine's atari_100k lab, DrQ.gin; the paper's table leaves it open"


@dataclass(frozen=True)
class DrQDQNConfig(DQNConfig):
    """DrQ (Kostrikov et al. 2021) on DQN: s and s' augmented, each by a draw of its own."""

    learning_rate: float = of(1e-4, TABLE_ATARI_DRQ)
    adam_epsilon: float = of(1.5e-4, TABLE_ATARI_DRQ)
    max_gradient_norm: float | None = of(10.0, TABLE_ATARI_DRQ)
    loss: Literal["squared", "huber"] = of("huber", DOPAMINE + "; the PEER authors' code has it too")
    double: bool = of(True, TABLE_ATARI_DRQ)
    dueling: bool = of(True, TABLE_ATARI_DRQ)
    tau: float = of(1.0, TABLE_ATARI_DRQ + ": an update period, so copies")
    epsilon_start: float = of(1.0, DOPAMINE)
    epsilon_final: float = of(0.1, DOPAMINE)
    epsilon_steps: int = of(5_000, TABLE_ATARI_DRQ)
    epsilon_eval: float = of(0.05, DOPAMINE)
    critic: CriticConfig = part(CriticConfig(hidden=(512,)), hidden=TABLE_ATARI_DRQ)
    shift: NotNegative[int] = of(4, "DrQ's paper, Dopamine and the PEER authors' code; the table says random shifts")
    """Largest shift of a frame in pixels, in each direction; the border is repeated."""
    intensity: NotNegative[float] = of(0.05, DOPAMINE)
    """Scale of the random intensity: frames are multiplied by 1 + scale * N(0, 1), the draw clipped to [-2, 2]."""
    flip: Fraction = 0.0
    """Probability of a horizontal flip, and independently of a vertical one."""
    rotation: NotNegative[float] = 0.0
    """Largest angle of a random rotation, in degrees."""


@dataclass(frozen=True)
class DrQDQNLearning(LearningConfig):
    """Replay and update schedule of ``drq-dqn``."""

    gamma: float = of(0.99, TABLE_ATARI_DRQ)
    n_step: int = of(10, TABLE_ATARI_DRQ)
    batch_size: int = of(32, TABLE_ATARI_DRQ)
    start_steps: int = of(1_600, TABLE_ATARI_DRQ)
    update_every: int = of(1, TABLE_ATARI_DRQ)
    buffer_size: int = of(100_000, TABLE_ATARI_DRQ + ": unbounded, which is all of the run")
