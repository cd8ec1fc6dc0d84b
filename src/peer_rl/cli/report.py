"""``peer-rl report RUNS...``: figures, tables and statistics of run directories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from peer_rl.cli.options import parse
from peer_rl.errors import PeerError, RunError


@dataclass(frozen=True)
class ReportOptions:
    """Write report.html, its tables as CSV, Markdown and LaTeX, and its figures, about every run below some folders."""

    runs: Positional[tuple[Path, ...]] = (Path("runs"),)
    """Run directories, or folders that hold some."""
    out: Path = Path("report")
    """Where the report goes."""
    title: str = "peer-rl report"
    """Heading of the page."""
    pictures: bool = True
    """Whether to draw every figure as PNG and SVG too; the page is quicker without."""


def main(arguments: list[str]) -> int:
    """Read, write, and say where the page is."""
    options = parse(ReportOptions, arguments, prog="peer-rl report")
    write(options.runs, options.out, title=options.title, pictures=options.pictures)
    return 0


def write(paths: Sequence[Path], out: Path, *, title: str, pictures: bool = True) -> None:
    """Report on every run at or below ``paths``, and print where the page is."""
    from peer_rl.experiments.runs import find_runs

    records = find_runs(paths)
    if not records:
        places = ", ".join(str(path) for path in paths)
        raise RunError(f"no run directory below {places}; make one with: peer-rl train, or peer-rl reproduce gridworld")
    try:
        from peer_rl.experiments.report import write_report

        page = write_report(records, out, title=title, pictures=pictures)
    except ModuleNotFoundError as error:
        raise PeerError(f"a report needs {error.name}; install it with: pip install 'peer-rl[report]'") from error
    unusable = sum(bool(record.problem) for record in records)
    print(f"{len(records)} runs{f', {unusable} of them not usable' if unusable else ''}")
    print(page)
