"""Settings of ``td-mpc`` and ``td-mpc-pixels``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass

from peer_rl.errors import ConfigError
from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.fields import Checked, Fraction, NotNegative, Positive, PositiveFraction, of, part
from peer_rl.settings.replay import PrioritisedConfig, SequenceConfig
from peer_rl.settings.run import ProtocolConfig

TD_MPC_CODE = "the TD-MPC authors' code"


@dataclass(frozen=True)
class PlannerConfig(Checked):
    """Sampling-based planning: MPPI, or the cross-entropy method with temperature 0 and momentum 0."""

    section = "planner."

    horizon: Positive[int] = of(5, TD_MPC_CODE)
    """Steps that a plan looks ahead."""
    samples: Positive[int] = of(512, TD_MPC_CODE)
    """Action sequences drawn in each iteration."""
    elites: Positive[int] = of(64, TD_MPC_CODE)
    """Best sequences, which the next iteration's mean and standard deviation come from."""
    iterations: Positive[int] = of(6, TD_MPC_CODE)
    """Rounds of drawing and selecting."""
    temperature: NotNegative[float] = of(0.5, TD_MPC_CODE)
    """Elites are weighted by exp(temperature * value); 0 weights them equally."""
    momentum: Fraction = of(0.1, TD_MPC_CODE)
    """Fraction of the old mean in the next iteration's mean."""
    std_start: Positive[float] = of(2.0, TD_MPC_CODE)
    """Standard deviation of the first iteration's actions, and the upper limit later."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.elites > self.samples:
            raise ConfigError(f"planner.elites must be at most planner.samples, {self.samples}, but is {self.elites}")


@dataclass(frozen=True)
class TDMPCConfig(Checked):
    """TD-MPC (Hansen et al. 2022): planning in a latent model that is learned with the TD loss; actions in [-1, 1]."""

    learning_rate: Positive[float] = of(1e-3, TD_MPC_CODE)
    """Adam's learning rate, for the model and for the policy."""
    max_gradient_norm: Positive[float] = of(10.0, TD_MPC_CODE)
    """Gradients with a larger norm are scaled down to it, the model's and the policy's each."""
    tau: PositiveFraction = of(0.01, TD_MPC_CODE)
    """Fraction of the online encoder and critics in each update of the targets."""
    target_every: Positive[int] = of(2, TD_MPC_CODE)
    """Updates between updates of the targets."""
    decay: PositiveFraction = of(0.5, TD_MPC_CODE)
    """Weight of each step of a window relative to the step before it (rho in the paper)."""
    consistency_weight: NotNegative[float] = of(2.0, TD_MPC_CODE)
    """Weight of the loss between predicted and encoded latents."""
    reward_weight: NotNegative[float] = of(0.5, TD_MPC_CODE)
    """Weight of the loss of predicted rewards."""
    value_weight: NotNegative[float] = of(0.1, TD_MPC_CODE)
    """Weight of the TD loss, PEER's term included."""
    largest_loss: Positive[float] = of(1e4, TD_MPC_CODE)
    """Upper limit of each window's three losses and of its priority."""
    latent: Positive[int] = of(50, TD_MPC_CODE)
    """Units of the latent state z."""
    encoder_hidden: Positive[int] = of(256, TD_MPC_CODE)
    """Units of the hidden layer between a state vector and z."""
    hidden: Positive[int] = of(512, TD_MPC_CODE)
    """Units of both hidden layers of dynamics, reward, policy and critics; the critics' second one is phi."""
    smoothing_noise: NotNegative[float] = of(0.05, TD_MPC_CODE)
    """Standard deviation of the noise on the policy's actions, in losses and in planning."""
    smoothing_clip: NotNegative[float] = of(0.3, TD_MPC_CODE)
    """Largest noise on the policy's actions."""
    planning_discount: PositiveFraction = of(0.99, TD_MPC_CODE)
    """Discount of the rewards that a plan predicts; the same as --gamma unless there is a reason."""
    policy_fraction: NotNegative[float] = of(0.05, TD_MPC_CODE)
    """Sequences of the policy among a plan's candidates, as a fraction of --planner.samples."""
    schedule_steps: Positive[int] = of(25_000, TD_MPC_CODE + ": agent steps, as many as updates there")
    """Updates over which the horizon grows from 1 and the exploration noise falls; independent of --steps."""
    noise_start: NotNegative[float] = of(0.5, TD_MPC_CODE)
    """Initial minimum standard deviation of a plan's actions, and of the noise on the action taken in training."""
    noise_final: NotNegative[float] = of(0.05, TD_MPC_CODE)
    """Final minimum standard deviation of a plan's actions."""
    clamp_actions: bool = of(True, "ours, as TD-MPC2: replay and model see the actions that the simulator took")
    """Clamp the action to [-1, 1] after the exploration noise."""
    shift: NotNegative[int] = of(4, TD_MPC_CODE)
    """Largest shift of a frame in pixels, in each direction."""
    planner: PlannerConfig = part(PlannerConfig())
    """The planner."""
    encoder: EncoderConfig = part(
        EncoderConfig(channels=(32, 32, 32, 32), kernels=(7, 5, 3, 3), strides=(2, 2, 2, 2), weight_init="orthogonal"),
        **dict.fromkeys(("channels", "kernels", "strides", "weight_init"), TD_MPC_CODE),
    )
    """The convolutions, for observations that are frames."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise_final > self.noise_start:
            raise ConfigError(f"noise_final must be at most noise_start, but is {self.noise_final}")


@dataclass(frozen=True)
class TDMPCLearning(SequenceConfig, PrioritisedConfig):
    """Replay and update schedule of ``td-mpc``."""

    gamma: float = of(0.99, TD_MPC_CODE + ": whatever the action repeat")
    n_step: int = of(1, TD_MPC_CODE)
    sequence_length: int = of(5, TD_MPC_CODE)
    batch_size: int = of(512, TD_MPC_CODE)
    buffer_size: int = of(500_000, TD_MPC_CODE + ": all of the steps")
    start_steps: int = of(5_000, TD_MPC_CODE)
    pretrain: int = of(5_000, TD_MPC_CODE)
    update_every: int = of(1, "TD-MPC2; TD-MPC's code makes an episode's updates at its end")
    updates: int = of(1, TD_MPC_CODE)
    priority_exponent: float = of(0.6, TD_MPC_CODE)
    importance_start: float = of(0.4, TD_MPC_CODE)
    importance_final: float = of(0.4, TD_MPC_CODE + ": constant")


@dataclass(frozen=True)
class TDMPCProtocol(ProtocolConfig):
    """What ``td-mpc`` writes down while training."""

    diagnose_every: int = of(500, "ours; figure 1 does not say how often")
