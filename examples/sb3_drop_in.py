"""Stable-Baselines3 with and without PEER, seed by seed, with the representation in TensorBoard.

    pip install 'peer-rl[sb3,tensorboard]'
    python examples/sb3_drop_in.py --task CartPole-v1
    tensorboard --logdir runs/sb3

Only the import differs from a Stable-Baselines3 script; beta 0 is Stable-Baselines3 itself, bit for bit.
"""

from __future__ import annotations

import argparse

from stable_baselines3.common.evaluation import evaluate_policy

from peer_rl.integrations.sb3 import DQN, TD3, RepresentationCallback

TASKS = {
    "CartPole-v1": (
        DQN,
        {
            "learning_rate": 2.3e-3,
            "batch_size": 64,
            "train_freq": 256,
            "gradient_steps": 128,
            "target_update_interval": 10,
            "policy_kwargs": {"net_arch": [256, 256]},
        },
    ),
    "Pendulum-v1": (TD3, {"policy_kwargs": {"net_arch": [256, 256]}}),
}


def main() -> None:
    """Train one agent per beta and print its mean return."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=TASKS, default="Pendulum-v1")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--betas", type=float, nargs="+", default=[0.0, 5e-4])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", default="runs/sb3", help="TensorBoard's folder")
    options = parser.parse_args()
    kind, settings = TASKS[options.task]
    for beta in options.betas:
        model = kind("MlpPolicy", options.task, beta=beta, seed=options.seed, tensorboard_log=options.log, **settings)
        watch = RepresentationCallback(every=max(1, options.steps // 20), verbose=0)
        model.learn(options.steps, callback=watch, tb_log_name=f"{options.task}-beta{beta:g}")
        mean, deviation = evaluate_policy(model, model.get_env(), n_eval_episodes=10)
        seen = watch.report
        shown = f"cosine {seen.cosine:.3f}, effective rank {seen.effective_rank:.1f}" if seen else "no diagnosis yet"
        shown += f"; {watch.verdict}" if watch.verdict else ""
        print(f"beta {beta:g}: return {mean:.1f} ± {deviation:.1f}, {shown}")


if __name__ == "__main__":
    main()
