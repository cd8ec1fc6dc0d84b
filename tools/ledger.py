"""Runs what is missing of a ledger (results/ledger.toml) and keeps the finished runs' small files next to it.

    make ledger                  # or: python tools/ledger.py [--engine ray] [--workers N]

Every run trains at the lowest priority, from a frozen copy of the commit that the ledger names, so that developing
beside it changes nothing. Checkpoints stay in ``--home``, outside the clone. Stop it at any moment: the same command
continues. A run that is under results/ already, made on whichever machine, is not made again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = (
    "config.toml",
    "manifest.json",
    "status.json",
    "metrics.jsonl",
    "eval.jsonl",
    "diagnostics.jsonl",
    "timing.jsonl",
)
"""What is kept of a run: everything that a report reads. No checkpoint."""
SECONDS_BETWEEN_LOOKS = 20.0


def frozen_copy(repository: Path, commit: str, home: Path) -> Path:
    """The package's source as it was at a commit."""
    folder = home / f"code-{commit[:12]}"
    if not folder.exists():
        archive = subprocess.run(["git", "-C", str(repository), "archive", commit, "src"], capture_output=True)
        if archive.returncode:
            reason = archive.stderr.decode(errors="replace").strip()
            sys.exit(
                f"ledger: commit {commit} is not in this clone ({reason}); get it with: git fetch --unshallow --tags"
            )
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            with tarfile.open(fileobj=BytesIO(archive.stdout)) as tar:
                tar.extractall(scratch, filter="data")
            (Path(scratch) / "src").rename(folder)
    return folder


def finished_runs(folder: Path) -> list[Path]:
    """Run directories below a folder, relative to it, whose status says finished."""
    found = []
    for file in sorted(folder.glob("*/*/*/seed*/status.json")):
        try:
            state = json.loads(file.read_text(encoding="utf-8")).get("state")
        except (ValueError, AttributeError):
            continue
        if state == "finished":
            found.append(file.parent.relative_to(folder))
    return found


def copy_finished(source: Path, target: Path) -> list[Path]:
    """Copy the small files of finished runs that the target does not have; each appears whole or not at all."""
    there = set(finished_runs(target))
    new = [run for run in finished_runs(source) if run not in there]
    for run in new:
        (target / run).mkdir(parents=True, exist_ok=True)
        names = [name for name in KEPT if (source / run / name).exists()]
        for name in sorted(names, key=lambda name: name == "status.json"):  # last: it says that the run is whole
            draft = target / run / f".{name}.new"
            shutil.copyfile(source / run / name, draft)
            draft.replace(target / run / name)
    return new


def keep(runs: Path, results: Path) -> None:
    """Bring finished runs to the results, and say so."""
    for run in copy_finished(runs, results):
        print(f"kept: {os.path.relpath(results / run)}", flush=True)


def train(ledger: Path, source: Path, runs: Path, results: Path, options: list[str]) -> int:
    """``peer-rl sweep`` from the frozen copy, at the lowest priority; finished runs are kept while it goes."""
    command = [sys.executable, "-m", "peer_rl", "sweep", str(ledger), "--runs", str(runs), *options]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    process = subprocess.Popen(command, env=environment, cwd=runs, preexec_fn=lambda: os.nice(19))
    try:
        while True:
            try:
                return process.wait(SECONDS_BETWEEN_LOOKS)
            except subprocess.TimeoutExpired:
                keep(runs, results)
    except KeyboardInterrupt:
        process.wait()  # Ctrl-C reached the sweep too: it stops its runs
        return 130
    finally:
        keep(runs, results)


def main() -> int:
    """Freeze, restore what is there, train, keep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--file", type=Path, default=ROOT / "results" / "ledger.toml", help="the plan")
    parser.add_argument("--results", type=Path, help="where finished runs are kept (default: next to the plan)")
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "peer-rl" / "ledger"
    parser.add_argument("--home", type=Path, default=default, help="code and checkpoints; with Ray on a shared disk")
    parser.add_argument("--engine", choices=("local", "ray"), default="local", help="as for peer-rl sweep")
    parser.add_argument("--workers", type=int, help="runs at a time (default: one per core)")
    parser.add_argument("--dry-run", action="store_true", help="only list the runs: done, begun or to do")
    options = parser.parse_args()
    ledger, home = options.file.resolve(), options.home.resolve()
    results = (options.results or ledger.with_suffix("")).resolve()
    try:
        commit = tomllib.loads(ledger.read_text(encoding="utf-8"))["ledger"]["commit"]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        sys.exit(f'ledger: {ledger} names no commit to run ({error}); add: [ledger] commit = "..."')
    runs = home / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    source = frozen_copy(ROOT, commit, home)
    copy_finished(results, runs)
    words = ["--engine", options.engine, *(["--workers", str(options.workers)] if options.workers else [])]
    return train(ledger, source, runs, results, [*words, *(["--dry-run"] if options.dry_run else [])])


if __name__ == "__main__":
    sys.exit(main())
