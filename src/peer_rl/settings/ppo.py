"""Settings of ``ppo``: OpenAI Baselines' for MuJoCo."""

from __future__ import annotations

from dataclasses import dataclass

from peer_rl.errors import ConfigError
from peer_rl.settings.fields import Fraction, NotNegative, Positive
from peer_rl.settings.on_policy import OnPolicyConfig


@dataclass(frozen=True)
class PPOConfig(OnPolicyConfig):
    """Proximal policy optimisation by Stable-Baselines3, with the settings of Baselines' PPO2 for MuJoCo."""

    ORIGIN = "OpenAI Baselines, PPO2 for MuJoCo"

    batch_steps: int = 2_048
    """Agent steps between rounds of learning (Baselines ppo2/defaults.py: nsteps)."""
    minibatches: Positive[int] = 32
    """Parts that the batch is split into, one step of Adam each (Baselines: nminibatches)."""
    epochs: Positive[int] = 10
    """Passes over one batch (Baselines: noptepochs)."""
    clip_range: Positive[float] = 0.2
    """Clip range of the ratio of new to old probabilities (Baselines: cliprange)."""
    learning_rate: Positive[float] = 3e-4
    """Adam's initial learning rate (Baselines: lr)."""
    lr_decay_steps: Positive[int] = 1_000_000
    """Agent steps over which the learning rate falls linearly to 0 (Baselines: its 1M budget)."""
    entropy_weight: NotNegative[float] = 0.0
    """Weight of the entropy in the loss (Baselines: ent_coef)."""
    value_weight: NotNegative[float] = 0.25
    """Weight of the squared error of the value in the loss (Baselines: vf_coef 0.5, times the 1/2 in its loss)."""
    gae_lambda: Fraction = 0.95
    """Lambda of the advantage estimate (Baselines: lam)."""
    max_grad_norm: Positive[float] = 0.5
    """Norm to which the gradient is clipped (Baselines ppo2.py)."""
    hidden: tuple[Positive[int], ...] = (64, 64)
    """Units of each hidden tanh layer, of the policy and of a value network of its own (Baselines: mlp, copy)."""
    observation_clip: NotNegative[float] = 10.0
    """Clip of observations normalised by running mean and deviation, 0: raw ones (Baselines run.py: VecNormalize)."""
    reward_clip: NotNegative[float] = 10.0
    """Clip of rewards divided by the return's running deviation, 0: raw ones (Baselines run.py: VecNormalize)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_steps % self.minibatches or self.batch_steps < 2 * self.minibatches:
            raise ConfigError(
                f"batch_steps {self.batch_steps} cannot be split into {self.minibatches} equal minibatches of "
                "two steps or more; change one of them"
            )

    @property
    def minibatch_size(self) -> int:
        """Agent steps in one step of Adam."""
        return self.batch_steps // self.minibatches
