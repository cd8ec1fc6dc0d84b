"""``peer-rl reproduce EXPERIMENT``: run what is missing of a table or figure of the paper, then report."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tyro.conf import Positional

from peer_rl.cli.options import parse
from peer_rl.cli.sweep import show_jobs
from peer_rl.errors import ConfigError, PeerError, nearest
from peer_rl.packages import from_extra
from peer_rl.paper.catalogue import CATALOGUE
from peer_rl.settings.fields import Positive, check, check_not_negative
from peer_rl.settings.run import Profile

if TYPE_CHECKING:
    from peer_rl.paper.plan import Plan

_ASK_ABOVE_HOURS = 1.0


@dataclass(frozen=True)
class ReproduceOptions:
    """Show a plan, run what is missing of an experiment, write its report. The same command resumes."""

    experiment: Positional[str]
    """A table or figure, such as table1 or gridworld (peer-rl list experiments)."""
    profile: Profile = "paper"
    """paper: the full settings; small: hours on a CPU; smoke: a minute or a few, to see that everything works."""
    seeds: Positive[int] | None = None
    """Seeds 0 to K-1, the same for every system; the paper's number if not given, fewer in the other profiles."""
    betas: tuple[float, ...] = ()
    """gridworld only: PEER's betas, a curve each; plain DQN (beta 0) is always there."""
    tasks: tuple[str, ...] = ()
    """Only these tasks of the experiment."""
    agents: tuple[str, ...] = ()
    """Only these agents of the experiment."""
    workers: Positive[int] = os.cpu_count() or 1
    """Runs at a time."""
    engine: Literal["local", "ray"] = "local"
    """local: processes on this machine; ray: tasks on a Ray cluster."""
    address: str | None = None
    """With --engine ray, the cluster: auto for the one that this machine belongs to; a new one here if not given."""
    dry_run: bool = False
    """Only show the plan and its runs: which are done, begun, or to do. Nothing is written."""
    yes: bool = False
    """Do not ask, however long it takes."""
    runs: Path = Path("runs")
    """Folder of the run directories; with --engine ray a path that all nodes share."""
    out: Path = Path("report")
    """Where the report goes, in a folder named after the experiment."""


def main(arguments: list[str]) -> int:
    """Plan, run, report, and say where everything is."""
    options = parse(ReproduceOptions, arguments, prog="peer-rl reproduce")
    _check(options)
    from peer_rl.launch.jobs import make_folder
    from peer_rl.paper.plan import Choice, describe, estimate_plan, make_plan

    if not options.dry_run:
        make_folder(options.runs)
    choice = Choice(options.profile, options.seeds, options.betas, options.tasks, options.agents)
    # absolute on Ray, whose workers have other working directories
    runs = options.runs.absolute() if options.engine == "ray" else options.runs
    plan = make_plan(CATALOGUE[options.experiment], choice, runs)
    print("\n".join(describe(plan)), flush=True)
    estimate = estimate_plan(plan, runs, options.workers)
    if estimate.lines:
        print("\n".join(estimate.lines), flush=True)
    if options.dry_run:
        return show_jobs(plan.jobs)
    if estimate.hours is not None and estimate.hours > _ASK_ABOVE_HOURS and not options.yes:
        _ask(estimate.hours)
    failure: PeerError | OSError | None = None
    try:
        _run(plan, options)
    except (PeerError, OSError) as error:  # the report comes all the same, and shows what is missing
        failure = error
    _report(plan, options.out / options.experiment, runs)
    if failure:
        raise failure
    return 0


def _check(options: ReproduceOptions) -> None:
    if options.experiment not in CATALOGUE:
        hint = nearest(options.experiment, CATALOGUE) or f"; there are: {', '.join(CATALOGUE)}"
        raise ConfigError(f"unknown experiment {options.experiment!r}{hint}")
    check(options)
    for beta in options.betas:
        check_not_negative("betas", beta)
    if options.address and options.engine != "ray":
        raise ConfigError("--address is a Ray cluster's; add --engine ray")


def _ask(hours: float) -> None:
    about = f"this takes about {hours:.1f} hours"
    if not sys.stdin.isatty():
        raise ConfigError(f"{about}; add --yes to start it without being asked")
    if input(f"{about}. Start? [y/N] ").strip().lower() not in ("y", "yes"):
        raise ConfigError("not started; a smaller --profile, or fewer --seeds, --tasks or --agents, take less")


def _run(plan: Plan, options: ReproduceOptions) -> None:
    from peer_rl.launch.engine import run_jobs

    run_jobs(plan.jobs, engine=options.engine, workers=options.workers, address=options.address)


def _report(plan: Plan, out: Path, runs: Path) -> None:
    """The report, with every planned run that there is not as missing."""
    from peer_rl.report.runs import find_runs, group_runs, missing_runs

    found = find_runs([job.path for job in plan.jobs if job.path.is_dir()])
    records = [*found, *missing_runs(found, [job.config for job in plan.jobs], runs)]
    with from_extra("report", "a report"):
        from peer_rl.paper.comparison import compare
        from peer_rl.paper.report import write_report

        comparison = compare(plan.experiment, plan.runs, group_runs(records))
        title = plan.experiment.about[:1].upper() + plan.experiment.about[1:]
        page = write_report(records, out, title=title, comparisons=[comparison])
    finished = sum(record.usable for record in records)
    print(f"{finished} of {len(records)} planned runs finished")
    print(page)
