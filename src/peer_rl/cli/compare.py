"""``peer-rl compare SCRIPT.py:NAME``: a user's own agent with and without PEER, seed by seed, and a report."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from peer_rl.cli.options import parse
from peer_rl.errors import ConfigError
from peer_rl.settings.fields import NotNegative, Positive, check

_PROTOCOL = ("evaluations", "eval_episodes", "final_episodes", "diagnoses")


@dataclass(frozen=True)
class CompareOptions:
    """Train your own agent with and without PEER and report whether it helps.

    NAME(seed, beta) returns a Stable-Baselines3 model, or NAME(seed, beta, log) trains by itself and calls
    log(step=..., return_=..., **numbers). The same command keeps finished runs and restarts the others.
    """

    script: Positional[str]
    """SCRIPT.py:NAME or MODULE:NAME, your function."""
    betas: tuple[float, ...] = (0.0, 5e-4)
    """Weights of the regularizer; 0 is the plain agent, to which the others are compared."""
    seeds: Positive[int] = 6
    """Number of seeds; at least 6 are needed to decide anything at 5 %."""
    first_seed: NotNegative[int] = 0
    """The first seed; the others follow."""
    steps: int = 50_000
    """Agent steps of each run."""
    regularizers: tuple[str, ...] = ("peer",)
    """Regularizers to compare at each beta above 0: peer, cosine-peer, feature-norm, or module:name."""
    controls: tuple[Literal["layer-norm"], ...] = ()
    """layer-norm: a LayerNorm critic without a regularizer, for comparison."""
    evaluations: int = 10
    """Evaluations during the training of a Stable-Baselines3 model."""
    eval_episodes: int = 5
    """Episodes of each of them."""
    final_episodes: int = 20
    """Episodes of the evaluation at the end, which is the score."""
    diagnoses: int = 20
    """Diagnoses of a Stable-Baselines3 model's representation; 0 for none."""
    threads: int = 1
    """Threads of torch in each run."""
    engine: Literal["local", "ray"] = "local"
    """local: processes on this machine; ray: tasks on a Ray cluster."""
    workers: Positive[int] | None = None
    """Runs at a time; by default as many as cores (or the cluster) and memory allow."""
    address: str | None = None
    """With --engine ray, the cluster: auto for the one that this machine belongs to; a new one here if not given."""
    runs: Path = Path("runs")
    """Folder of the run directories; with --engine ray a path that all nodes share."""
    out: Path = Path("compare")
    """Where the report goes."""
    in_process: bool = False
    """Train in this process and write no report, as each run's worker does."""
    quiet: bool = False
    """With --in-process: print nothing."""


def main(arguments: list[str]) -> int:
    """Load the script, run what is missing, and report."""
    options = parse(CompareOptions, arguments, prog="peer-rl compare")
    check(options)
    if options.address and options.engine != "ray":
        raise ConfigError("--address is a Ray cluster's; add --engine ray")
    from peer_rl.launch.compare import Plan, run_in_process, run_plan
    from peer_rl.training.script_loader import load_script

    plan = Plan(
        betas=options.betas,
        seeds=range(options.first_seed, options.first_seed + options.seeds),
        steps=options.steps,
        regularizers=options.regularizers,
        controls=options.controls,
        protocol={name: getattr(options, name) for name in _PROTOCOL},
        threads=options.threads,
    )
    script = load_script(options.script)
    if options.in_process:
        for config in plan.configs(script):
            path = run_in_process(script, config, options.runs)
            if not options.quiet:
                print(path)
        return 0
    chosen = {"engine": options.engine, "workers": options.workers, "address": options.address}
    try:
        print(run_plan(script, plan, options.runs, options.out, **chosen))
    except KeyboardInterrupt:
        print("peer-rl: stopped; the same command keeps finished runs and restarts the others", file=sys.stderr)
        return 130
    return 0
