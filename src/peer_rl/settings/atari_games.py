"""The paper's 26 Atari games: their actions, and the scores that normalise an agent's. Imports no emulator."""

from __future__ import annotations

import re
from dataclasses import dataclass

from peer_rl.errors import ConfigError, nearest
from peer_rl.settings.suites import read_table


@dataclass(frozen=True)
class Game:
    """One game."""

    title: str
    """As ALE and the paper spell it."""
    actions: int
    """Actions of the minimal set (PEER appendix, the table of the Atari suite)."""
    human: float
    """A human player's score (PEER, table 3)."""
    random: float
    """The score of random play (PEER, table 3)."""

    @property
    def name(self) -> str:
        """MsPacman is ms-pacman."""
        return re.sub(r"(?<!^)(?=[A-Z])", "-", self.title).lower()


_TABLE = [
    Game(row["title"], int(row["actions"]), human=float(row["human"]), random=float(row["random"]))
    for row in read_table("atari_games")
]
GAMES = {game.name: game for game in _TABLE}
"""By name, in the paper's order."""


def human_normalised(game: str, score: float) -> float:
    """0 is random play, 1 a human player. ``game`` is a name, or a task's: ms-pacman, atari/ms-pacman."""
    name = game.removeprefix("atari/")
    if name not in GAMES:
        raise ConfigError(f"unknown game {game!r}{nearest(name, GAMES) or '; see: peer-rl list tasks'}")
    reference = GAMES[name]
    return (score - reference.random) / (reference.human - reference.random)
