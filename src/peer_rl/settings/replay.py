"""Settings of replays other than the uniform one of single transitions."""

from __future__ import annotations

from dataclasses import dataclass

from peer_rl.errors import ConfigError
from peer_rl.settings.fields import Fraction, Positive
from peer_rl.settings.run import LearningConfig


@dataclass(frozen=True)
class PrioritisedConfig(LearningConfig):
    """The same with prioritised replay (Schaul et al. 2016)."""

    priority_exponent: Fraction = 0.5
    """A transition is drawn in proportion to its priority to this power; 0 draws uniformly."""
    importance_start: Fraction = 0.4
    """Exponent of the importance weights before the first update."""
    importance_final: Fraction = 1.0
    """Final exponent of the importance weights."""
    importance_steps: Positive[int] = 100_000
    """Agent step, the random phase included, whose update has the final exponent; its own horizon, whatever --steps
    says."""


@dataclass(frozen=True)
class SequenceConfig(LearningConfig):
    """The same with windows of consecutive steps, for agents that learn a model."""

    sequence_length: Positive[int] = 5
    """Consecutive steps of one window; a batch has batch_size windows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_step > 1 or self.flat_returns:
            option = "--n-step" if self.n_step > 1 else "--flat-returns"
            raise ConfigError(f"windows of steps hold each step's own reward; leave out {option}")
