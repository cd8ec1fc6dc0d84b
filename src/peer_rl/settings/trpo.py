"""Settings of ``trpo``: OpenAI Baselines' for MuJoCo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from peer_rl.errors import ConfigError
from peer_rl.settings.fields import check, of
from peer_rl.settings.on_policy import check_common


@dataclass(frozen=True)
class TRPOConfig:
    """Trust region policy optimisation by sb3-contrib, with the settings of Baselines' trpo_mpi for MuJoCo."""

    ORIGIN: ClassVar[str] = "OpenAI Baselines, trpo_mpi for MuJoCo"

    batch_steps: int = 1_024
    """Agent steps between rounds of learning (Baselines trpo_mpi/defaults.py: timesteps_per_batch)."""
    max_kl: float = 0.01
    """Largest divergence of the new policy from the old one (Baselines: max_kl)."""
    cg_iterations: int = 10
    """Iterations of conjugate gradients (Baselines: cg_iters)."""
    cg_damping: float = 0.1
    """Damping added to the diagonal of the Fisher matrix (Baselines: cg_damping)."""
    line_search_shrink: float = 0.5
    """Factor on the step each time it is too long (Baselines trpo_mpi.py)."""
    line_search_tries: int = 10
    """Steps that are tried before the policy is left as it was (Baselines trpo_mpi.py)."""
    learning_rate: float = 1e-3
    """Adam's learning rate for the value network (Baselines: vf_stepsize)."""
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
    reward_clip: float = of(0.0, "ours: trpo_mpi has no normalised rewards of its own")
    """Clip of rewards divided by the return's running deviation, 0: raw ones (ours: trpo_mpi has none of its own)."""

    def __post_init__(self) -> None:
        check_common(self)
        check(
            self,
            positive="max_kl cg_iterations line_search_tries value_epochs value_minibatch",
            not_negative="cg_damping",
            positive_fraction="line_search_shrink",
        )
        if self.batch_steps % self.value_minibatch:
            raise ConfigError(
                f"batch_steps {self.batch_steps} is not a multiple of value_minibatch {self.value_minibatch}; "
                "change one of them"
            )
