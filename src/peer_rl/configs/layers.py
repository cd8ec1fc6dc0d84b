"""A layer of settings: values at dotted paths into RunConfig, each with its origin."""

from __future__ import annotations

from typing import Any, NamedTuple


class Value(NamedTuple):
    """A setting and where it comes from."""

    value: Any
    origin: str


Layer = dict[str, Value]
