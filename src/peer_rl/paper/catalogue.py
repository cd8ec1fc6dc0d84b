"""The experiments: which agents, on which tasks, with which options and how many seeds. Plain data, no torch.

Budgets and settings are not here but in ``settings/``, so that experiments which need the same run share it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from peer_rl.settings.atari_games import GAMES
from peer_rl.settings.tasks import TASKS

BETA = 5e-4
"""The paper's, everywhere."""
BETAS = (5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2)
"""Of the beta study. The paper names six values in a figure alone; its text has 1e-2."""
STUDIED_GAMES = ("alien", "freeway", "frostbite", "hero", "kangaroo", "ms-pacman", "seaquest")
"""Of the beta study: seven games on which PEER on CURL is the paper's best. Its text names Freeway and Kangaroo."""


@dataclass(frozen=True)
class System:
    """One row of an experiment's table: an agent with its options."""

    label: str
    """As the paper's table calls it, where it is in one."""
    agent: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the agent's defaults, by the names of the command line."""
    baseline: str = ""
    """The label of the system that it is compared with, seed by seed."""
    seeds: int = 0
    """Where the paper has another number than elsewhere."""


@dataclass(frozen=True)
class Part:
    """Every system on every task."""

    systems: tuple[System, ...]
    tasks: tuple[str, ...]


@dataclass(frozen=True)
class Reduction:
    """What a smaller profile leaves of an experiment, in addition to its shorter runs."""

    seeds: int
    tasks: tuple[str, ...] = ()
    """Empty for all."""


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, or a study of our own."""

    name: str
    about: str
    """One line for ``peer-rl list experiments``."""
    parts: tuple[Part, ...]
    seeds: int
    small: Reduction
    smoke: Reduction
    paper_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of all systems in the paper profile, where its own budget is not the paper's."""

    def reduction(self, profile: str) -> Reduction:
        """How many seeds and which tasks a profile has."""
        return {"paper": Reduction(self.seeds), "small": self.small, "smoke": self.smoke}[profile]

    @property
    def systems(self) -> list[System]:
        """Of all parts, each label once."""
        return list({system.label: system for part in self.parts for system in part.systems}.values())


def _backbone(label: str, agent: str, **options: Any) -> System:
    return System(label, agent, {"beta": 0.0, **options})


def _peer(label: str, agent: str, baseline: str, **options: Any) -> System:
    return System(label, agent, {"beta": BETA, **options}, baseline)


_CONV = {"features": "conv"}
_TD3, _PEER_TD3 = _backbone("TD3", "td3"), _peer("PEER", "td3", "TD3")
_METD3, _SAC = _backbone("METD3", "metd3"), _backbone("SAC", "sac")
_CURL, _PEER_CURL = _backbone("CURL", "curl-sac"), _peer("PEER", "curl-sac", "CURL")
_DRQ, _PEER_DRQ = _backbone("DrQ", "drq-sac"), _peer("PEER+DrQ", "drq-sac", "DrQ")
_STATE_SAC, _SAC_AE = _backbone("State SAC", "sac"), _backbone("SAC+AE", "sac-ae")
_DREAMER_V2 = System("Dreamer-V2", "dreamer-v2-pixels")
_ATARI_CURL, _ATARI_DRQ = _backbone("CURL", "curl-rainbow"), _backbone("DrQ", "drq-dqn")

_GRIDWORLD_PEER = (_peer("PEER", "dqn", "DQN"), System("PEER, beta 0.01", "dqn", {"beta": 1e-2}, "DQN"))

_PYBULLET = tuple(f"pybullet/{name}" for name in ("ant", "half-cheetah", "hopper", "walker2d"))
_MUJOCO = tuple(
    f"mujoco/{name}"
    for name in (
        "ant", "half-cheetah", "hopper", "inverted-double-pendulum", "inverted-pendulum", "reacher", "walker2d",
    )
)  # fmt: skip
_DMC = tuple(
    f"dmc/{name}"
    for name in ("finger-spin", "cartpole-swingup", "reacher-easy", "cheetah-run", "walker-walk", "ball-in-cup-catch")
)
_DMC_FIGURE1 = tuple(f"dmc/{name}" for name in ("cartpole-swingup", "cheetah-run", "reacher-easy", "walker-walk"))
_DMC_ALL = tuple(task.name for task in TASKS.values() if task.suite == "dmc")
_ATARI = tuple(f"atari/{name}" for name in GAMES)
_ONE_DMC, _ONE_GAME, _ONE_BULLET = ("dmc/cartpole-swingup",), ("atari/pong",), ("pybullet/hopper",)

_CONTROLS = (
    _TD3,
    _PEER_TD3,
    _peer("cosine only", "td3", "TD3", regularizer="cosine-peer"),
    _peer("norm only", "td3", "TD3", regularizer="feature-norm"),
    System("LayerNorm", "td3", {"beta": 0.0, "critic.layer_norm": True}, "TD3"),
    _peer("DR3", "td3", "TD3", regularizer="dr3"),
    System("BEER", "td3", {"beta": 1e-3, "regularizer": "beer"}, "TD3"),
    System("beta auto", "td3", {"beta": "auto"}, "TD3"),
)

_ALL = (
    Experiment(
        "figure1",
        "figure 1: DRD of TD3, CURL and PEER on PyBullet and DMControl",
        (Part((_TD3, _PEER_TD3), _PYBULLET), Part((_CURL, _peer("PEER+CURL", "curl-sac", "CURL")), _DMC_FIGURE1)),
        seeds=5,
        small=Reduction(3, ("pybullet/hopper", "pybullet/walker2d", *_ONE_DMC)),
        smoke=Reduction(1, (*_ONE_BULLET, *_ONE_DMC)),
    ),
    Experiment(
        "gridworld",
        "figure 3: DQN against PEER in the grid world; cosine, value difference, steps to the goal",
        (Part((_backbone("DQN", "dqn"), *_GRIDWORLD_PEER), ("gridworld/paper",)),),
        seeds=5,
        small=Reduction(5),
        smoke=Reduction(5),
        paper_options={"steps": 30_000},  # 2000 episodes of a run that fails would be 200,000 steps
    ),
    Experiment(
        "figure4",
        "figure 4: DMControl at 100k and 500k environment steps, as shares of State SAC",
        (Part((_STATE_SAC, _SAC_AE, _DRQ, _CURL, _PEER_CURL, _PEER_DRQ), _DMC),),
        seeds=10,
        small=Reduction(2, ("dmc/cartpole-swingup", "dmc/ball-in-cup-catch")),
        smoke=Reduction(1, _ONE_DMC),
    ),
    Experiment(
        "table1",
        "table 1: PEER on TD3 against TD3, METD3, SAC, PPO and TRPO on PyBullet",
        (Part((_PEER_TD3, _TD3, _METD3, _SAC, System("PPO2", "ppo"), System("TRPO", "trpo")), _PYBULLET),),
        seeds=10,
        small=Reduction(3, ("pybullet/hopper", "pybullet/walker2d")),
        smoke=Reduction(1, _ONE_BULLET),
    ),
    Experiment(
        "table2",
        "table 2 and the appendix's TD-MPC: PEER on CURL and on TD-MPC, DMControl at 100k and 500k environment steps",
        (
            Part(
                (
                    _STATE_SAC, System("PlaNet", "planet-pixels"), System("Dreamer", "dreamer-pixels"), _DREAMER_V2,
                    _SAC_AE, _DRQ, _backbone("DrQ-v2", "drq-v2"), _CURL, _PEER_CURL,
                    _backbone("TDMPC", "td-mpc-pixels"), _peer("PEER+TDMPC", "td-mpc-pixels", "TDMPC"),
                    _backbone("TDMPC from state", "td-mpc"),
                    _peer("PEER+TDMPC from state", "td-mpc", "TDMPC from state"),
                ),
                _DMC,
            ),
        ),
        seeds=10,
        small=Reduction(2, ("dmc/cartpole-swingup", "dmc/ball-in-cup-catch")),
        smoke=Reduction(1, _ONE_DMC),
    ),
    Experiment(
        "table3",
        "table 3: PEER on CURL and on DrQ against their backbones on the 26 games of Atari 100k",
        (
            Part(
                (
                    _backbone("OTRainbow", "rainbow", preset="otrainbow"),
                    _backbone("Eff. Rainbow", "rainbow"), _backbone("Eff. DQN", "dqn"), _DREAMER_V2,
                    _ATARI_DRQ, _ATARI_CURL,
                    _peer("PEER+CURL", "curl-rainbow", "CURL", **_CONV),
                    _peer("PEER+DrQ", "drq-dqn", "DrQ", **_CONV),
                    _peer("PEER+CURL, last hidden layer", "curl-rainbow", "CURL"),
                    _peer("PEER+DrQ, last hidden layer", "drq-dqn", "DrQ"),
                ),
                _ATARI,
            ),
        ),
        seeds=10,
        small=Reduction(2, ("atari/pong", "atari/freeway")),
        smoke=Reduction(1, _ONE_GAME),
    ),
    Experiment(
        "mujoco",
        "appendix: PEER on TD3 against TD3, METD3 and SAC on MuJoCo",
        (Part((_PEER_TD3, _TD3, _METD3, _SAC), _MUJOCO),),
        seeds=10,
        small=Reduction(3, ("mujoco/hopper", "mujoco/half-cheetah")),
        smoke=Reduction(1, ("mujoco/hopper",)),
    ),
    Experiment(
        "redq",
        "appendix: PEER on TD3 against REDQ on MuJoCo",
        (
            Part(
                (System("PEER", "td3", {"beta": BETA}), System("REDQ", "redq", {"beta": 0.0}, seeds=20)),
                ("mujoco/ant", "mujoco/hopper", "mujoco/walker2d"),
            ),
        ),
        seeds=10,
        small=Reduction(3, ("mujoco/hopper",)),
        smoke=Reduction(1, ("mujoco/hopper",)),
    ),
    Experiment(
        "beta-study",
        "appendix: six betas on seven games of Atari, PEER on CURL",
        (
            Part(
                (
                    _ATARI_CURL,
                    *(System(f"beta {beta:g}", "curl-rainbow", {"beta": beta, **_CONV}, "CURL") for beta in BETAS),
                ),
                tuple(f"atari/{name}" for name in STUDIED_GAMES),
            ),
        ),
        seeds=10,
        small=Reduction(2, ("atari/freeway",)),
        smoke=Reduction(1, ("atari/freeway",)),
    ),
    Experiment(
        "dmc-curves",
        "appendix: learning curves of PEER on CURL and on DrQ on 16 DMControl tasks",
        (Part((_CURL, _peer("PEER+CURL", "curl-sac", "CURL"), _DRQ, _PEER_DRQ), _DMC_ALL),),
        seeds=10,
        small=Reduction(2, ("dmc/cartpole-swingup", "dmc/ball-in-cup-catch")),
        smoke=Reduction(1, _ONE_DMC),
    ),
    Experiment(
        "controls",
        "ours: PEER against its two halves, a LayerNorm critic, DR3, BEER and beta auto, on TD3 and PyBullet",
        (Part(_CONTROLS, _PYBULLET),),
        seeds=10,
        small=Reduction(3, ("pybullet/hopper",)),
        smoke=Reduction(1, _ONE_BULLET),
    ),
)  # fmt: skip

CATALOGUE: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
"""By name, in the paper's order."""
