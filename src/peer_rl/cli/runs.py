"""``peer-rl runs``: list runs, and delete some of them."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from peer_rl.cli.options import parse
from peer_rl.errors import ConfigError, PeerError
from peer_rl.report.inventory import Entry, delete, find_entries, select
from peer_rl.settings.fields import check_not_negative

_UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class RunsOptions:
    """List runs: state, step of budget, last evaluation, size, time of the last change and directory."""

    words: Positional[tuple[str, ...]] = ()
    """Only runs whose directory has all of these words, such as: hopper td3 seed0."""
    state: Literal["finished", "running", "stopped", "damaged"] | None = None
    """Only runs in this state; stopped ones resume with the command that started them."""
    older_than: float | None = None
    """Only runs that nothing was written to for this many days."""
    sort: Literal["name", "when", "size", "score"] = "name"
    """Order of the list; the newest, largest or best comes last."""
    delete: bool = False
    """Delete the runs that are listed, after a question; needs a word, --state or --older-than."""
    yes: bool = False
    """With --delete: do not ask."""
    runs: Path = Path("runs")
    """Folder of the run directories."""


def main(arguments: list[str]) -> int:
    """List, and delete if asked to."""
    options = parse(RunsOptions, arguments, prog="peer-rl runs")
    before = None
    if options.older_than is not None:
        check_not_negative("older_than", options.older_than)
        before = datetime.now() - timedelta(days=options.older_than)
    if options.delete and not (options.words or options.state or before):
        raise ConfigError("--delete needs a choice: words of the directory, --state or --older-than")
    found = select(find_entries(options.runs), options.words, state=options.state, before=before)
    found.sort(key=_ORDERS[options.sort])
    _show(found, options.runs)
    return _delete(found, options) if options.delete and found else 0


_ORDERS = {
    "name": lambda entry: (entry.name,),
    "when": lambda entry: (entry.changed, entry.name),
    "size": lambda entry: (entry.bytes, entry.name),
    "score": lambda entry: (entry.score is not None, entry.score or 0.0, entry.name),
}


def _show(entries: Sequence[Entry], runs: Path) -> None:
    rows = [("state", "step", "score", "size", "changed", "run")]
    for entry in entries:
        step = "-" if entry.step is None else str(entry.step)
        score = "-" if entry.score is None else f"{entry.score:.1f}"
        changed = f"{entry.changed:%Y-%m-%d %H:%M}"
        rows.append((entry.state, f"{step}/{entry.total or '-'}", score, _amount(entry.bytes), changed, entry.name))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows if entries else []:
        state, *numbers, changed = (cell.rjust(width) for cell, width in zip(row[:5], widths, strict=True))
        print("  ".join((state.lstrip().ljust(widths[0]), *numbers, changed, row[5])))
    print(f"{_count(entries)} in {runs}, {_amount(sum(entry.bytes for entry in entries))}")


def _count(entries: Sequence[Entry]) -> str:
    return f"{len(entries)} run{'s' * (len(entries) != 1)}"


def _amount(size: float) -> str:
    if size < 1000:
        return f"{size:.0f} B"
    power = min(int(math.log10(size)) // 3, len(_UNITS) - 1)
    number = size / 1000**power
    return f"{number:.0f} {_UNITS[power]}" if number >= 10 else f"{number:.1f} {_UNITS[power]}"


def _delete(entries: Sequence[Entry], options: RunsOptions) -> int:
    """Delete what is shown; what cannot be deleted is named, and does not keep the others."""
    if not options.yes:
        if not sys.stdin.isatty():
            raise ConfigError("--delete asks first; add --yes to delete the runs above without a question")
        if input(f"Delete {_count(entries)} for good? [y/N] ").strip().lower() not in ("y", "yes"):
            print("nothing was deleted")
            return 0
    kept = 0
    for entry in entries:
        try:
            delete(entry, options.runs)
        except PeerError as error:
            kept += 1
            print(f"peer-rl: {error}", file=sys.stderr)
    print(f"deleted {_count(entries[kept:])}")
    return 2 if kept else 0
