"""Settings of ``dqn``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.fields import Checked, Fraction, NotNegative, Positive, PositiveFraction, of, part
from peer_rl.settings.networks import CriticConfig
from peer_rl.settings.run import LearningConfig

TABLE_GRIDWORLD = "PEER appendix, grid-world table"
TABLE_ATARI_DRQ = "PEER appendix, Atari table with DrQ"


@dataclass(frozen=True)
class DQNConfig(Checked):
    """DQN with a soft target update, as in the paper's grid world. The defaults suit Gymnasium's classic control."""

    learning_rate: Positive[float] = 5e-4
    """Adam's learning rate."""
    adam_epsilon: Positive[float] = 1e-8
    """Adam's epsilon, added to the root of its second moment."""
    weight_decay: NotNegative[float] = 0.0
    """Decoupled weight decay, as in AdamW: each update shrinks every parameter by learning_rate times this."""
    max_gradient_norm: Positive[float] | None = None
    """Largest norm of all gradients together; not given: no clipping."""
    loss: Literal["squared", "huber"] = "squared"
    """squared: mean squared TD error; huber: half of it up to an error of 1, linear beyond."""
    double: bool = False
    """Double DQN: the online network chooses the next action, the target evaluates it (van Hasselt et al. 2016)."""
    dueling: bool = False
    """Dueling streams for the state's value and the actions' advantages (Wang et al. 2016)."""
    tau: PositiveFraction = of(5e-3, TABLE_GRIDWORLD)
    """Fraction of the online network in each update of the target network (eta in the paper)."""
    target_every: Positive[int] = of(1, TABLE_ATARI_DRQ)
    """Updates between updates of the target network; with tau 1 each is a copy."""
    epsilon_start: Fraction = 1.0
    """Probability of a random action at the end of the random phase."""
    epsilon_final: Fraction = 0.05
    """Final probability of a random action."""
    epsilon_steps: Positive[int] = 10_000
    """Agent steps over which epsilon falls linearly; independent of --steps."""
    epsilon_eval: Fraction = 0.0
    """Probability of a random action in evaluation."""
    features: Literal["penultimate", "conv"] = "penultimate"
    """What PEER reads: phi, the last hidden layer, or the flattened convolutions."""
    critic: CriticConfig = part(CriticConfig())
    """The critic's network."""
    encoder: EncoderConfig = part(
        EncoderConfig(), channels=TABLE_ATARI_DRQ, kernels=TABLE_ATARI_DRQ, strides=TABLE_ATARI_DRQ
    )
    """The convolutions in front of it, for observations that are frames."""


@dataclass(frozen=True)
class DQNLearning(LearningConfig):
    """Replay and update schedule of ``dqn``."""

    gamma: float = of(0.99, TABLE_GRIDWORLD)
    buffer_size: int = of(100_000, TABLE_GRIDWORLD)
    batch_size: int = of(64, TABLE_GRIDWORLD)
    start_steps: int = of(1_000, TABLE_GRIDWORLD)
    update_every: int = of(1, TABLE_ATARI_DRQ)
