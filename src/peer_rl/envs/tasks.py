"""Every task we know by name. Importing this imports no environment."""

from __future__ import annotations

import re
from dataclasses import dataclass

from peer_rl.errors import ConfigError, nearest


@dataclass(frozen=True)
class Task:
    """One row of ``peer-rl list tasks``."""

    name: str
    """SUITE/NAME, or module:factory."""
    suite: str
    """gridworld, gym or custom."""
    make: str
    """A Gymnasium id (module:id imports the module first), or module:factory for a custom task."""
    about: str = ""
    """One line for people."""
    action_repeat: int = 1
    """Environment frames in one agent step."""
    probe: str = ""
    """module:function that measures the agent on states of the task's own choosing, for the diagnostics."""

    @property
    def slug(self) -> str:
        """The task's name as a folder name."""
        return re.sub(r"[^A-Za-z0-9_.-]", "-", self.name)


TASKS: dict[str, Task] = {
    task.name: task
    for task in [
        Task(
            name="gridworld/paper",
            suite="gridworld",
            make="peer_rl.envs.gridworld:peer-rl/GridWorld-v0",
            about="The paper's toy example: 4x5 cells, reward 10 in the far corner (figure 3)",
            probe="peer_rl.envs.gridworld:probe",
        ),
    ]
}
"""Tasks with settings of their own; gym/ANY-ID and module:factory need no row."""

SUITES = {
    "gridworld": "the paper's grid world",
    "gym": "any environment registered with Gymnasium: gym/CartPole-v1",
    "custom": "your own environment: module:factory",
}


def find_task(name: str) -> Task:
    """The task called ``name``, or an error that names the nearest one."""
    if name in TASKS:
        return TASKS[name]
    if name.startswith("gym/") and len(name) > len("gym/"):
        return Task(name=name, suite="gym", make=name.removeprefix("gym/"))
    if re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", name):
        return Task(name=name, suite="custom", make=name)
    raise ConfigError(f"unknown task {name!r}{nearest(name, TASKS) or '; see: peer-rl list tasks'}")
