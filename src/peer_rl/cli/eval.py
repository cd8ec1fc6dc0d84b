"""``peer-rl eval RUN``: play a run's policy without exploration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from peer_rl.cli.options import parse
from peer_rl.settings import find_agent
from peer_rl.settings.beta import describe_beta
from peer_rl.settings.fields import NotNegative, Positive, check


@dataclass(frozen=True)
class EvalOptions:
    """Evaluate the policy in a run's newest checkpoint. Nothing is written."""

    run: Positional[Path]
    """The run directory."""
    episodes: Positive[int] = 10
    """Episodes to play."""
    seed: NotNegative[int] = 0
    """Seed of the episodes."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""


def main(arguments: list[str]) -> int:
    """Play and print."""
    options = parse(EvalOptions, arguments, prog="peer-rl eval")
    check(options)
    import numpy as np

    from peer_rl.launch.api import load

    policy = load(options.run, options.device)
    result = policy.evaluate(options.episodes, options.seed)
    spread = f" +- {np.std(result.returns, ddof=1):.2f}" if options.episodes > 1 else ""
    frames = policy.step * policy.frames_per_step
    beta = f", beta {describe_beta(policy.config)}" if find_agent(policy.config.agent).td_target else ""
    print(f"{policy.config.agent} on {policy.config.task}, seed {policy.config.seed}{beta}")
    print(f"trained for {policy.step} steps = {frames} frames")
    print(f"return {result.mean:.2f}{spread} (mean and standard deviation over {options.episodes} episodes)")
    print(f"length {np.mean(result.lengths):.1f} steps")
    return 0
