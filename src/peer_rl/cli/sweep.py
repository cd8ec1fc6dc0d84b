"""``peer-rl sweep FILE.toml``: run a grid of agents, tasks, seeds and betas, on this machine or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tyro.conf import Positional

from peer_rl.cli.options import parse
from peer_rl.errors import ConfigError, PeerError, RunError
from peer_rl.settings.fields import Fraction, Positive, check

if TYPE_CHECKING:
    from peer_rl.launch.jobs import Job
    from peer_rl.launch.search import BetaSearch


@dataclass(frozen=True)
class SweepOptions:
    """Run what is missing of a grid of runs. Stop it at any time; the same command resumes."""

    file: Positional[Path]
    """The grid, in TOML: agents, tasks, seeds, betas and any option of peer-rl train, as lists or single values."""
    engine: Literal["local", "ray"] = "local"
    """local: processes on this machine; ray: tasks on a Ray cluster."""
    workers: Positive[int] | None = None
    """Runs at a time; by default as many as cores (or the cluster) and memory allow."""
    address: str | None = None
    """With --engine ray, the cluster: auto for the one that this machine belongs to; a new one here if not given."""
    gpu_share: Fraction = 0.25
    """With --engine ray, how much of a GPU an agent that sees pixels gets, if the cluster has GPUs."""
    search: Literal["beta"] | None = None
    """Search the best beta for each agent and task instead of running the grid's own."""
    runs: Path = Path("runs")
    """Folder of the run directories; with --engine ray a path that all nodes share."""
    out: Path | None = None
    """Write a report of the runs there at the end."""
    dry_run: bool = False
    """Only show the runs: which are done, begun, or to do."""


def main(arguments: list[str]) -> int:
    """Read the file, run what is missing, and report if asked to."""
    options = parse(SweepOptions, arguments, prog="peer-rl sweep")
    check(options)
    if options.address and options.engine != "ray":
        raise ConfigError("--address is a Ray cluster's; add --engine ray")
    from peer_rl.launch.sweep import read_sweep

    sweep = read_sweep(options.file, options.runs)
    search = None
    if options.search:
        from peer_rl.launch.search import search_beta

        search = search_beta(sweep)
    if options.dry_run:
        return show_jobs(search.first_round() if search else sweep.jobs)
    return _run(options, sweep.jobs, search)


def _run(options: SweepOptions, jobs: Sequence[Job], search: BetaSearch | None) -> int:
    """Failed runs are reported at the very end: the report is written all the same, and shows what is missing."""
    from peer_rl.launch.engine import conduct, make_engine
    from peer_rl.launch.jobs import make_folder

    make_folder(options.runs)
    failure: PeerError | None = None
    workers, address, gpu_share = options.workers, options.address, options.gpu_share
    with make_engine(options.engine, workers=workers, address=address, gpu_share=gpu_share) as engine:
        if search:
            failure = search.run(lambda jobs: conduct(jobs, engine))
            jobs = search.jobs()
            print(search.summary())
        else:
            try:
                conduct(jobs, engine)
            except RunError as error:
                failure = error
    if options.out:
        _report(jobs, options.out, options.file.name)
    if failure:
        raise failure
    return 0


def show_jobs(jobs: Sequence[Job]) -> int:
    """Every run with its command, and how much of it is done."""
    states = {0.0: "to do", 1.0: "done"}
    counts = dict.fromkeys(("done", "begun", "to do"), 0)
    for job in jobs:
        share = 1.0 if job.finished() else min(job.share(), 0.99)
        state = states.get(share, "begun")
        counts[state] += 1
        print(f"{state:<6} {f'{100 * share:3.0f} %' if state == 'begun' else '':<5} {job.command}")
    words = ", ".join(f"{count} {state}" for state, count in counts.items())
    print(f"{len(jobs)} runs: {words}")
    return 0


def _report(jobs: Sequence[Job], out: Path, name: str) -> None:
    from peer_rl.cli.report import write

    places = [job.path for job in jobs if (job.path / "config.toml").exists()]
    if places:
        write(places, out, title=f"Sweep {name}")
