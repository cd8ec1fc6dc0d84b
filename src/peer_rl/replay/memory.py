"""Memory available on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_CONTROLLERS = {
    # controller in /proc/self/cgroup: mount, limit, usage, and the part of it that the system takes back when needed
    "": ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    "memory": ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that a process can get without swapping; None if unknown.

    On Linux what the system calls available, or less if a control group, such as a container's, sets a limit;
    elsewhere the physical memory.
    """
    if sys.platform == "linux":
        system = _number(root / "proc/meminfo", "MemAvailable:")
        known = [1024 * system] if system is not None else []
        return min([*known, *_left_by_groups(root)], default=None)
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _left_by_groups(root: Path) -> list[int]:
    """What each control group above this process, of either version, has left below its limit."""
    left = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers not in _CONTROLLERS:
            continue
        mount, limit_name, usage_name, spare_name = _CONTROLLERS[controllers]
        inside = Path(path.lstrip("/"))
        for group in (inside, *inside.parents):  # in a container the path may be the host's: its mount is the last
            folder = root / mount / group
            limit, usage = _text(folder / limit_name).strip(), _text(folder / usage_name).strip()
            if limit.isdecimal() and usage.isdecimal():  # "max" is no limit
                spare = _number(folder / "memory.stat", spare_name) or 0
                left.append(max(0, int(limit) - int(usage) + spare))
    return left


def _number(path: Path, name: str) -> int | None:
    """The number behind a name in a file of names and numbers."""
    words = (line.split() for line in _text(path).splitlines())
    return next((int(line[1]) for line in words if line and line[0] == name), None)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
