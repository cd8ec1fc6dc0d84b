"""Settings of ``dreamer`` and ``dreamer-pixels``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass

from peer_rl.settings.fields import Fraction, NotNegative, Positive, PositiveFraction, of, part
from peer_rl.settings.world_model import DREAMER_CODE, RSSMConfig, WorldModelConfig, WorldModelLearning


@dataclass(frozen=True)
class BehaviourConfig(WorldModelConfig):
    """A world model, and a policy and a critic that learn from imagined states."""

    actor_learning_rate: Positive[float] = of(8e-5, DREAMER_CODE)
    """Adam's learning rate for the policy."""
    critic_learning_rate: Positive[float] = of(8e-5, DREAMER_CODE)
    """Adam's learning rate for the critic."""
    behaviour_epsilon: Positive[float] = of(1e-7, DREAMER_CODE)
    """Adam's epsilon for policy and critic."""
    imagined_steps: Positive[int] = of(15, DREAMER_CODE)
    """Steps of an imagined trajectory."""
    imagined_discount: PositiveFraction = of(0.99, DREAMER_CODE)
    """Discount of imagined rewards; the same as --gamma unless there is a reason."""
    return_lambda: Fraction = of(0.95, DREAMER_CODE)
    """The lambda of the returns: 0 for one step, 1 for the sum of all rewards."""
    actor_layers: Positive[int] = of(4, DREAMER_CODE)
    """Hidden layers of the policy."""
    critic_layers: Positive[int] = of(3, DREAMER_CODE)
    """Hidden layers of the critic."""
    exploration_noise: NotNegative[float] = of(0.3, DREAMER_CODE)
    """Standard deviation of the Gaussian noise on sampled actions in training."""


@dataclass(frozen=True)
class DreamerConfig(BehaviourConfig):
    """Dreamer (Hafner et al. 2020): a policy learned by gradients through imagined trajectories."""

    model_learning_rate: float = of(6e-4, DREAMER_CODE)
    model_epsilon: float = of(1e-7, DREAMER_CODE)
    max_gradient_norm: float = of(100.0, DREAMER_CODE)
    free_nats_per_step: bool = of(False, DREAMER_CODE)
    reward_weight: float = of(1.0, DREAMER_CODE)
    image_bits: int = of(8, DREAMER_CODE)
    units: int = of(400, DREAMER_CODE)
    reward_layers: int = of(2, DREAMER_CODE)
    end_weight: float = of(10.0, DREAMER_CODE)
    rssm: RSSMConfig = part(RSSMConfig(activation="elu"), activation=DREAMER_CODE)


@dataclass(frozen=True)
class DreamerLearning(WorldModelLearning):
    """Replay and update schedule of ``dreamer``."""

    start_steps: int = of(2_500, DREAMER_CODE + ": 5,000 environment steps at an action repeat of 2")
    pretrain: int = of(100, DREAMER_CODE)
    update_every: int = of(500, DREAMER_CODE + ": 1,000 environment steps at an action repeat of 2")
    updates: int = of(100, DREAMER_CODE)
