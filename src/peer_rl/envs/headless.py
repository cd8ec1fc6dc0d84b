"""MuJoCo's pictures on a machine without a screen. Training draws nothing and comes nowhere near this."""

from __future__ import annotations

import os
import sys
from ctypes.util import find_library

from peer_rl.errors import ConfigError

MEND = "apt-get install libosmesa6"
"""The smaller of the Debian packages that draw without a screen; libegl1 with libgl1-mesa-dri is the other way."""
_BACKENDS = {"egl": "EGL", "osmesa": "OSMesa"}


def choose_backend() -> str:
    """The backend that MuJoCo will draw with: MUJOCO_GL, set here if a machine without a screen left it open.

    MuJoCo reads the variable when it is imported, so this comes first.
    """
    given = os.environ.get("MUJOCO_GL", "")
    if given in _BACKENDS and sys.platform == "linux" and not find_library(_BACKENDS[given]):
        raise ConfigError(
            f"MUJOCO_GL is {given}, but this machine has no lib{_BACKENDS[given]}; unset it, or run: {MEND}"
        )
    if given or sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return given
    for backend, library in _BACKENDS.items():
        if find_library(library):
            os.environ["MUJOCO_GL"] = backend
            return backend
    raise ConfigError(f"drawing MuJoCo without a screen needs a GL library; run: {MEND}")
