"""Ctrl-C and SIGTERM: the first one asks for a checkpoint at the end of the episode, a second one stops at once."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from peer_rl.training.files import open_regular

_SIGNALS = ("SIGINT", "SIGTERM")


class StopRequest:
    """In a ``with`` block in the main thread, the first signal only sets ``made``; the second is a KeyboardInterrupt.

    With ``at_once`` the first one is. A signal that is ignored stays ignored, as a shell wants it for what runs in the
    background.
    """

    def __init__(self, *, at_once: bool = False) -> None:
        self.at_once = at_once
        self.signal = 0
        """The first signal's number; 0 if there was none."""
        self._before: dict[signal.Signals, Any] = {}

    @property
    def made(self) -> bool:
        """Whether the run is asked to stop."""
        return self.signal != 0

    @property
    def exit_code(self) -> int:
        """What a shell expects of a program that the signal stopped."""
        return 128 + (self.signal or signal.SIGINT)

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.Signals[name] for name in _SIGNALS):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *problem: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        """Prints nothing: a signal may come in the middle of a print."""
        again = self.made
        self.signal = number
        if again or self.at_once:
            raise KeyboardInterrupt


def is_written(run: Path) -> bool:
    """Whether a process on this machine holds the run's lock; True where there is no way to know."""
    try:
        import fcntl
    except ModuleNotFoundError:
        return True
    try:
        handle = open_regular(run / ".lock")
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        with suppress(OSError):
            os.close(handle)
    return False
