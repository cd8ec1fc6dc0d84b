"""How many pairs of runs would decide a difference of a given size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import nct, t

from peer_rl.report.scores import FEWEST_PAIRS, LEVEL

POWER = 0.8
"""Probability of deciding a difference that is really there, as is usual."""
MOST_PAIRS = 1_000


def power_of(effect: float, pairs: int, *, level: float = LEVEL) -> float:
    """Probability that a two-sided paired t test decides; ``effect`` is the mean difference over its deviation."""
    freedom, shift = pairs - 1, effect * np.sqrt(pairs)
    edge = t.ppf(1 - level / 2, freedom)
    # SciPy gives NaN instead of 1 or 0 where the shift is large
    above = np.nan_to_num(nct.sf(edge, freedom, shift), nan=1.0)
    return float(above + np.nan_to_num(nct.cdf(-edge, freedom, shift), nan=0.0))


def pairs_to_decide(differences: Sequence[float]) -> int | None:
    """The fewest pairs that decide a difference of the size seen with 80 % probability; None beyond 1,000.

    At least 6, below which the sign-flip test cannot decide. With few pairs the size itself is uncertain, and so is
    this number.
    """
    data = np.asarray(differences, dtype=np.float64)
    mean = float(data.mean())
    deviation = float(data.std(ddof=1)) if data.size > 1 else np.nan
    if not np.isfinite(deviation) or mean == 0:
        return None
    if deviation == 0:
        return FEWEST_PAIRS
    effect = abs(mean) / deviation
    if power_of(effect, MOST_PAIRS) < POWER:
        return None
    low, high = FEWEST_PAIRS, MOST_PAIRS
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(effect, middle) >= POWER else (middle + 1, high)
    return low
