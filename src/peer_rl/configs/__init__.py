"""Settings as frozen dataclasses. Nothing here imports torch, so ``--help`` is quick."""

from peer_rl.configs.agents import AGENTS, AgentEntry, DQNConfig, find_agent
from peer_rl.configs.resolve import Origins, as_dict, configure, from_dict, variant
from peer_rl.configs.run import RunConfig

__all__ = [
    "AGENTS",
    "AgentEntry",
    "DQNConfig",
    "Origins",
    "RunConfig",
    "as_dict",
    "configure",
    "find_agent",
    "from_dict",
    "variant",
]
