"""Settings of ``ppo`` and ``trpo``, which Stable-Baselines3 and sb3-contrib train: OpenAI Baselines' for MuJoCo."""

from __future__ import annotations

from dataclasses import dataclass

from peer_rl.configs.checks import check_fraction, check_not_negative, check_positive
from peer_rl.errors import ConfigError


@dataclass(frozen=True)
class OnPolicyLearningConfig:
    """What an agent without a replay shares with the others."""

    gamma: float = 0.99
    """Discount of one agent step (Baselines, mujoco defaults)."""

    def __post_init__(self) -> None:
        check_fraction("gamma", self.gamma, above_zero=True)


@dataclass(frozen=True)
class OnPolicyProtocolConfig:
    """What is written down while training; there is no critic of (s, a) whose representation could be inspected."""

    eval_every: int = 5_000
    """Agent steps between evaluations; 0 for none."""
    eval_episodes: int = 10
    """Episodes of one evaluation, without exploration, in an environment of their own."""
    final_episodes: int = 0
    """Episodes of the evaluation at the end of training; 0 for as many as in the others."""
    final_steps: int = 0
    """The evaluation at the end goes on until it has taken this many agent steps too."""

    def __post_init__(self) -> None:
        check_not_negative("eval_every", self.eval_every)
        check_positive("eval_episodes", self.eval_episodes)
        check_not_negative("final_episodes", self.final_episodes)
        check_not_negative("final_steps", self.final_steps)


@dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimisation by Stable-Baselines3, with the settings of Baselines' PPO2 for MuJoCo."""

    batch_steps: int = 2_048
    """Agent steps between rounds of learning (Baselines ppo2/defaults.py: nsteps)."""
    minibatches: int = 32
    """Parts that the batch is split into, one step of Adam each (Baselines: nminibatches)."""
    epochs: int = 10
    """Passes over one batch (Baselines: noptepochs)."""
    clip_range: float = 0.2
    """How far the ratio of new to old probabilities counts from 1 (Baselines: cliprange)."""
    learning_rate: float = 3e-4
    """Adam's first step size (Baselines: lr)."""
    lr_decay_steps: int = 1_000_000
    """Agent steps over which the step size falls linearly to 0, whatever --steps says (Baselines: its 1M budget)."""
    entropy_weight: float = 0.0
    """Weight of the entropy in the loss (Baselines: ent_coef)."""
    value_weight: float = 0.25
    """Weight of the squared error of the value in the loss (Baselines: vf_coef 0.5, times the 1/2 in its loss)."""
    gae_lambda: float = 0.95
    """Lambda of the advantage estimate (Baselines: lam)."""
    max_grad_norm: float = 0.5
    """Norm to which the gradient is clipped (Baselines ppo2.py)."""
    hidden: tuple[int, ...] = (64, 64)
    """Units of each hidden tanh layer, of the policy and of a value network of its own (Baselines: mlp, copy)."""
    observation_clip: float = 10.0
    """Clip of observations normalised by running mean and deviation, 0: raw ones (Baselines run.py: VecNormalize)."""
    reward_clip: float = 10.0
    """Clip of rewards divided by the return's running deviation, 0: raw ones (Baselines run.py: VecNormalize)."""

    def __post_init__(self) -> None:
        _check_common(self)
        for name in ("minibatches", "epochs", "clip_range", "lr_decay_steps", "max_grad_norm"):
            check_positive(name, getattr(self, name))
        check_not_negative("entropy_weight", self.entropy_weight)
        check_not_negative("value_weight", self.value_weight)
        if self.batch_steps % self.minibatches or self.batch_steps < 2 * self.minibatches:
            raise ConfigError(
                f"batch_steps {self.batch_steps} cannot be split into {self.minibatches} equal minibatches of "
                "two steps or more; change one of them"
            )

    @property
    def minibatch_size(self) -> int:
        """Agent steps in one step of Adam."""
        return self.batch_steps // self.minibatches


@dataclass(frozen=True)
class TRPOConfig:
    """Trust region policy optimisation by sb3-contrib, with the settings of Baselines' trpo_mpi for MuJoCo."""

    batch_steps: int = 1_024
    """Agent steps between rounds of learning (Baselines trpo_mpi/defaults.py: timesteps_per_batch)."""
    max_kl: float = 0.01
    """Largest divergence of the new policy from the old one (Baselines: max_kl)."""
    cg_iterations: int = 10
    """Iterations of conjugate gradients (Baselines: cg_iters)."""
    cg_damping: float = 0.1
    """What is added to the diagonal of the Fisher matrix (Baselines: cg_damping)."""
    line_search_shrink: float = 0.5
    """Factor on the step each time it is too long (Baselines trpo_mpi.py)."""
    line_search_tries: int = 10
    """Steps that are tried before the policy is left as it was (Baselines trpo_mpi.py)."""
    learning_rate: float = 1e-3
    """Adam's step size for the value network (Baselines: vf_stepsize)."""
    value_epochs: int = 5
    """Passes of the value network over one batch (Baselines: vf_iters)."""
    value_minibatch: int = 64
    """Agent steps in one step of Adam on the value network (Baselines trpo_mpi.py)."""
    gae_lambda: float = 0.98
    """Lambda of the advantage estimate (Baselines: lam)."""
    hidden: tuple[int, ...] = (32, 32)
    """Units of each hidden tanh layer, of the policy and of a value network of its own (Baselines: mlp, copy)."""
    observation_clip: float = 5.0
    """Clip of observations normalised by running mean and deviation, 0: raw (Baselines: normalize_observations)."""
    reward_clip: float = 0.0
    """Clip of rewards divided by the return's running deviation, 0: raw ones (ours: trpo_mpi has none of its own)."""

    def __post_init__(self) -> None:
        _check_common(self)
        for name in ("max_kl", "cg_iterations", "line_search_tries", "value_epochs", "value_minibatch"):
            check_positive(name, getattr(self, name))
        check_not_negative("cg_damping", self.cg_damping)
        check_fraction("line_search_shrink", self.line_search_shrink, above_zero=True)
        if self.batch_steps % self.value_minibatch:
            raise ConfigError(
                f"batch_steps {self.batch_steps} is not a multiple of value_minibatch {self.value_minibatch}; "
                "change one of them"
            )


OnPolicySettings = PPOConfig | TRPOConfig


def _check_common(settings: OnPolicySettings) -> None:
    if settings.batch_steps < 2:
        raise ConfigError(f"batch_steps must be 2 or more, but is {settings.batch_steps}")
    for units in settings.hidden:
        check_positive("hidden", units)
    check_positive("learning_rate", settings.learning_rate)
    check_fraction("gae_lambda", settings.gae_lambda)
    check_not_negative("observation_clip", settings.observation_clip)
    check_not_negative("reward_clip", settings.reward_clip)
