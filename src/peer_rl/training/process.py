"""The process that trains: torch's threads and subnormal numbers, and the memory that updates free and need again."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# glibc's malloc.h
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST = 32 << 20  # the most that every glibc accepts for the second
_KEPT = 512 << 20


@contextmanager
def processor(threads: int) -> Iterator[None]:
    """Set torch's thread count and flush subnormal numbers to zero; restore both afterwards.

    Adam's mean of a gradient that stays zero (a dead unit, an action that is not drawn) decays until it is subnormal
    and stays there, because 0.9 times the smallest number rounds back to it. A processor takes about a hundred cycles
    for an operation on such a number. Flushing moves no weight: divided by Adam's epsilon these means are 1e-30.

    Threads that torch started earlier keep their own mode; threads started from here on use this one.
    """
    before, flushed = torch.get_num_threads(), _flushes_subnormals()
    torch.set_flush_denormal(True)
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(flushed)


def _flushes_subnormals() -> bool:
    return not torch.full((), 1e-39).mul(1.0).ne(0).item()


def keep_freed_memory() -> bool:
    """Ask glibc not to return freed arrays to the system; True if it agreed.

    By default glibc returns large arrays when they are freed, and the next update pays for getting them again,
    page by page: 4 to 8 % of its CPU time for a 256x256 twin critic at batch 256
    (``benchmarks/peer_overhead.py``, two runs on a shared machine). No number changes; up to
    512 MiB of freed memory stay with the process.

    Does nothing where there is no glibc (macOS, Windows, musl), nor to a threshold that the user has set with
    ``MALLOC_TRIM_THRESHOLD_``, ``MALLOC_MMAP_THRESHOLD_`` or ``GLIBC_TUNABLES``. It may be called again.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "gnu_get_libc_version"):
        return False
    settings = {"mmap_threshold": (_M_MMAP_THRESHOLD, _LARGEST), "trim_threshold": (_M_TRIM_THRESHOLD, _KEPT)}
    answers = [libc.mallopt(*setting) for name, setting in settings.items() if not _chosen_by_user(name)]
    return bool(answers) and all(answers)


def _chosen_by_user(name: str) -> bool:
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    return f"MALLOC_{name.upper()}_" in os.environ or f"glibc.malloc.{name}=" in tunables
