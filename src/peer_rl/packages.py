"""Packages that parts of peer-rl need, and the pip command that installs them.

The plug-in needs torch alone. Everything else belongs to an extra, as pyproject.toml lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import NamedTuple

from peer_rl.errors import PeerError

TRAINER = ("gymnasium", "numpy", "safetensors", "tyro", "rich", "tomli-w", "filelock")
"""What the extra ``train`` installs besides torch."""
REPORT = ("plotly", "matplotlib", "jinja2", "scipy")


class Extra(NamedTuple):
    """What an extra is for, and the packages that it adds to the trainer's."""

    purpose: str
    packages: tuple[str, ...]


EXTRAS = {
    "report": Extra("figures and tables", REPORT),
    "pybullet": Extra("PyBullet's tasks", ("pybullet", "pybullet-envs-gymnasium")),
    "mujoco": Extra("MuJoCo's tasks", ("mujoco", "imageio")),  # its environments import imageio, even to draw nothing
    "dmc": Extra("DMControl's tasks", ("dm-control", "mujoco")),
    "atari": Extra("Atari's games", ("ale-py", "cv2")),
    "sb3": Extra("ppo and trpo", ("stable-baselines3", "sb3-contrib")),
    "ray": Extra("sweeps on a Ray cluster", ("ray",)),
    "search": Extra("peer-rl sweep --search", ("optuna",)),
    "tensorboard": Extra("TensorBoard", ("tensorboard",)),
    "wandb": Extra("Weights & Biases", ("wandb",)),
    "video": Extra("peer-rl watch", ("imageio-ffmpeg", "pygame")),
    "export": Extra("peer-rl export --onnx", ("onnx", "onnxscript", "onnxruntime")),
}


class MissingPackageError(PeerError, ImportError):
    """A package that is not installed, with the command that installs it."""


def absent(names: tuple[str, ...]) -> list[str]:
    """Those of ``names`` that are not installed, named as pip names them."""
    return [name for name in names if find_spec(name.replace("-", "_")) is None]


def require_trainer(what: str, *, report: bool = False) -> None:
    """Refuse ``what`` with one sentence where the trainer's packages, or a report's too, are missing."""
    missing = absent(("torch", *TRAINER, *(REPORT if report else ())))
    if missing:
        *others, last = missing
        names = f"{', '.join(others)} and {last}" if others else last
        extra = "report" if report else "train"
        raise MissingPackageError(f"{what} needs {names}; install with: pip install 'peer-rl[{extra}]'")


@contextmanager
def from_extra(extra: str, what: str) -> Iterator[None]:
    """Where the block imports a package that is not installed: ``what`` needs it, and an extra brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = f"{what} needs {error.name}"
        raise MissingPackageError(f"{name}; install it with: pip install 'peer-rl[{extra}]'") from error


def version_of(name: str) -> str | None:
    """The version of a package, named as pip or as Python names it; None if it is not there or its module is not."""
    module = name.replace("-", "_")
    if find_spec(module) is None:
        return None
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # cv2 comes in packages of several names, none of them its own
        pass
    try:
        return getattr(import_module(module), "__version__", None)
    except ImportError:
        return None
