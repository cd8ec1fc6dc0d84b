"""The simulators under some tasks: which one a task needs, and what keeps it quiet and reproducible."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import sys
import warnings
from collections.abc import Iterator

import gymnasium as gym

from peer_rl.errors import ConfigError
from peer_rl.packages import EXTRAS, absent
from peer_rl.settings.tasks import Task

MODULES = {
    engine: tuple(name.replace("-", "_") for name in EXTRAS[engine].packages)
    for engine in ("pybullet", "mujoco", "dmc", "atari")
}
_PACKAGES = {"pybullet_envs_gymnasium": "pybullet", "gymnasium.envs.mujoco": "mujoco", "ale_py": "atari"}


def engine_of(task: Task) -> str:
    """pybullet, mujoco, dmc, atari or an empty string, also for gym/ANY-ID. Imports none of them."""
    if task.extra or task.suite == "custom":
        return task.extra
    module, colon, _ = task.make.partition(":")
    spec = gym.registry.get(task.make)
    entry = module if colon else str(spec.entry_point) if spec else ""
    return next((engine for package, engine in _PACKAGES.items() if entry.startswith(package)), "")


def check_installed(task: Task, engine: str) -> None:
    """Name the pip line if the engine is missing."""
    missing = absent(MODULES.get(engine, ()))
    if missing:
        raise ConfigError(
            f"task {task.name} needs {' and '.join(missing)}; install it with: pip install 'peer-rl[{engine}]'"
        )


@contextlib.contextmanager
def quiet(engine: str) -> Iterator[None]:
    """Silence PyBullet's build date, ALE's banner and deprecation warnings while an environment is made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gymnasium warns of every version that is not the newest
        silence = {
            "pybullet": _silent_descriptors,
            "mujoco": _no_mujoco_warnings,
            "dmc": _no_absl_warnings,
            "atari": _no_ale_banner,
        }
        with silence.get(engine, contextlib.nullcontext)():
            yield


@contextlib.contextmanager
def _silent_descriptors() -> Iterator[None]:
    """PyBullet prints from C, so Python's sys.stdout is not what must be silenced."""
    flush = ctypes.CDLL(None).fflush if os.name == "posix" else lambda _: None
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    flush(None)
    kept = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for descriptor in kept:
            os.dup2(nowhere, descriptor)
        yield
    finally:
        flush(None)  # what C has buffered would come out later
        for descriptor, original in kept.items():
            os.dup2(original, descriptor)
            os.close(original)
        os.close(nowhere)


@contextlib.contextmanager
def _no_mujoco_warnings() -> Iterator[None]:
    """HalfCheetah's model makes MuJoCo warn of its own syntax, on stderr and in MUJOCO_LOG.TXT."""
    import mujoco

    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


@contextlib.contextmanager
def _no_absl_warnings() -> Iterator[None]:
    """dm_control hands the same warnings to Abseil's logger."""
    logger = logging.getLogger("absl")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


@contextlib.contextmanager
def _no_ale_banner() -> Iterator[None]:
    """ALE prints a banner on stderr when the first game is made; its environments silence it only afterwards."""
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    yield


def settle(env: gym.Env[object, object], engine: str) -> None:
    """A fresh PyBullet robot's first episode differs from the same episode later: spend one reset on it (law 3)."""
    if engine == "pybullet":
        env.reset()
