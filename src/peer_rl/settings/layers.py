"""A layer of settings: values at dotted paths into RunConfig, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Frames:
    """A number of environment frames, for a setting that counts agent steps: the run's action repeat decides."""

    count: int

    def steps(self, action_repeat: int) -> int:
        """Agent steps that show this many frames."""
        return self.count // action_repeat


class Value(NamedTuple):
    """A setting and where it comes from."""

    value: Any
    origin: str


Layer = dict[str, Value]
