"""Settings as frozen dataclasses. Nothing here imports torch, so ``--help`` answers at once.

`run` is what every run has, `agents` the table of agents, the other modules their settings; `tasks` the table of tasks.
`resolve` puts the layers together: agent < suite < task < preset < profile < command line.
"""

from peer_rl.settings.agents import AGENTS, AgentEntry, find_agent
from peer_rl.settings.dqn import DQNConfig
from peer_rl.settings.resolve import Origins, as_dict, configure, from_dict, variant
from peer_rl.settings.run import RunConfig

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
