"""How often a report would say that something helps or hurts where nothing does: its false-positive rates.

``benchmarks/false_positives.py`` simulates them (assets/false_positives.json).
"""

from __future__ import annotations

import json
import math
from importlib.resources import files

from peer_rl.report.scores import LEVEL
from peer_rl.report.tables import Table

PAIRS = (6, 7, 8, 9, 10)
SUITE = 4
"""Tasks of a simulated suite, as in table 1."""


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
    returns = list(dict.fromkeys(row["returns"] for row in content["rates"]))
    error = 200 * math.sqrt(LEVEL * (1 - LEVEL) / content["simulations"])
    caption = (
        f"How often a verdict other than 'not decided' would appear without any effect: the highest of "
        f"{len(returns)} distributions of returns ({', '.join(returns)}), {content['simulations']:,} simulated "
        f"comparisons each, so that two standard errors of a rate of 5 % are {error:.1f} points."
    )
    return Table(caption, ["verdict on", *(f"{count} pairs" for count in PAIRS)], rows)
