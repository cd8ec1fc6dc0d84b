"""Helpers to train small runs and compare what they leave behind."""

import dataclasses
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from attack.leavings import leavings as leavings
from attack.leavings import weights as weights

from peer_rl.cli.main import main
from peer_rl.launch.api import train
from peer_rl.settings import AGENTS, configure, find_agent
from peer_rl.training.checkpoint import Checkpoints, read_checkpoint
from peer_rl.training.loop import Trainer

OURS = sorted(name for name, entry in AGENTS.items() if not entry.packages)
"""The agents that keep every law; Stable-Baselines3's have tests/contracts/test_sb3_agents.py."""
REGULARIZED = [name for name in OURS if AGENTS[name].td_target]
"""Those that PEER applies to."""

_SMALL_NETWORKS = {"settings.actor.hidden": (16, 16), "settings.critic.hidden": (16, 16)}
_CONTINUOUS: dict[str, object] = {
    "steps": 300,
    "max_episode_steps": 47,
    "learning.start_steps": 100,
    "learning.buffer_size": 180,
    "learning.batch_size": 32,
    "learning.update_every": 2,
    "protocol.eval_every": 100,
    "protocol.eval_episodes": 2,
    "protocol.diagnose_every": 50,
    "protocol.log_every": 25,
    **_SMALL_NETWORKS,
}

_SMALL_ENCODER: dict[str, object] = {
    "settings.encoder.channels": (4, 8),
    "settings.encoder.kernels": (5, 3),
    "settings.encoder.strides": (3, 2),
}

_PIXELS: dict[str, object] = {
    "steps": 300,
    "max_episode_steps": 47,
    "learning.start_steps": 100,
    "learning.buffer_size": 180,
    "learning.update_every": 4,
    "protocol.eval_every": 100,
    "protocol.eval_episodes": 2,
    "protocol.diagnose_every": 50,
    "protocol.log_every": 25,
    "settings.epsilon_eval": 0.1,
    **_SMALL_ENCODER,
}
_RAINBOW: dict[str, object] = {
    **_PIXELS,
    "learning.importance_steps": 100,
    "settings.hidden": 16,
    "settings.atoms": 11,
    "settings.target_every": 20,
}

_PIXELS_CONTINUOUS: dict[str, object] = {
    **_CONTINUOUS,
    **_SMALL_ENCODER,
    "learning.update_every": 5,
    "learning.batch_size": 16,
    "settings.latent": 8,
}
_CURL_SAC: dict[str, object] = {**_PIXELS_CONTINUOUS, "settings.crop": 18}
_DRQ: dict[str, object] = {**_PIXELS_CONTINUOUS, "settings.shift": 1}

_TD_MPC: dict[str, object] = {
    **{name: value for name, value in _CONTINUOUS.items() if name not in _SMALL_NETWORKS},
    "learning.sequence_length": 3,
    "learning.pretrain": 20,
    "settings.latent": 8,
    "settings.encoder_hidden": 16,
    "settings.hidden": 16,
    "settings.schedule_steps": 60,
    "settings.planner.horizon": 2,
    "settings.planner.samples": 10,
    "settings.planner.elites": 4,
    "settings.planner.iterations": 2,
}

_WORLD_MODEL: dict[str, object] = {
    **{path: value for path, value in _CONTINUOUS.items() if "hidden" not in path},
    "learning.update_every": 5,
    "learning.updates": 1,
    "learning.pretrain": 2,
    "learning.batch_size": 4,
    "learning.sequence_length": 4,
    "settings.units": 8,
    "settings.rssm.belief": 6,
    "settings.rssm.hidden": 6,
    "settings.rssm.variables": 3,
}
_PLANNER: dict[str, object] = {
    "settings.planner.horizon": 3,
    "settings.planner.samples": 8,
    "settings.planner.elites": 2,
    "settings.planner.iterations": 2,
}
_IMAGINATION: dict[str, object] = {"settings.imagined_steps": 4}
_WORLD_FRAMES: dict[str, object] = {
    **_SMALL_ENCODER,
    "settings.decoder_channels": (4,),
    "settings.decoder_kernels": (5, 6),
}

TINY: dict[str, tuple[str, dict[str, object]]] = {
    "dqn": (
        "gridworld/paper",
        {
            "steps": 300,
            "max_episode_steps": 47,
            "learning.start_steps": 100,
            "learning.buffer_size": 180,
            "protocol.eval_every": 100,
            "protocol.eval_episodes": 2,
            "protocol.diagnose_every": 50,
            "protocol.log_every": 25,
        },
    ),
    "drq-dqn": ("pixel_envs:dot", {**_PIXELS, "settings.tau": 0.1, "settings.critic.hidden": (16,)}),
    "rainbow": ("pixel_envs:dot", _RAINBOW),
    "curl-rainbow": (
        "pixel_envs:dot",
        {**_RAINBOW, "settings.contrastive_hidden": 16, "settings.contrastive_units": 8, "settings.crop_margin": 2},
    ),
    "td3": ("gym/Pendulum-v1", _CONTINUOUS),
    "metd3": ("gym/Pendulum-v1", _CONTINUOUS),
    "sac": ("gym/Pendulum-v1", _CONTINUOUS),
    "redq": ("gym/Pendulum-v1", {**_CONTINUOUS, "learning.updates": 2, "settings.policy_every": 3}),
    "curl-sac": ("pixel_envs:continuous_dot", _CURL_SAC),
    "drq-sac": ("pixel_envs:continuous_dot", _DRQ),
    "sac-ae": ("pixel_envs:continuous_dot", _PIXELS_CONTINUOUS),
    "drq-v2": ("pixel_envs:continuous_dot", {**_DRQ, "settings.noise_steps": 100}),
    "td-mpc": ("gym/Pendulum-v1", _TD_MPC),
    "td-mpc-pixels": (
        "pixel_envs:continuous_dot",
        {**_TD_MPC, **_SMALL_ENCODER, "learning.update_every": 5, "learning.batch_size": 8, "settings.shift": 1},
    ),
    "planet": ("gym/Pendulum-v1", {**_WORLD_MODEL, **_PLANNER}),
    "planet-pixels": ("pixel_envs:continuous_dot", {**_WORLD_MODEL, **_PLANNER, **_WORLD_FRAMES}),
    "dreamer": ("gym/Pendulum-v1", {**_WORLD_MODEL, **_IMAGINATION}),
    "dreamer-pixels": ("pixel_envs:continuous_dot", {**_WORLD_MODEL, **_IMAGINATION, **_WORLD_FRAMES}),
    "dreamer-v2": ("gym/CartPole-v1", {**_WORLD_MODEL, **_IMAGINATION, "settings.rssm.classes": 3}),
    "dreamer-v2-pixels": (
        "pixel_envs:continuous_dot",
        {**_WORLD_MODEL, **_IMAGINATION, **_WORLD_FRAMES, "settings.rssm.classes": 3},
    ),
    "ppo": (
        "gym/InvertedPendulum-v5",
        {
            "steps": 600,
            "settings.batch_steps": 128,
            "settings.minibatches": 4,
            "settings.epochs": 3,
            "protocol.eval_every": 192,
            "protocol.eval_episodes": 2,
        },
    ),
    "trpo": (
        "gym/CartPole-v1",
        {
            "steps": 600,
            "settings.batch_steps": 128,
            "protocol.eval_every": 192,
            "protocol.eval_episodes": 2,
        },
    ),
}
"""A task of seconds for every agent; the ring wraps, every observer fires."""


_FAST_ACTOR_CRITIC: dict[str, object] = {
    "settings.actor_learning_rate": 1e-3,
    "settings.critic_learning_rate": 1e-2,
    "settings.tau": 0.1,
}
_NO_ENTROPY: dict[str, object] = {"settings.initial_temperature": 1e-6, "settings.temperature_learning_rate": 1e-9}
_FAST_FRAMES: dict[str, object] = {
    "settings.actor_learning_rate": 1e-3,
    "settings.critic_learning_rate": 5e-3,
    "settings.tau": 0.1,
    "settings.encoder_tau": 0.1,
    "settings.target_every": 1,
}
_FAST_RAINBOW: dict[str, object] = {
    "settings.learning_rate": 2e-3,
    "settings.target_every": 10,
    "settings.lowest_return": -1.0,
    "settings.highest_return": 4.0,
    "settings.atoms": 21,
}
_FAST_TD_MPC: dict[str, object] = {
    "settings.learning_rate": 5e-3,
    "settings.tau": 0.2,
    "settings.value_weight": 1.0,
    "settings.planner.horizon": 1,
    "settings.planner.iterations": 1,
}
FAST: dict[str, dict[str, object]] = {
    "dqn": {"settings.learning_rate": 1e-2, "settings.tau": 0.1},
    "drq-dqn": {
        "settings.learning_rate": 5e-3,
        "settings.tau": 0.2,
        "settings.shift": 1,
        "learning.batch_size": 16,
    },
    "rainbow": _FAST_RAINBOW,
    "curl-rainbow": _FAST_RAINBOW,
    "td3": _FAST_ACTOR_CRITIC,
    "metd3": _FAST_ACTOR_CRITIC,
    "sac": _FAST_ACTOR_CRITIC | _NO_ENTROPY,
    "redq": _FAST_ACTOR_CRITIC | _NO_ENTROPY,
    "curl-sac": _FAST_FRAMES | _NO_ENTROPY,
    "drq-sac": _FAST_FRAMES | _NO_ENTROPY,
    "sac-ae": _FAST_FRAMES | _NO_ENTROPY,
    "drq-v2": {"settings.actor_learning_rate": 1e-3, "settings.critic_learning_rate": 5e-3, "settings.tau": 0.1},
    "td-mpc": _FAST_TD_MPC,
    "td-mpc-pixels": _FAST_TD_MPC,
}
"""Settings with which every agent learns the value of a toy task in 1,500 steps."""


PIXELS = {"drq-dqn", "rainbow", "curl-rainbow", "curl-sac", "drq-sac", "sac-ae", "drq-v2"} | {
    name for name in OURS if name.endswith("-pixels")
}
"""Agents whose tiny runs are on frames."""


def toy(agent: str, name: str) -> str:
    """The toy task ``name``, with the observations and the kind of actions that the agent takes."""
    module = "pixel_envs" if agent in PIXELS else "toy_envs"
    return f"{module}:{'continuous_' if find_agent(agent).actions == 'continuous' else ''}{name}"


def toy_config(agent: str, name: str, **changes: object):
    """The agent's tiny run, on a toy task, with fast learning."""
    assert set(FAST) == set(REGULARIZED), "every such agent needs settings for fast learning"
    often = {"learning.update_every": 2} if agent in PIXELS else {}
    config = tiny_config(agent, **{**often, **FAST.get(agent, {}), **changes})
    return dataclasses.replace(config, task=toy(agent, name), encoding="one-hot")


def tiny_config(agent: str, **changes: object):
    assert set(TINY) == set(AGENTS), "every agent needs a tiny run for the contracts"
    task, settings = TINY[agent]
    return configure(agent, task, **{**settings, **changes})


def tiny_run(agent: str, runs: Path, *, checkpoint_seconds: float = 60.0, **changes: object) -> Path:
    return train(tiny_config(agent, **changes), runs=runs, checkpoint_seconds=checkpoint_seconds)


def final(path: Path):
    steps = Checkpoints(path / "checkpoint").steps()
    return read_checkpoint(path / "checkpoint" / f"{steps[-1]:012d}")


@contextmanager
def interrupted(owner: type, method: str, when: Callable[..., bool]) -> Iterator[None]:
    """The block is stopped as by Ctrl-C, after a call of ``method`` for which ``when`` holds; there has to be one."""
    call = getattr(owner, method)

    def stopping(*arguments: Any, **keywords: Any) -> Any:
        result = call(*arguments, **keywords)
        if when(*arguments, **keywords):
            raise KeyboardInterrupt
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, method, stopping)
        with pytest.raises(KeyboardInterrupt):
            yield


def interrupted_at(step: int) -> AbstractContextManager[None]:
    """A run is stopped once it has learned at ``step``: ``with interrupted_at(300): tiny_run(...)``."""
    return interrupted(Trainer, "learn", lambda trainer: trainer.step == step)


class Clock:
    """In the place of ``time``: it stands still until it is moved."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


def command(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command line in this process, which spares the second or two that importing torch takes."""
    out, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(errors):
        patch.setattr(sys, "argv", ["peer-rl", *map(str, arguments)])
        patch.setenv("COLUMNS", "100")
        patch.chdir(cwd or Path.cwd())
        try:
            code = main()
        except SystemExit as exit:
            code = exit.code or 0
    said = (stream.buffer.getvalue().decode() for stream in (out, errors))
    return subprocess.CompletedProcess(arguments, code, *said)


def peer_rl(*arguments: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line as a user types it, in a process of its own."""
    words = [sys.executable, "-m", "peer_rl", *map(str, arguments)]
    env = {**surroundings(), **environment}
    return subprocess.run(words, capture_output=True, text=True, cwd=cwd, env=env, timeout=300)


def surroundings() -> dict[str, str]:
    """Environment variables of a command line that finds the tests' own tasks."""
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "100"}
