"""The top of a report: what holds, what is not clear, what does not hold, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peer_rl.report.scores import FEWEST_PAIRS, LEVEL, Estimate
from peer_rl.report.tables import Linked

AGREES, DISAGREES = "agrees", "disagrees"
HELPS, HURTS, UNDECIDED = "helps", "hurts", "not decided"
"""A variant's effect on returns, tested."""
HOLDS, UNCLEAR, FAILS = "Holds", "Not clear", "Does not hold"
Sentence = list[str]
"""Pieces of plain text, some of them ``Linked``."""


@dataclass(frozen=True)
class Finding:
    """A claim compared with the numbers of one variant."""

    claim: str
    variant: Linked
    number: str
    words: str
    """What ``verdict`` says."""

    @property
    def kind(self) -> str:
        """Holds, not clear, or does not hold."""
        return {AGREES: HOLDS, DISAGREES: FAILS}.get(self.words, UNCLEAR)


def effect(difference: Estimate | None, level: float | None = LEVEL, *, sign: int = 1) -> str:
    """helps, hurts or not decided; ``sign`` is -1 where less is better. No ``level``: it is too early to decide."""
    if difference is None or level is None or not difference.decided(level):
        return UNDECIDED
    return HELPS if difference.value * sign > 0 else HURTS


def verdict(difference: Estimate | None, sign: int) -> str:
    """Whether a paired difference has the claimed sign."""
    if difference is None:
        return "cannot tell: no seed ran both with and without PEER"
    if difference.value == 0:
        return "no difference"
    words = AGREES if difference.value * sign > 0 else DISAGREES
    if not difference.has_interval:
        return f"{words}, but one pair gives no interval"
    if difference.count < FEWEST_PAIRS:
        return f"{words}, but {difference.count} pairs are too few to decide"
    if not difference.excludes_zero:
        return f"{words}, but the interval includes zero"
    return words if difference.decided() else f"{words}, but the sign-flip test has p = {difference.p:.2g}"


def sort_findings(found: Sequence[Finding]) -> dict[str, list[Sentence]]:
    """One sentence for each claim, under what our runs say of it, with the variants that say so."""
    claims: dict[str, dict[str, Sentence]] = {kind: {} for kind in (HOLDS, UNCLEAR, FAILS)}
    for finding in found:
        sentence = claims[finding.kind].setdefault(finding.claim, [])
        words = f": {finding.words}, " if finding.kind == UNCLEAR else ": "
        sentence += ["; " if sentence else f"{finding.claim}. ", finding.variant, words + finding.number]
    return {kind: [[*sentence, "."] for sentence in found.values()] for kind, found in claims.items()}
