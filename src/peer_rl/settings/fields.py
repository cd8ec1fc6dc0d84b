"""Fields of settings: where a default comes from, and range checks that say which setting is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field, fields, is_dataclass
from functools import partial
from typing import Any, TypeVar

from peer_rl.errors import ConfigError

T = TypeVar("T")

TABLE_STATE = "PEER appendix, PyBullet and MuJoCo table"
SECTION_PYBULLET = "PEER appendix, PyBullet section"


def of(value: T, origin: str) -> T:
    """A dataclass field's default, with where it comes from."""
    default: T = field(default=value, metadata={"origin": origin})
    return default


def part(value: T, **origins: str) -> T:
    """The default of a nested section, with where its values come from."""
    default: T = field(default=value, metadata={"origins": origins})
    return default


def origins_of(settings: Any, prefix: str = "") -> dict[str, str]:
    """The origins of a dataclass's defaults, by dotted path."""
    found: dict[str, str] = {}
    everything = getattr(settings, "ORIGIN", "")
    for one in fields(settings):
        origin = one.metadata.get("origin", everything)
        if origin:
            found[prefix + one.name] = origin
        value = getattr(settings, one.name)
        if is_dataclass(value):
            found |= origins_of(value, f"{prefix}{one.name}.")
        found |= {f"{prefix}{one.name}.{name}": text for name, text in one.metadata.get("origins", {}).items()}
    return found


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


_CHECKS: dict[str, Callable[[str, float], None]] = {
    "positive": check_positive,
    "not_negative": check_not_negative,
    "fraction": check_fraction,
    "positive_fraction": partial(check_fraction, above_zero=True),
}


def check(settings: Any, *, prefix: str = "", **named: str) -> None:
    """Check settings by kind: ``check(self, positive="steps seeds", fraction="tau")``; None is fine."""
    for kind, names in named.items():
        for name in names.split():
            if (value := getattr(settings, name)) is not None:
                _CHECKS[kind](prefix + name, value)
