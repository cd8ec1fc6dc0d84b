"""Every task we know by name. Importing this imports no environment."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from peer_rl.errors import ConfigError, nearest
from peer_rl.settings.atari_games import GAMES, Game


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


def _pybullet(name: str, gym_id: str, size: int, actions: int, about: str) -> Task:
    return Task(
        name=f"pybullet/{name}",
        suite="pybullet",
        make=f"pybullet_envs_gymnasium:{gym_id}BulletEnv-v0",
        about=about,
        extra="pybullet",
        dimensions=(size, actions),
        paper_dimensions=(size, actions),
    )


def _mujoco(name: str, gym_id: str, size: int, actions: int, about: str, *, paper: int = 0, note: str = "") -> Task:
    return Task(
        name=f"mujoco/{name}",
        suite="mujoco",
        make=f"{gym_id}-v5",
        about=about,
        extra="mujoco",
        dimensions=(size, actions),
        paper_dimensions=(paper or size, actions),
        note=note,
    )


def _dmc(domain: str, name: str, size: int, actions: int, about: str, *, repeat: int = 4) -> Task:
    return Task(
        name=f"dmc/{domain}-{name}".replace("_", "-"),
        suite="dmc",
        make=f"dm_control:{domain}-{name}",
        about=about,
        action_repeat=repeat,
        free_repeat=True,
        stack=3,
        extra="dmc",
        dimensions=(size, actions),
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

# PEER's appendix, the table of the Bullet suite, in its order
_PYBULLET = (
    _pybullet("inverted-pendulum", "InvertedPendulum", 5, 1, "A cart keeps a pole upright"),
    _pybullet("inverted-double-pendulum", "InvertedDoublePendulum", 9, 1, "A cart keeps two linked poles upright"),
    _pybullet("inverted-pendulum-swingup", "InvertedPendulumSwingup", 5, 1, "A cart swings a pole up"),
    _pybullet("reacher", "Reacher", 9, 2, "A two-joint arm reaches for a target"),
    _pybullet("walker2d", "Walker2D", 22, 6, "A planar biped walks"),
    _pybullet("half-cheetah", "HalfCheetah", 26, 6, "A planar cheetah runs"),
    _pybullet("ant", "Ant", 28, 8, "Four legs run"),
    _pybullet("hopper", "Hopper", 15, 3, "One leg hops"),
)

# PEER's appendix, the table of the MuJoCo suite, in its order; v5 leaves out what is always 0
_MUJOCO = (
    _mujoco(
        "reacher",
        "Reacher",
        10,
        2,
        "A two-joint arm reaches for a target",
        paper=11,
        note="the paper's has 11: v5 leaves out the fingertip's height, always 0 (--mujoco-version v4)",
    ),
    _mujoco("walker2d", "Walker2d", 17, 6, "A planar biped walks"),
    _mujoco("half-cheetah", "HalfCheetah", 17, 6, "A planar cheetah runs"),
    _mujoco("swimmer", "Swimmer", 8, 2, "Three links swim"),
    _mujoco(
        "ant",
        "Ant",
        105,
        8,
        "Four legs run",
        paper=111,
        note="the paper's has 111: v5 leaves out the 6 contact forces of the ground, always 0 (--mujoco-version v4)",
    ),
    _mujoco("hopper", "Hopper", 11, 3, "One leg hops"),
    _mujoco("inverted-pendulum", "InvertedPendulum", 4, 1, "A cart keeps a pole upright"),
    _mujoco(
        "inverted-double-pendulum",
        "InvertedDoublePendulum",
        9,
        1,
        "A cart keeps two linked poles upright",
        paper=11,
        note="the paper's has 11: v5 leaves out the constraint forces of the 2 hinges, always 0 (--mujoco-version v4)",
    ),
)

# PEER's appendix, the table of the DMControl suite, in its order; action repeats from the settings table with CURL
_DMC = (
    _dmc("ball_in_cup", "catch", 8, 2, "A cup catches the ball on its string"),
    _dmc("cartpole", "balance", 5, 1, "A cart keeps a pole upright"),
    _dmc("cartpole", "balance_sparse", 5, 1, "A cart keeps a pole upright, with sparse rewards"),
    _dmc("cartpole", "swingup", 5, 1, "A cart swings a pole up", repeat=8),
    _dmc("cartpole", "swingup_sparse", 5, 1, "A cart swings a pole up, with sparse rewards"),
    _dmc("cheetah", "run", 17, 6, "A planar cheetah runs"),
    _dmc("finger", "spin", 9, 2, "A finger keeps a body spinning", repeat=2),
    _dmc("finger", "turn_easy", 12, 2, "A finger turns a body to a large target"),
    _dmc("finger", "turn_hard", 12, 2, "A finger turns a body to a small target"),
    _dmc("hopper", "hop", 15, 4, "One leg hops"),
    _dmc("hopper", "stand", 15, 4, "One leg stands up"),
    _dmc("pendulum", "swingup", 3, 1, "A weak motor swings a pole up"),
    _dmc("reacher", "easy", 6, 2, "A two-joint arm reaches for a large target"),
    _dmc("reacher", "hard", 6, 2, "A two-joint arm reaches for a small target"),
    _dmc("walker", "stand", 24, 6, "A planar biped stands up"),
    _dmc("walker", "walk", 24, 6, "A planar biped walks", repeat=2),
)

TASKS: dict[str, Task] = {
    task.name: task for task in (_GRIDWORLD, *_PYBULLET, *_MUJOCO, *_DMC, *map(_atari, GAMES.values()))
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
    own = [task.removeprefix(f"{suite}/") for task in TASKS if task.startswith(f"{suite}/")]
    if own and not nearest(rest.lower(), own):
        return f"; {suite} has: {', '.join(own)}"
    return nearest(name.lower(), TASKS) or "; see: peer-rl list tasks"
