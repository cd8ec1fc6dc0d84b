"""A report that sets runs next to the paper's tables, or answers a ledger's questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from peer_rl.paper.comparison import Comparison, comparison_section, comparisons_of
from peer_rl.paper.ledger import Ledger
from peer_rl.paper.ledger_section import ledger_sections
from peer_rl.report import write
from peer_rl.report.runs import RunRecord, group_runs


def write_report(
    records: Sequence[RunRecord],
    out: Path,
    *,
    title: str,
    comparisons: Sequence[Comparison] | None = None,
    ledger: Ledger | None = None,
    pictures: bool = True,
) -> Path:
    """Write ``report.html`` and its tables and pictures into ``out``; returns the page's path.

    With a ``ledger`` its answers come first. Without ``comparisons`` the paper's tables are shown next to
    whatever runs of theirs there are.
    """
    groups = group_runs(records)
    compared = comparisons_of(groups) if comparisons is None else comparisons
    pairs = [comparison_section(comparison) for comparison in compared]
    return write.write_report(
        records,
        out,
        title=title,
        answers=ledger_sections(ledger, groups) if ledger else None,
        comparisons=[([section], tables) for section, tables in pairs],
        pictures=pictures,
    )
