"""``peer-rl reproduce EXPERIMENT``: run what is missing of a table or figure of the paper, then report."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from peer_rl.cli.options import parse
from peer_rl.configs.checks import check_not_negative, check_positive
from peer_rl.configs.run import Profile
from peer_rl.errors import ConfigError, RunError, nearest
from peer_rl.experiments import EXPERIMENTS


@dataclass(frozen=True)
class ReproduceOptions:
    """Run what is missing of an experiment, then write its report. The same command again goes on."""

    experiment: Positional[str]
    """gridworld (peer-rl list experiments)."""
    profile: Profile = "paper"
    """paper: the full settings; small: a quarter of the episodes; smoke: seconds."""
    seeds: int = 5
    """Seeds 0 to K-1, the same for every variant."""
    betas: tuple[float, ...] = (5e-4,)
    """PEER's betas, a curve each; plain DQN (beta 0) is always there."""
    workers: int = os.cpu_count() or 1
    """Runs at a time."""
    runs: Path = Path("runs")
    """Where run directories live."""
    out: Path = Path("report")
    """Where the report goes, in a folder named after the experiment."""


def main(arguments: list[str]) -> int:
    """Run, report, and say where everything is."""
    options = parse(ReproduceOptions, arguments, prog="peer-rl reproduce")
    if options.experiment not in EXPERIMENTS:
        hint = nearest(options.experiment, EXPERIMENTS) or f"; there are: {', '.join(EXPERIMENTS)}"
        raise ConfigError(f"unknown experiment {options.experiment!r}{hint}")
    check_positive("seeds", options.seeds)
    check_positive("workers", options.workers)
    for beta in options.betas:
        check_not_negative("betas", beta)
    from peer_rl.cli.report import write
    from peer_rl.experiments.pool import Pool
    from peer_rl.experiments.reproduce import gridworld_jobs

    try:
        options.runs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot write {options.runs} ({error.strerror}); choose another place with --runs") from error
    jobs = gridworld_jobs(seeds=options.seeds, betas=list(options.betas), profile=options.profile, runs=options.runs)
    failure: RunError | None = None
    try:
        Pool(jobs, options.workers).run()
    except RunError as error:  # the report comes all the same, and shows what is missing
        failure = error
    places = [job.path for job in jobs if (job.path / "config.toml").exists()]
    if places:
        write(places, options.out / options.experiment, title="PEER in the grid world (figure 3)")
    if failure:
        raise failure
    return 0
