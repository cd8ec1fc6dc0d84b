"""Settings of an agent of the user's own: ``peer-rl train my_module:MyAgent``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from peer_rl.errors import ConfigError


@dataclass(frozen=True)
class CustomConfig:
    """Arguments of the agent's constructor, unchecked until the agent is imported."""

    options: tuple[str, ...] = ()
    """Options of your agent's constructor, each as NAME=VALUE."""

    def __post_init__(self) -> None:
        names = [option.partition("=")[0] for option in self.options]
        for option in self.options:
            if not re.fullmatch(r"[A-Za-z_]\w*=.+", option):
                raise ConfigError(f"options are written NAME=VALUE, but one is {option!r}")
        if len(set(names)) < len(names):
            raise ConfigError(f"an option is given twice: {' '.join(self.options)}")
        object.__setattr__(self, "options", tuple(sorted(self.options)))  # one spelling for each run


def is_custom(agent: str) -> bool:
    """Whether an agent is named as module:Class."""
    return re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", agent) is not None
