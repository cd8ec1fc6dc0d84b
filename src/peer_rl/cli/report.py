"""``peer-rl report RUNS...``: figures, tables and statistics of run directories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from peer_rl.cli.options import parse
from peer_rl.errors import ConfigError, RunError
from peer_rl.packages import from_extra


@dataclass(frozen=True)
class ReportOptions:
    """Write report.html, its tables as CSV, Markdown and LaTeX, and its figures, about every run below some folders."""

    runs: Positional[tuple[Path, ...]] = (Path("runs"),)
    """Run directories, folders that hold some, or a ledger: results/ledger.toml with its runs in results/ledger."""
    out: Path = Path("report")
    """Where the report goes."""
    title: str = ""
    """Heading of the page; a plain one if not given."""
    pictures: bool = True
    """Whether to draw every figure as PNG and SVG too; without, the report is faster."""


def main(arguments: list[str]) -> int:
    """Read, write, and say where the page is."""
    options = parse(ReportOptions, arguments, prog="peer-rl report")
    plans = [path for path in options.runs if path.suffix == ".toml"]
    if len(plans) > 1:
        raise ConfigError("one ledger at a time")
    folders = [path.with_suffix("") if path in plans else path for path in options.runs]
    title = options.title or ("Does PEER help? The ledger" if plans else "peer-rl report")
    write(folders, options.out, title=title, plan=plans[0] if plans else None, pictures=options.pictures)
    return 0


def write(paths: Sequence[Path], out: Path, *, title: str, plan: Path | None = None, pictures: bool = True) -> None:
    """Report on every run at or below ``paths``, by a ledger's plan if there is one, and print where the page is."""
    from peer_rl.report.runs import find_runs

    records = find_runs(paths)
    if not records:
        places = ", ".join(str(path) for path in paths)
        raise RunError(f"no run directory below {places}; make one with: peer-rl train, or peer-rl reproduce gridworld")
    with from_extra("report", "a report"):
        from peer_rl.paper.ledger import read_ledger
        from peer_rl.paper.report import write_report

        ledger = read_ledger(plan) if plan else None
        page = write_report(records, out, title=title, ledger=ledger, pictures=pictures)
    unusable = sum(bool(record.problem) for record in records)
    print(f"{len(records)} runs{f', {unusable} of them not usable' if unusable else ''}")
    print(page)
