"""Rendering MuJoCo on a machine without a screen. Training from state renders nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from peer_rl.errors import ConfigError

FIXES = {"osmesa": "apt-get install libosmesa6", "egl": "apt-get install libegl1 libgl1-mesa-dri libopengl0"}
"""Debian's packages. On a CPU both are equally fast, and OSMesa is the smaller one."""
_LIBRARIES = {"osmesa": ("OSMesa",), "egl": ("EGL", "OpenGL")}
_TRIAL = """
from peer_rl.envs.headless import choose_backend
choose_backend()
import mujoco
with mujoco.Renderer(mujoco.MjModel.from_xml_string("<mujoco/>"), 32, 32) as renderer:
    assert renderer.render().shape == (32, 32, 3)
"""


def choose_backend() -> str:
    """The backend that MuJoCo will draw with: MUJOCO_GL, set here if a machine without a screen left it open.

    MuJoCo reads the variable when it is imported, so this comes first.
    """
    given = check_backend()
    if given in _LIBRARIES or sys.platform != "linux" or _has_screen():
        return given
    if given:
        raise ConfigError(f"MUJOCO_GL is {given}, which draws nothing on a machine without a screen; unset it")
    for backend in ("egl", "osmesa") if _has_graphics_card() else ("osmesa", "egl"):
        if _found(backend):
            os.environ["MUJOCO_GL"] = backend
            return backend
    raise ConfigError(f"drawing MuJoCo without a screen needs a GL library; run: {FIXES['osmesa']}")


def check_backend() -> str:
    """The user's own MUJOCO_GL, refused if this machine lacks it: even a MuJoCo that draws nothing would not start."""
    given = os.environ.get("MUJOCO_GL", "").lower()
    if sys.platform == "linux" and given in _LIBRARIES and not _found(given):
        names = " and ".join(f"lib{name}" for name in _LIBRARIES[given])
        raise ConfigError(f"MUJOCO_GL is {given}, which needs {names}; unset it, or run: {FIXES[given]}")
    return given


def found_backends() -> list[str]:
    """The backends whose libraries this machine has."""
    return [backend for backend in _LIBRARIES if _found(backend)]


def try_drawing() -> str:
    """Render a frame in a subprocess; returns the error, or an empty string."""
    try:
        result = subprocess.run([sys.executable, "-c", _TRIAL], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "it took more than a minute"
    lines = result.stderr.strip().splitlines() or [f"exit code {result.returncode}"]
    return lines[-1].removeprefix("peer_rl.errors.ConfigError: ") if result.returncode else ""


def _found(backend: str) -> bool:
    return all(find_library(library) for library in _LIBRARIES[backend])


def _has_screen() -> bool:
    """Whether a window could be opened: a DISPLAY without a server behind it is no screen."""
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    if find_spec("glfw") is None:  # MuJoCo brings it
        return True
    import glfw

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bool(glfw.init())


def _has_graphics_card() -> bool:
    return bool([*Path("/dev").glob("dri/renderD*"), *Path("/dev").glob("nvidia[0-9]*")])


def draw_quickly(model: Any) -> None:
    """Turn off shadows, reflections and multisampling: several times the frames per second on a CPU.

    ``model`` is MuJoCo's. Call it before the first frame; the physics is unaffected.
    """
    model.vis.quality.offsamples = 0
    model.light_castshadow[:] = 0
    model.mat_reflectance[:] = 0
