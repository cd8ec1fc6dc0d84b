"""Settings as frozen dataclasses. Nothing here imports torch, so ``--help`` answers at once.

`run` holds what every run has, `agents` the table of agents, a module per agent its settings with their origins.
`fields` has the defaults' origins and range checks, `networks` and `encoder` shapes, `replay` replays,
`tasks` the table of tasks.
`suites` reads the layers in ``suites/*.toml``; `resolve` applies them: agent < suite < task < preset < profile < user.
`beta` and `environment` check what belongs together.
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
