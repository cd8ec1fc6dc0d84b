"""What each experiment of the paper is made of."""

from __future__ import annotations

from pathlib import Path

from peer_rl.configs import configure
from peer_rl.experiments.pool import Job


def gridworld_jobs(*, seeds: int, betas: list[float], profile: str, runs: Path) -> list[Job]:
    """Figure 3: plain DQN (beta 0) and one PEER variant per beta, the same seeds for all."""
    jobs = []
    for seed in range(seeds):
        for beta in sorted({0.0, *betas}):
            config = configure("dqn", "gridworld/paper", seed=seed, beta=beta, profile=profile)
            arguments = ["dqn", "--task", "gridworld/paper", "--seed", str(seed), "--beta", repr(beta)]
            jobs.append(Job(config, [*arguments, "--profile", profile], runs))
    return jobs
