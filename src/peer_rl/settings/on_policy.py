"""What the settings of ``ppo`` and ``trpo`` share. Stable-Baselines3 and sb3-contrib train both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from peer_rl.errors import ConfigError
from peer_rl.settings.fields import SECTION_PYBULLET, check, check_fraction, check_not_negative, check_positive, of


@dataclass(frozen=True)
class OnPolicyLearningConfig:
    """What an agent without a replay shares with the others."""

    gamma: float = of(0.99, "OpenAI Baselines, for MuJoCo")
    """Discount of one agent step."""

    def __post_init__(self) -> None:
        check_fraction("gamma", self.gamma, above_zero=True)


@dataclass(frozen=True)
class OnPolicyProtocolConfig:
    """Evaluation and logging; there is no critic of (s, a) to diagnose."""

    eval_every: int = of(5_000, SECTION_PYBULLET)
    """Agent steps between evaluations; 0 for none."""
    eval_episodes: int = of(10, SECTION_PYBULLET)
    """Episodes of one evaluation, without exploration, in a separate environment."""
    final_episodes: int = 0
    """Episodes of the evaluation at the end of training; 0: as many as in the others."""
    final_steps: int = 0
    """Least number of agent steps of the evaluation at the end of training."""

    def __post_init__(self) -> None:
        check(self, not_negative="eval_every final_episodes final_steps", positive="eval_episodes")


def check_common(settings: Any) -> None:
    """Refuse what neither agent can learn with."""
    if settings.batch_steps < 2:
        raise ConfigError(f"batch_steps must be 2 or more, but is {settings.batch_steps}")
    for units in settings.hidden:
        check_positive("hidden", units)
    check_positive("learning_rate", settings.learning_rate)
    check_fraction("gae_lambda", settings.gae_lambda)
    check_not_negative("observation_clip", settings.observation_clip)
    check_not_negative("reward_clip", settings.reward_clip)
