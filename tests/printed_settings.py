"""The paper's tables of settings, which ours are compared with."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETTING_TABLES = ("gridworld", "state", "dmc-curl", "dmc-drq", "atari-curl", "atari-drq")


@dataclass(frozen=True)
class Setting:
    """One row of a table of settings."""

    name: str
    printed: str
    """The table's value, in plain characters: 5e-4 for 5 x 10^-4."""
    path: str = ""
    """Our setting for it; empty where it is no number, or nothing that can be set."""
    value: Any = None
    """What our setting has if it is as printed."""
    part: str = ""
    """Of a list of layers: ``layers`` if their number is printed, ``units`` if their size is."""
    task: str = ""
    """The task that the row is about, where it is not about all."""
    agents: tuple[str, ...] = ()
    """The agents that the row is about, where it is not about all."""
    differs: str = ""
    """Why ours is another value."""


@dataclass(frozen=True)
class SettingTable:
    """A table of hyper-parameters."""

    name: str
    label: str
    number: str
    caption: str
    task: str
    agents: tuple[str, ...]
    notes: tuple[str, ...]
    settings: tuple[Setting, ...]


def setting_table(name: str) -> SettingTable:
    """One of ``SETTING_TABLES``; an unknown key is a TypeError."""
    path = Path(__file__).parent / "paper" / "data" / f"settings-{name}.toml"
    about = tomllib.loads(path.read_text(encoding="utf-8"))
    about.pop("kind")
    settings = [Setting(**_fixed(row)) for row in about.pop("settings")]
    return SettingTable(name=name, settings=tuple(settings), **_fixed(about))


def _fixed(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
