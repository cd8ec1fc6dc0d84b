"""How often a report would say that something helps or hurts where nothing does: its false-positive rates, simulated.

``benchmarks/false_positives.py`` writes the numbers that a report shows (assets/false_positives.json).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from importlib.resources import files

import numpy as np

from peer_rl.report.statistics import LEVEL, Floats, mean_difference, sign_flip_p, standardised
from peer_rl.report.tables import Table

PAIRS = (6, 7, 8, 9, 10)
SUITE = 4
"""Tasks of a simulated suite, as in table 1."""
LOOKS = ((6, 0.032), (10, 0.018))
"""The ledger's looks: seeds and level."""
RETURNS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Floats]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy-tailed": lambda rng, shape: rng.standard_t(2, size=shape),
    "skewed": lambda rng, shape: rng.lognormal(size=shape),
    "some runs fail": lambda rng, shape: np.where(rng.random(shape) < 0.3, 0.0, 1.0) + 0.1 * rng.normal(size=shape),
}
"""Distributions of a run's return; both sides of a pair draw from the same one."""


def _differences(name: str, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return RETURNS[name](rng, shape) - RETURNS[name](rng, shape)


def _decided(data: Floats, level: float = LEVEL) -> bool:
    """What ``Estimate.decided`` says; the interval is only computed where it matters."""
    return sign_flip_p(data) <= level and mean_difference(data.tolist()).decided(level)


def _suite(data: Floats) -> bool:
    return _decided(np.concatenate([standardised(column) for column in data.T]))


def simulate(simulations: int, *, pairs: Sequence[int] = PAIRS, seed: int = 0) -> list[dict[str, object]]:
    """The rate of each verdict, for each distribution and number of pairs."""
    rows: list[dict[str, object]] = []
    for name in RETURNS:
        rng = np.random.default_rng(seed)
        for count in pairs:
            tasks = [_decided(_differences(name, rng, (count,))) for _ in range(simulations)]
            suites = [_suite(_differences(name, rng, (count, SUITE))) for _ in range(simulations)]
            rows.append({"verdict": "one task", "returns": name, "pairs": count, "rate": float(np.mean(tasks))})
            rows.append({"verdict": "suite", "returns": name, "pairs": count, "rate": float(np.mean(suites))})
        drawn = [_differences(name, rng, (LOOKS[-1][0],)) for _ in range(simulations)]
        twice = [any(_decided(data[:count], level) for count, level in LOOKS) for data in drawn]
        rows.append({"verdict": "two looks", "returns": name, "pairs": LOOKS[-1][0], "rate": float(np.mean(twice))})
    return rows


def error_rate_table() -> Table:
    """The highest simulated rate over the distributions, by verdict and number of pairs."""
    content = json.loads((files("peer_rl.report") / "assets" / "false_positives.json").read_text(encoding="utf-8"))
    found: dict[tuple[str, int], float] = {}
    for row in content["rates"]:
        key = row["verdict"], row["pairs"]
        found[key] = max(found.get(key, 0.0), row["rate"])
    titles = {
        "one task": "one task, level 5 %",
        "suite": f"{SUITE} tasks together, level 5 %",
        "two looks": "one task, the ledger's two looks",
    }
    rows = [
        [title, *(f"{100 * found[name, count]:.1f} %" if (name, count) in found else "-" for count in PAIRS)]
        for name, title in titles.items()
    ]
    error = 200 * math.sqrt(LEVEL * (1 - LEVEL) / content["simulations"])
    caption = (
        f"How often a verdict other than 'not decided' would come up without any effect: the highest of "
        f"{len(RETURNS)} distributions of returns ({', '.join(RETURNS)}), {content['simulations']:,} simulated "
        f"comparisons each, so that two standard errors of a rate of 5 % are {error:.1f} points."
    )
    return Table(caption, ["verdict on", *(f"{count} pairs" for count in PAIRS)], rows)
