"""The name under which ``peer_rl.sb3.algorithms`` is documented and imported."""

from typing import Any

from peer_rl.sb3 import algorithms
from peer_rl.sb3.algorithms import *  # noqa: F403


def __getattr__(name: str) -> Any:
    return getattr(algorithms, name)
