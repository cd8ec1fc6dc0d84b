"""A run in a process of its own that never outlives its starter.

``python -m peer_rl.cli.child ARGUMENTS`` is ``peer-rl ARGUMENTS`` with one difference: it stops when its
standard input ends. The starter holds the other end of that pipe, so the run stops when the starter says so
and, on every system, when the starter is gone, even by ``kill -9``. Stopping is what Ctrl-C does: the run takes a
checkpoint if its episode ends in time.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

LAST_CHANCE = 10.0
"""Seconds that a run has to stop in order before it is killed."""
STARTED = "$ "
"""What the line in log.txt begins with that holds the command."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def start(words: list[str], path: Path, *, threads: int, cwd: str | None = None) -> subprocess.Popen[bytes]:
    """Start ``peer-rl WORDS``; what it prints goes to log.txt in the run directory ``path``. ``stop`` stops it."""
    path.mkdir(parents=True, exist_ok=True)
    with (path / "log.txt").open("ab") as log:
        log.write(f"{STARTED}{shlex.join(['peer-rl', *words])}\n".encode(errors="replace"))
        log.flush()
        return subprocess.Popen(
            [sys.executable, "-m", "peer_rl.cli.child", *words, "--quiet"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=cwd,
            env={**os.environ, **dict.fromkeys(_THREADS, str(threads))},
            start_new_session=True,  # Ctrl-C at the terminal reaches the starter alone, which then stops its runs
        )


def stop(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """Ask all runs to stop and wait until they have."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        if process.stdin:
            process.stdin.close()
    deadline = time.monotonic() + 2 * LAST_CHANCE
    for process in running:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
