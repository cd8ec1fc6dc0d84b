"""Errors that the user can fix. Each is one sentence: what is wrong and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PeerError(Exception):
    """Anything that the command line reports as one line with exit code 2, without a traceback."""


class ConfigError(PeerError, ValueError):
    """An unknown, contradictory or impossible setting."""


class CheckpointError(PeerError):
    """A checkpoint that is damaged, poisoned or of another run."""


class RunError(PeerError):
    """A run directory that cannot be used, or a run that cannot continue."""


def nearest(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the known word closest to ``word``, or an empty string."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
