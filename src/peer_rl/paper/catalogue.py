"""The experiments of ``data/experiments.toml``: which agents, on which tasks, with which options. Imports no torch."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from peer_rl.settings.tasks import TASKS

BETA = 5e-4
"""The paper's, everywhere."""


@dataclass(frozen=True)
class System:
    """One row of an experiment's table: an agent with its options."""

    label: str
    """As the paper's table calls it, where it is in one."""
    agent: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the agent's defaults, by the names of the command line."""
    baseline: str = ""
    """The label of the system that it is compared with, seed by seed."""
    seeds: int = 0
    """Where the paper has another number than elsewhere."""


@dataclass(frozen=True)
class Part:
    """Every system on every task."""

    systems: tuple[System, ...]
    tasks: tuple[str, ...]


@dataclass(frozen=True)
class Reduction:
    """What a smaller profile leaves of an experiment, in addition to its shorter runs."""

    seeds: int
    tasks: tuple[str, ...] = ()
    """Empty for all."""


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, or a study of our own."""

    name: str
    about: str
    """One line for ``peer-rl list experiments``."""
    parts: tuple[Part, ...]
    seeds: int
    small: Reduction
    smoke: Reduction
    paper_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of all systems in the paper profile, where its own budget is not the paper's."""

    def reduction(self, profile: str) -> Reduction:
        """How many seeds and which tasks a profile has."""
        return {"paper": Reduction(self.seeds), "small": self.small, "smoke": self.smoke}[profile]

    @property
    def systems(self) -> list[System]:
        """Of all parts, each label once."""
        return list({system.label: system for part in self.parts for system in part.systems}.values())


def _tasks(patterns: Sequence[str]) -> tuple[str, ...]:
    return tuple(task for pattern in patterns for task in fnmatch.filter(TASKS, pattern))


def _reduction(row: Mapping[str, Any]) -> Reduction:
    return Reduction(row["seeds"], _tasks(row.get("tasks", ())))


def _read() -> dict[str, Experiment]:
    content = tomllib.loads((files("peer_rl.paper") / "data" / "experiments.toml").read_text(encoding="utf-8"))
    systems = {name: System(**row) for name, row in content["systems"].items()}
    found = {}
    for row in content["experiments"]:
        parts = [Part(tuple(systems[one] for one in part["systems"]), _tasks(part["tasks"])) for part in row["parts"]]
        reductions = {profile: _reduction(row[profile]) for profile in ("small", "smoke")}
        found[row["name"]] = Experiment(**{**row, **reductions, "parts": tuple(parts)})
    return found


CATALOGUE = _read()
"""By name, in the paper's order."""
