"""Rolls out a trained Stable-Baselines3 agent and plots its critic's representation.

    pip install 'peer-rl[sb3,report]'
    python examples/diagnose_a_trained_agent.py model.zip --algorithm TD3 --env Pendulum-v1 --out representation.png

**Only for a zip that you trust.** Stable-Baselines3's zips contain pickle: loading one from a stranger runs the
stranger's code. The zip is only read. The example does not load the statistics of VecNormalize.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # no screen needed
import gymnasium as gym
import matplotlib.pyplot as plt
import sb3_contrib
import stable_baselines3
import torch
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from peer_rl import Features, Report, drd
from peer_rl.integrations.sb3 import representation
from peer_rl.plugin.diagnostics import DORMANT_THRESHOLD, diagnose_features

ALGORITHMS: dict[str, type[OffPolicyAlgorithm]] = {
    "TD3": stable_baselines3.TD3,
    "DDPG": stable_baselines3.DDPG,
    "SAC": stable_baselines3.SAC,
    "DQN": stable_baselines3.DQN,
    "TQC": sb3_contrib.TQC,
    "QRDQN": sb3_contrib.QRDQN,
}


def roll_out(path: Path, algorithm: str, env: gym.Env, steps: int, seed: int) -> OffPolicyAlgorithm:
    """Load the agent and let it act, with exploration, until its replay buffer holds ``steps`` rows."""
    settings = {"gradient_steps": 0, "learning_starts": 0, "buffer_size": steps, "tensorboard_log": None, "verbose": 0}
    if algorithm.endswith("DQN"):
        # keep its target network as it is, and its exploration at the end of the schedule
        rate = {"exploration_initial_eps": 0.05, "exploration_final_eps": 0.05}
        settings |= {"target_update_interval": 10**12, **rate}
    model = ALGORITHMS[algorithm].load(path, env=env, device="cpu", **settings)
    model.set_random_seed(seed)
    return model.learn(steps)


def draw(features: Features, report: Report, title: str, out: Path) -> None:
    """Four panels: singular values, activity of the units, cosine and DRD of the rows."""
    phi, phi_next = (x if x.dim() == 3 else x[None] for x in (features.phi, features.phi_next))
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    spectrum, activity, cosine, discrepancy = axes.flat
    for head, values in enumerate(torch.linalg.svdvals(phi)):
        spectrum.semilogy(range(1, len(values) + 1), values / values[0], label=f"head {head}")
    spectrum.axvline(report.effective_rank, color="black", ls="--", label=f"effective rank {report.effective_rank:g}")
    spectrum.set(title="Singular values of phi", xlabel="index", ylabel="relative to the largest", ylim=(1e-7, 2))
    mean = phi.abs().mean(1)
    relative = (mean / mean.mean(1, keepdim=True)).clamp(min=1e-3)
    histogram(activity, relative, torch.logspace(-3, 2, 60))
    activity.axvline(
        DORMANT_THRESHOLD, color="black", ls="--", label=f"left of it dormant: {report.dormant_fraction:.0%}"
    )
    activity.set(
        title="Activity of the units", xlabel="mean |activation| over the layer's mean, at least 0.001", ylabel="units"
    )
    activity.set_xscale("log")
    histogram(cosine, torch.cosine_similarity(phi, phi_next, dim=-1), 60)
    cosine.axvline(report.cosine, color="black", ls="--", label=f"mean {report.cosine:.3f}")
    cosine.set(title="Cosine of phi(s, a) and the target's phi(s', a')", xlabel="cosine", ylabel="rows", yscale="log")
    draw_drd(discrepancy, features, report)
    for axis in (spectrum, activity, cosine):
        axis.legend(fontsize="small")
    figure.suptitle(title)
    figure.savefig(out, dpi=120)
    plt.close(figure)


def histogram(axis: plt.Axes, heads: torch.Tensor, bins: int | torch.Tensor) -> None:
    """One outline per head over the same bins; undefined rows are left out."""
    known = [rows[~rows.isnan()].numpy() for rows in heads]
    labels = [f"head {head}" for head in range(len(known))]
    axis.hist(known, bins=bins, histtype="stepfilled", alpha=0.5, label=labels)


def draw_drd(axis: plt.Axes, features: Features, report: Report) -> None:
    """Histogram of DRD over rows, or why it is not defined."""
    axis.set(title="DRD (the paper's property: at most 0)", xlabel="DRD", ylabel="rows")
    if features.head_weight is None or not report.drd_rows:
        reason = "no row bootstraps" if features.head_weight is not None else "not defined for a distributional critic"
        axis.text(0.5, 0.5, reason, ha="center", transform=axis.transAxes)
        return
    found = drd(
        features.phi,
        features.phi_next,
        head_weight=features.head_weight,
        reward=features.reward,
        gamma=features.discount,
        same_action=features.same_action,
    )
    histogram(axis, found if found.dim() == 2 else found[None], 60)
    axis.set_yscale("log")
    axis.axvline(0, color="black", ls="--", label=f"above 0: {report.drd_share_positive:.0%}")
    axis.legend(fontsize="small")


def main() -> None:
    """Load, roll out, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("zip", type=Path, help="a Stable-Baselines3 zip that you trust: it contains pickle")
    parser.add_argument("--algorithm", choices=ALGORITHMS, required=True, help="class that trained it")
    parser.add_argument("--env", required=True, help="a Gymnasium id")
    parser.add_argument("--steps", type=int, default=2000, help="steps to roll out")
    parser.add_argument("--rows", type=int, default=1024, help="transitions in the diagnosis")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("representation.png"))
    options = parser.parse_args()
    if not options.zip.is_file():
        parser.error(f"there is no file {options.zip}")
    model = roll_out(options.zip, options.algorithm, gym.make(options.env), options.steps, options.seed)
    features = representation(model, options.rows, seed=options.seed)
    report = diagnose_features(features)
    print(report)
    draw(features, report, f"{options.zip.name}: {options.algorithm} on {options.env}", options.out)
    print(f"drawn: {options.out}")


if __name__ == "__main__":
    main()
