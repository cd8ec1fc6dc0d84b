"""What an agent for vectors says to other environments."""

from __future__ import annotations

from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError


def check_vectors(agent: str, spec: EnvSpec) -> None:
    """Refuse observations that are not vectors."""
    if len(spec.observation_shape) != 1:
        raise ConfigError(f"{agent} reads vectors, but observations have shape {spec.observation_shape}")
