"""Attacks peer-rl with seeded kills, bad input, damaged and crafted run directories, and counts the failures.

    make attack      # or: python tools/attack [--kinds KIND ...] [--cases N ...] [--seed S] [--out FILE.json]

A case is made again, alone, with ``--only NUMBER``. docs/guarantees.md has the figures of the last whole attack.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import date
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from attack.cases import Result, command, run_case

DEFAULTS = {"kills": 200, "inputs": 1000, "damaged": 500, "crafted": 300}
SECONDS_BETWEEN_LINES = 15.0


def attack(kind: str, cases: int, *, seed: int, workers: int, only: Sequence[int] = ()) -> dict[str, Any]:
    """All cases of one kind."""
    module, began = importlib.import_module(f"attack.{kind}"), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="attack-") as scratch:
        base = Path(scratch) / "base"
        base.mkdir()
        module.prepare(base)
        numbers = only or range(-(-cases // module.PER_CASE))
        one = partial(run_case, kind, base, Path(scratch), seed)
        results: list[Result] = []
        with multiprocessing.get_context("fork").Pool(workers) as pool:
            said = time.monotonic()
            for number, result in zip(numbers, pool.imap(one, numbers), strict=True):
                result = replace(result, failures=[one.replace(scratch, "") for one in result.failures])
                results.append(result)
                for failure in result.failures:
                    print(f"{kind} {number}: {result.what}: {failure}", flush=True)
                if time.monotonic() - said > SECONDS_BETWEEN_LINES:
                    said = time.monotonic()
                    left = (said - began) / len(results) * (len(numbers) - len(results))
                    print(f"{kind}: {len(results)} of {len(numbers)}, {left / 60:.1f} minutes left", flush=True)
    found = zip(numbers, results, strict=True)
    bad = [{"case": number, "what": result.what, "failures": result.failures} for number, result in found]
    return {
        "cases": sum(result.cases for result in results),
        "commands": sum(result.commands for result in results),
        "failed": sum(bool(result.failures) for result in results),
        "failures": [one for one in bad if one["failures"]],
        "seconds": round(time.monotonic() - began),
        "fixed": [],
        "about": module.SUMMARY,
        "seed": seed,
        "date": date.today().isoformat(),
        "python": platform.python_version(),
    }


def again(file: Path, workers: int) -> dict[str, dict[str, Any]]:
    """Only the cases that failed by the JSON; those that pass now move to ``fixed``."""
    found: dict[str, dict[str, Any]] = json.loads(file.read_text())
    for kind, row in found.items():
        if numbers := [one["case"] for one in row["failures"]]:
            now = attack(kind, 0, seed=row["seed"], workers=workers, only=numbers)
            still = {one["case"] for one in now["failures"]}
            row["fixed"] += [one for one in row["failures"] if one["case"] not in still]
            row |= {"failures": now["failures"], "failed": now["failed"]}
    return found


def table(found: dict[str, dict[str, Any]]) -> str:
    """Cases and failures by kind."""
    rows = [("attack", "cases", "commands", "failures", "minutes")]
    for kind, row in found.items():
        rows.append(
            (kind, f"{row['cases']:,}", f"{row['commands']:,}", str(row["failed"]), f"{row['seconds'] / 60:.1f}")
        )
    return "\n".join("  ".join(f"{cell:>{9}}" for cell in row) for row in rows)


def main() -> int:
    """Attack, print the table, write the JSON; exit code 1 if a case failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=DEFAULTS, default=list(DEFAULTS))
    parser.add_argument("--cases", nargs="+", type=int, help="one number for all kinds, or one for each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="cases at a time")
    parser.add_argument("--only", type=int, nargs="+", help="only the cases of these numbers")
    parser.add_argument("--again", action="store_true", help="only the cases that failed by the JSON; fixed ones move")
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    options = parser.parse_args()
    cases = options.cases or [DEFAULTS[kind] for kind in options.kinds]
    if len(cases) == 1:
        cases *= len(options.kinds)
    load()
    found = again(options.out, options.workers) if options.again else {}
    for kind, number in zip(options.kinds, cases, strict=True) if not options.again else ():
        found[kind] = attack(kind, number, seed=options.seed, workers=options.workers, only=options.only or [])
    print(table(found))
    if options.out:  # kinds that were left out this time stay as they are
        kept = json.loads(options.out.read_text()) if options.out.exists() else {}
        together = {kind: {**kept, **found}[kind] for kind in DEFAULTS if kind in {**kept, **found}}
        options.out.write_text(json.dumps(together, indent=1) + "\n")
    return int(any(row["failed"] for row in found.values()))


def load() -> None:
    """Import and start once what every forked command needs; one thread, because threads do not survive a fork."""
    os.environ |= {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    for name in ("peer_rl.launch.api", "peer_rl.report.runs", "peer_rl.paper.report", "attack.damaged"):
        importlib.import_module(name)
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch, redirect_stdout(StringIO()):
        command(("train", "dqn", "--task", "gridworld/paper", "--steps", "150", "--quiet", "--runs", scratch))()


if __name__ == "__main__":
    sys.exit(main())
