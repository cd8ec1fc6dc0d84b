"""Simulates how often a report's verdicts are wrong where there is no effect; writes what the report's page shows.

python benchmarks/false_positives.py [SIMULATIONS]
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import peer_rl.report.error_rates as error_rates
from peer_rl.report.error_rates import PAIRS, SUITE
from peer_rl.report.scores import LEVEL, Floats, mean_difference, sign_flip_p, standardised

TARGET = Path(error_rates.__file__).parent / "assets" / "false_positives.json"
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


if __name__ == "__main__":
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    rates = simulate(simulations)
    lines = ",\n  ".join(json.dumps(row) for row in rates)
    TARGET.write_text(f'{{"simulations": {simulations}, "rates": [\n  {lines}\n]}}\n')
    print(f"highest rate: {max(row['rate'] for row in rates):.3f}")
