"""Values that differ from an agent's defaults, by suite, task, preset and profile, each with its origin.

Keys are dotted paths into RunConfig. The order of the layers is in resolve.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Value(NamedTuple):
    """A setting and where it comes from."""

    value: Any
    origin: str


Layer = dict[str, Value]

_GRID = "PEER appendix, grid-world table"
_OURS = "ours"

_DQN_GENERAL: Layer = {
    "steps": Value(20_000, _OURS + ": docs/agents/dqn.md has the curve on CartPole"),
    "learning.n_step": Value(3, _OURS + ": values travel faster along long episodes"),
    "learning.batch_size": Value(128, _OURS + ": with 64 some seeds stay near 300 on CartPole"),
    "learning.buffer_size": Value(10_000, _OURS + ": recent failures stay a visible share of the batch"),
    "settings.tau": Value(0.05, _OURS + ": with 0.005 CartPole takes five times as long"),
}

_ON_POLICY_GENERAL: Layer = {"steps": Value(100_000, _OURS)}
_ON_POLICY_PAPER: Layer = {"steps": Value(1_000_000, "PEER appendix, PyBullet section")}

SUITES: dict[tuple[str, str], Layer] = {
    ("dqn", "gridworld"): {
        "episodes": Value(2_000, _GRID),
        "learning.gamma": Value(0.99, _GRID),
        "learning.buffer_size": Value(100_000, _GRID),
        "learning.batch_size": Value(64, _GRID),
        "learning.start_steps": Value(1_000, _GRID),
        "settings.learning_rate": Value(1e-4, _GRID),
        "settings.tau": Value(0.005, _GRID),
        "settings.epsilon_start": Value(0.1, _GRID),
        "settings.epsilon_final": Value(0.1, _GRID),
        "settings.critic.hidden": Value((32, 32), _GRID),
        "settings.critic.bias_init": Value("zero", _OURS + ": the paper does not say; docs/gridworld.md has both"),
        "protocol.eval_episodes": Value(10, _GRID),
        "protocol.eval_every": Value(1_000, _OURS + ": the paper does not say how often"),
        "protocol.diagnose_every": Value(100, _OURS + ": the resolution of figure 3"),
    },
    ("dqn", "gym"): _DQN_GENERAL,
    ("dqn", "custom"): _DQN_GENERAL,
    **{(agent, suite): _ON_POLICY_GENERAL for agent in ("ppo", "trpo") for suite in ("gym", "custom")},
    **{(agent, suite): _ON_POLICY_PAPER for agent in ("ppo", "trpo") for suite in ("pybullet", "mujoco")},
}
"""By agent and suite."""

TASKS: dict[tuple[str, str], Layer] = {}
"""By agent and task."""

PRESETS: dict[tuple[str, str], Layer] = {}
"""By agent and the name given to --preset."""

PROFILES: dict[tuple[str, str], Layer] = {
    ("gridworld", "small"): {"episodes": Value(500, _OURS)},
    ("gridworld", "smoke"): {
        "episodes": Value(40, _OURS),
        "learning.start_steps": Value(300, _OURS),
    },
    ("gym", "small"): {"steps": Value(20_000, _OURS)},
    ("gym", "smoke"): {"steps": Value(3_000, _OURS), "protocol.eval_every": Value(1_000, _OURS)},
    ("custom", "small"): {"steps": Value(20_000, _OURS)},
    ("custom", "smoke"): {"steps": Value(3_000, _OURS), "protocol.eval_every": Value(1_000, _OURS)},
}
"""By suite and profile."""
