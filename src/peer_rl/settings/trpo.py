"""Settings of ``trpo``: OpenAI Baselines' for MuJoCo."""

from __future__ import annotations

from dataclasses import dataclass

from peer_rl.errors import ConfigError
from peer_rl.settings.fields import Fraction, NotNegative, Positive, PositiveFraction, of
from peer_rl.settings.on_policy import OnPolicyConfig


@dataclass(frozen=True)
class TRPOConfig(OnPolicyConfig):
    """Trust region policy optimisation by sb3-contrib, with the settings of Baselines' trpo_mpi for MuJoCo."""

    ORIGIN = "OpenAI Baselines, trpo_mpi for MuJoCo"

    batch_steps: int = 1_024
    """Agent steps between rounds of learning (Baselines trpo_mpi/defaults.py: timesteps_per_batch)."""
    max_kl: Positive[float] = 0.01
    """Largest divergence of the new policy from the old one (Baselines: max_kl)."""
    cg_iterations: Positive[int] = 10
    """Iterations of conjugate gradients (Baselines: cg_iters)."""
    cg_damping: NotNegative[float] = 0.1
    """Damping added to the diagonal of the Fisher matrix (Baselines: cg_damping)."""
    line_search_shrink: PositiveFraction = 0.5
    """Factor on the step each time it is too long (Baselines trpo_mpi.py)."""
    line_search_tries: Positive[int] = 10
    """Steps that are tried before the policy is left as it was (Baselines trpo_mpi.py)."""
    learning_rate: Positive[float] = 1e-3
    """Adam's learning rate for the value network (Baselines: vf_stepsize)."""
    value_epochs: Positive[int] = 5
    """Passes of the value network over one batch (Baselines: vf_iters)."""
    value_minibatch: Positive[int] = 64
    """Agent steps in one step of Adam on the value network (Baselines trpo_mpi.py)."""
    gae_lambda: Fraction = 0.98
    """Lambda of the advantage estimate (Baselines: lam)."""
    hidden: tuple[Positive[int], ...] = (32, 32)
    """Units of each hidden tanh layer, of the policy and of a value network of its own (Baselines: mlp, copy)."""
    observation_clip: NotNegative[float] = 5.0
    """Clip of observations normalised by running mean and deviation, 0: raw (Baselines: normalize_observations)."""
    reward_clip: NotNegative[float] = of(0.0, "ours: trpo_mpi has no normalised rewards of its own")
    """Clip of rewards divided by the return's running deviation, 0: raw ones (ours: trpo_mpi has none of its own)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_steps % self.value_minibatch:
            raise ConfigError(
                f"batch_steps {self.batch_steps} is not a multiple of value_minibatch {self.value_minibatch}; "
                "change one of them"
            )
