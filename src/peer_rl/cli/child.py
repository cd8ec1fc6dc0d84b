"""``peer-rl`` for a process that stops with its starter; ``peer_rl.launch.child`` starts it."""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path

from peer_rl.cli.main import main
from peer_rl.launch.child import LAST_CHANCE


def _watch_the_starter() -> None:
    """Ends this process when standard input does."""
    while os.read(0, 1):
        pass
    for share in (0.7, 0.3):  # as Ctrl-C would: the episode's end and a checkpoint first, then at once
        _thread.interrupt_main()
        time.sleep(share * LAST_CHANCE)
    os._exit(130)


def _keep_niceness() -> None:
    """Linux schedules sessions as groups, and this process leads one: its group takes the starter's niceness."""
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(os.nice(0)))


def _main() -> int:
    _keep_niceness()
    # where a shell starts things in the background, Python finds SIGINT ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=_watch_the_starter, daemon=True).start()
    return main()


if __name__ == "__main__":
    sys.exit(_main())
