"""Every task we know by name. Importing this imports no environment."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from peer_rl.errors import ConfigError, nearest
from peer_rl.settings.atari_games import GAMES, Game
from peer_rl.settings.suites import read_table


@dataclass(frozen=True)
class Rendering:
    """Frames that a task draws for an agent which sees pixels, where the task has a state to show as well."""

    size: int = 84
    """Side in pixels."""
    quality: str = "full"
    """full, or draft: no shadows, mirrors or multisampling, but drawn at twice the size and averaged."""


@dataclass(frozen=True)
class Task:
    """One row of ``peer-rl list tasks``."""

    name: str
    """SUITE/NAME, or module:factory."""
    suite: str
    """gridworld, pybullet, mujoco, dmc, atari, gym or custom."""
    make: str
    """A Gymnasium id (module:id imports the module first), DMControl's name, or module:factory for a custom task."""
    about: str = ""
    """One-line description."""
    action_repeat: int = 1
    """Environment frames in one agent step."""
    free_repeat: bool = False
    """Whether a run may choose another action repeat."""
    stack: int = 4
    """Frames in one observation, for environments that show images."""
    extra: str = ""
    """Our pip extra that brings the simulator."""
    dimensions: tuple[int, int] | None = None
    """Length of the observation vector and of the action vector."""
    paper_dimensions: tuple[int, int] | None = None
    """The same in the paper's appendix."""
    actions: int = 0
    """Number of discrete actions in the paper's appendix."""
    note: str = ""
    """Where the environment differs from the paper's."""
    options: tuple[tuple[str, Any], ...] = ()
    """Arguments of the Gymnasium environment, for games also of its preprocessing."""

    @property
    def summary(self) -> str:
        """``about``, dimensions and note in one line."""
        seen, acted = self.dimensions or (0, self.actions)
        sizes = f"{seen} observations, " * (seen > 0) + f"{acted} action{'s' * (acted > 1)}" * (acted > 0)
        return "; ".join(part for part in (self.about, sizes, self.note) if part)

    @property
    def slug(self) -> str:
        """The task's name as a folder name."""
        return re.sub(r"[^A-Za-z0-9_.-]", "-", self.name)


def _robot(row: dict[str, str]) -> Task:
    """A line of tasks.csv: a table of PEER's appendix, in its order; DMControl's repeats are those with CURL."""
    seen, acted, suite = int(row["observations"]), int(row["actions"]), row["suite"]
    return Task(
        name=f"{suite}/{row['name']}",
        suite=suite,
        make=row["make"],
        about=row["about"],
        action_repeat=int(row["action_repeat"]),
        free_repeat=suite == "dmc",
        stack=3 if suite == "dmc" else 4,
        extra=suite,
        dimensions=(seen, acted),
        paper_dimensions=(int(row["paper_observations"]), acted) if row["paper_observations"] else None,
        note=row["note"],
    )


def _atari(game: Game) -> Task:
    return Task(
        name=f"atari/{game.name}",
        suite="atari",
        make=f"ale_py:ALE/{game.title}-v5",
        about=f"{game.title} on the Atari 2600, 4 grey frames of 84x84",
        action_repeat=4,
        extra="atari",
        actions=game.actions,
    )


_GRIDWORLD = Task(
    name="gridworld/paper",
    suite="gridworld",
    make="peer_rl.envs.gridworld:peer-rl/GridWorld-v0",
    about="The paper's toy example: 4x5 cells, reward 10 in the far corner (figure 3)",
)
TASKS: dict[str, Task] = {
    task.name: task for task in (_GRIDWORLD, *map(_robot, read_table("tasks")), *map(_atari, GAMES.values()))
}
"""Tasks with settings of their own; gym/ANY-ID and module:factory need no row."""

SUITES = {
    "gridworld": "the paper's grid world",
    "pybullet": "continuous control on PyBullet: pip install 'peer-rl[pybullet]'",
    "mujoco": "continuous control on MuJoCo, Gymnasium's v5: pip install 'peer-rl[mujoco]'",
    "dmc": "continuous control on DMControl, from state or pixels: pip install 'peer-rl[dmc]'",
    "atari": "the 26 games of Atari 100k, from pixels: pip install 'peer-rl[atari]'",
    "gym": "any environment registered with Gymnasium: gym/CartPole-v1",
    "custom": "your own environment: module:factory",
}


def find_task(name: str) -> Task:
    """The task called ``name``, or an error that names the nearest one."""
    if name in TASKS:
        return TASKS[name]
    if name.startswith("gym/") and len(name) > len("gym/"):
        gym_id = name.removeprefix("gym/")
        # ALE's ids are there only once ale_py was imported
        return Task(name=name, suite="gym", make=f"ale_py:{gym_id}" if gym_id.startswith("ALE/") else gym_id)
    if re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", name):
        return Task(name=name, suite="custom", make=name)
    raise ConfigError(f"unknown task {name!r}{_hint(name)}")


def _hint(name: str) -> str:
    """The nearest task; in a suite that exists, one of its own, or else all of them."""
    suite, _, rest = name.partition("/")
    if re.fullmatch(r"([\w-]+/)?[\w-]+-v\d+", name):  # as Gymnasium writes them
        return f"; did you mean 'gym/{name}'?"
    own = [task.removeprefix(f"{suite}/") for task in TASKS if task.startswith(f"{suite}/")]
    if own and not nearest(rest.lower(), own):
        return f"; {suite} has: {', '.join(own)}"
    return nearest(name.lower(), TASKS) or "; see: peer-rl list tasks"
