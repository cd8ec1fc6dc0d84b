"""What the settings of ``ppo`` and ``trpo`` share. Stable-Baselines3 and sb3-contrib train both."""

from __future__ import annotations

from dataclasses import dataclass

from peer_rl.errors import ConfigError
from peer_rl.settings.fields import SECTION_PYBULLET, Checked, NotNegative, Positive, PositiveFraction, of


@dataclass(frozen=True)
class OnPolicyLearningConfig(Checked):
    """What an agent without a replay shares with the others."""

    gamma: PositiveFraction = of(0.99, "OpenAI Baselines, for MuJoCo")
    """Discount of one agent step."""


@dataclass(frozen=True)
class OnPolicyProtocolConfig(Checked):
    """Evaluation and logging; there is no critic of (s, a) to diagnose."""

    eval_every: NotNegative[int] = of(5_000, SECTION_PYBULLET)
    """Agent steps between evaluations; 0 for none."""
    eval_episodes: Positive[int] = of(10, SECTION_PYBULLET)
    """Episodes of one evaluation, without exploration, in a separate environment."""
    final_episodes: NotNegative[int] = 0
    """Episodes of the evaluation at the end of training; 0: as many as in the others."""
    final_steps: NotNegative[int] = 0
    """Least number of agent steps of the evaluation at the end of training."""


class OnPolicyConfig(Checked):
    """The agents' own settings."""

    batch_steps: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_steps < 2:
            raise ConfigError(f"batch_steps must be 2 or more, but is {self.batch_steps}")
