"""Simulates how often a report's verdicts are wrong where there is no effect; writes what the report's page shows.

python benchmarks/false_positives.py [SIMULATIONS]
"""

import json
import sys
from pathlib import Path

import peer_rl.report.error_rates as error_rates

TARGET = Path(error_rates.__file__).parent / "assets" / "false_positives.json"

if __name__ == "__main__":
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    rates = error_rates.simulate(simulations)
    lines = ",\n  ".join(json.dumps(row) for row in rates)
    TARGET.write_text(f'{{"simulations": {simulations}, "rates": [\n  {lines}\n]}}\n')
    print(f"highest rate: {max(row['rate'] for row in rates):.3f}")
