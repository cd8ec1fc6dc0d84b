"""Values that differ from an agent's defaults, by suite, task, preset and profile: ``suites/*.toml``.

Each ``[[settings]]`` says for whom it is (agents, tasks, profile or preset; without ``agents``, for all), then
``path.into.RunConfig = [value, origin]``; a value of ``{ frames = N }`` counts environment frames.
"""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

_FOLDER = files("peer_rl.settings") / "suites"
_FILES = {"custom": "gym"}
"""Suites that share another's file."""
_SELECTORS = ("agents", "tasks", "profile", "preset")


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
"""Values at dotted paths into RunConfig."""


def read_table(name: str) -> list[dict[str, str]]:
    """The rows of ``suites/NAME.csv``."""
    return list(csv.DictReader((_FOLDER / f"{name}.csv").read_text(encoding="utf-8").splitlines()))


@cache
def _blocks(name: str) -> tuple[tuple[dict[str, Any], Layer], ...]:
    """The blocks of a file, each with its selectors and its values."""
    content = tomllib.loads((_FOLDER / f"{_FILES.get(name, name)}.toml").read_text(encoding="utf-8"))
    return tuple(
        ({key: block[key] for key in _SELECTORS if key in block}, _layer(block)) for block in content["settings"]
    )


def _layer(block: dict[str, Any], prefix: str = "") -> Layer:
    found: Layer = {}
    for key, value in block.items():
        if isinstance(value, dict):
            found |= _layer(value, f"{prefix}{key}.")
        elif prefix or key not in _SELECTORS:
            given, origin = value
            found[prefix + key] = Value(Frames(given["frames"]) if isinstance(given, dict) else given, origin)
    return found


def _select(name: str, agent: str, *, task: str = "", profile: str = "", preset: str = "") -> Layer:
    """The values of all blocks that are for the agent and for exactly this task, profile and preset."""
    layer: Layer = {}
    for selectors, values in _blocks(name):
        tasks = selectors.get("tasks", [""])
        named = (selectors.get("profile", ""), selectors.get("preset", ""))
        if named == (profile, preset) and task in tasks and agent in selectors.get("agents", [agent]):
            layer |= values
    return layer


def agents_of(suite: str) -> list[str]:
    """The agents that have settings for a suite."""
    lists = [selectors["agents"] for selectors, _ in _blocks(suite) if set(selectors) == {"agents"}]
    return list(dict.fromkeys(agent for names in lists for agent in names))


def suite_layers(agent: str, suite: str, task: str) -> list[Layer]:
    """What the suite, then the task, says for an agent."""
    return [_select(suite, agent), _select(suite, agent, task=task)]


def profile_layers(agent: str, suite: str, profile: str) -> list[Layer]:
    """What the suite's profile, then the agent's own, says."""
    if profile == "paper":
        return []
    return [_select(suite, agent, profile=profile), _select("any", agent, profile=profile)]


def preset_layer(agent: str, suite: str, task: str, preset: str) -> Layer:
    """What a preset says for an agent, for it in a suite, and for it on a task."""
    return {
        **_select("any", agent, preset=preset),
        **_select(suite, agent, preset=preset),
        **_select(suite, agent, task=task, preset=preset),
    }


def presets_of(agent: str) -> list[str]:
    """The names of an agent's presets."""
    named = [selectors for selectors, _ in _blocks("any") if "preset" in selectors and agent in selectors["agents"]]
    return list(dict.fromkeys(selectors["preset"] for selectors in named))
