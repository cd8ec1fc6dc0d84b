"""Fields of settings: where a default comes from, and range checks that say which setting is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field, fields, is_dataclass
from functools import cache
from types import FunctionType
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

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


def check_fraction(name: str, value: float) -> None:
    """Refuse numbers outside [0, 1]."""
    if not 0 <= value <= 1:
        raise ConfigError(f"{name} must be in [0, 1], but is {value}")


def check_positive_fraction(name: str, value: float) -> None:
    """Refuse numbers outside (0, 1]."""
    if not 0 < value <= 1:
        raise ConfigError(f"{name} must be in (0, 1], but is {value}")


Positive = Annotated[T, check_positive]
NotNegative = Annotated[T, check_not_negative]
Fraction = Annotated[float, check_fraction]
PositiveFraction = Annotated[float, check_positive_fraction]


def check(settings: Any, section: str = "") -> None:
    """Refuse numbers outside the ranges that a dataclass's types name; None and words pass."""
    for name, refuse in _checks(settings.__class__).items():
        value = getattr(settings, name)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, int | float):
                refuse(section + name, number)


class Checked:
    """A dataclass that is checked when it is made."""

    section = ""
    """What an error puts before a setting's name."""

    def __post_init__(self) -> None:
        check(self, self.section)


@cache
def _checks(kind: Any) -> dict[str, Callable[[str, float], None]]:
    """The checks of a class by field. A subclass that gives a field another default keeps its range."""
    found: dict[str, Callable[[str, float], None]] = {}
    for base in reversed(kind.__mro__):
        for name, annotation in get_type_hints(base, include_extras=True).items():
            for option in (annotation, *get_args(annotation)):
                for extra in getattr(option, "__metadata__", ()):
                    if isinstance(extra, FunctionType):
                        found[name] = extra
    return found
