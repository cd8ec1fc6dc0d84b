"""Range checks that say which setting is wrong and what was given."""

from __future__ import annotations

import math

from peer_rl.errors import ConfigError


def check_positive(name: str, value: float) -> None:
    """Refuse anything that is not a finite number above 0."""
    if not (math.isfinite(value) and value > 0):
        raise ConfigError(f"{name} must be above 0, but is {value}")


def check_not_negative(name: str, value: float) -> None:
    """Refuse negative and non-finite numbers."""
    if not (math.isfinite(value) and value >= 0):
        raise ConfigError(f"{name} must be 0 or above, and finite, but is {value}")


def check_fraction(name: str, value: float, *, above_zero: bool = False) -> None:
    """Refuse numbers outside [0, 1], or outside (0, 1] with ``above_zero``."""
    low_ok = value > 0 if above_zero else value >= 0
    if not (low_ok and value <= 1):
        raise ConfigError(f"{name} must be in {'(0' if above_zero else '[0'}, 1], but is {value}")
