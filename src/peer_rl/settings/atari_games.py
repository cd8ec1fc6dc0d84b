"""The paper's 26 Atari games: their actions, and the scores that normalise an agent's. Imports no emulator."""

from __future__ import annotations

import re
from dataclasses import dataclass

from peer_rl.errors import ConfigError, nearest


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


_TABLE = (
    Game("Alien", 18, human=7127.7, random=227.8),
    Game("Amidar", 10, human=1719.5, random=5.8),
    Game("Assault", 7, human=742.0, random=222.4),
    Game("Asterix", 9, human=8503.3, random=210.0),
    Game("BankHeist", 18, human=753.1, random=14.2),
    Game("BattleZone", 18, human=37187.5, random=2360.0),
    Game("Boxing", 18, human=12.1, random=0.1),
    Game("Breakout", 4, human=30.5, random=1.7),
    Game("ChopperCommand", 18, human=7387.8, random=811.0),
    Game("CrazyClimber", 9, human=35829.4, random=10780.5),
    Game("DemonAttack", 6, human=1971.0, random=152.1),
    Game("Freeway", 3, human=29.6, random=0.0),
    Game("Frostbite", 18, human=4334.7, random=65.2),
    Game("Gopher", 8, human=2412.5, random=257.6),
    Game("Hero", 18, human=30826.4, random=1027.0),
    Game("Jamesbond", 18, human=302.8, random=29.0),
    Game("Kangaroo", 18, human=3035.0, random=52.0),
    Game("Krull", 18, human=2665.5, random=1598.0),
    Game("KungFuMaster", 14, human=22736.3, random=258.5),
    Game("MsPacman", 9, human=6951.6, random=307.3),
    Game("Pong", 6, human=14.6, random=-20.7),
    Game("PrivateEye", 18, human=69571.3, random=24.9),
    Game("Qbert", 6, human=13455.0, random=163.9),
    Game("RoadRunner", 18, human=7845.0, random=11.5),
    Game("Seaquest", 18, human=42054.7, random=68.4),
    Game("UpNDown", 6, human=11693.2, random=533.4),
)

GAMES: dict[str, Game] = {game.name: game for game in _TABLE}
"""By name, in the paper's order."""


def human_normalised(game: str, score: float) -> float:
    """0 is random play, 1 a human player. ``game`` is a name, or a task's: ms-pacman, atari/ms-pacman."""
    name = game.removeprefix("atari/")
    if name not in GAMES:
        raise ConfigError(f"unknown game {game!r}{nearest(name, GAMES) or '; see: peer-rl list tasks'}")
    reference = GAMES[name]
    return (score - reference.random) / (reference.human - reference.random)
