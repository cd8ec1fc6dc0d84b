"""Everything that determines a run, saved as its config.toml."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, TypeVar

from tyro.conf import Suppress, arg

from peer_rl.errors import ConfigError
from peer_rl.settings.fields import (
    SECTION_PYBULLET,
    TABLE_STATE,
    Checked,
    Fraction,
    NotNegative,
    Positive,
    PositiveFraction,
    of,
)

EVERY_CODE = "the code of every agent here: one update a step, from one reward"

Settings = TypeVar("Settings")
Learning = TypeVar("Learning")
Protocol = TypeVar("Protocol")
Profile = Literal["paper", "small", "smoke"]


@dataclass(frozen=True)
class LearningConfig(Checked):
    """Replay and update schedule, which the loop owns."""

    gamma: PositiveFraction = 0.99
    """Discount of one agent step."""
    n_step: Positive[int] = 1
    """Rewards summed before bootstrapping."""
    batch_size: Positive[int] = 64
    """Transitions in one update."""
    buffer_size: Positive[int] = 100_000
    """Capacity in transitions, or in frames where observations are stacks (one more per episode)."""
    start_steps: NotNegative[int] = 1_000
    """Initial agent steps with uniformly random actions and no updates."""
    update_every: Positive[int] = 1
    """Agent steps between rounds of updates."""
    updates: Positive[int] = 1
    """Updates in one round."""
    pretrain: NotNegative[int] = 0
    """Updates in the first round, after the random phase; 0 for as many as in the others."""
    update_after_episodes: bool = False
    """Postpone an episode's updates to its end."""
    clip_rewards: bool = False
    """Learn from rewards clipped to [-1, 1]; logged returns are unclipped."""
    lost_life_ends: bool = False
    """Stop bootstrapping at a lost life, as at the end of a game; the game itself continues."""
    flat_returns: bool = False
    """Discount every reward of an n-step return by gamma^n instead of gamma^k: a bug of the PEER authors' code."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size > self.buffer_size:
            raise ConfigError(f"batch_size {self.batch_size} is more than buffer_size {self.buffer_size} can hold")


@dataclass(frozen=True)
class StateLearning(LearningConfig):
    """Replay and schedule of the agents from state: the paper's."""

    gamma: float = of(0.99, TABLE_STATE)
    buffer_size: int = of(1_000_000, TABLE_STATE)
    batch_size: int = of(256, TABLE_STATE)
    start_steps: int = of(25_000, TABLE_STATE)
    n_step: int = of(1, EVERY_CODE)
    update_every: int = of(1, EVERY_CODE)
    updates: int = of(1, EVERY_CODE)


@dataclass(frozen=True)
class ProtocolConfig(Checked):
    """Evaluation, diagnostics and logging. Nothing here changes a weight (law 2)."""

    eval_every: NotNegative[int] = of(5_000, SECTION_PYBULLET)
    """Agent steps between evaluations; 0 for none."""
    eval_episodes: Positive[int] = of(10, SECTION_PYBULLET)
    """Episodes of one evaluation, without exploration, in a separate environment."""
    diagnose_every: NotNegative[int] = 1_000
    """Agent steps between lines of diagnostics.jsonl; 0 for none."""
    log_every: Positive[int] = 500
    """Agent steps between lines of training metrics, which average over them."""
    final_episodes: NotNegative[int] = 0
    """Episodes of the evaluation at the end of training; 0: as many as in the others."""
    final_steps: NotNegative[int] = 0
    """Least number of agent steps of the evaluation at the end of training."""


@dataclass(frozen=True)
class StateProtocol(ProtocolConfig):
    """Evaluation, diagnostics and logging of the agents from state."""

    diagnose_every: int = of(2_500, "ours: figure 1 does not say how often")


@dataclass(frozen=True)
class RunConfig(Checked, Generic[Settings, Learning, Protocol]):
    """One training run. Two runs with equal configs are equal, bit for bit. The agent decides the three sections."""

    agent: Annotated[str, Suppress]
    """Name of the agent."""
    task: str
    """SUITE/NAME, gym/ANY-ID or module:factory."""
    settings: Annotated[Settings, arg(name="")]
    """The agent's own hyper-parameters."""
    seed: NotNegative[int] = 0
    """Seed of all randomness. Runs with the same seed and different betas start from the same weights."""
    beta: NotNegative[float] | Literal["auto"] = 5e-4
    """Weight of the regularizer in the critic's loss; 0 is the plain backbone, auto adapts to --beta-target."""
    beta_target: float | None = None
    """With beta auto: target of the mean cosine of phi and phi'; 0.9 if not given."""
    beta_rate: NotNegative[float] | None = None
    """With beta auto: log beta += rate * (cosine - target) at each update; 0.001 if not given."""
    regularizer: str = "peer"
    """peer, cosine-peer, feature-norm, dr3, beer, none, or module:name of your own class or function."""
    steps: Positive[int] | None = None
    """Agent steps to train for."""
    episodes: Positive[int] | None = None
    """Episodes to train for, instead of steps."""
    max_episode_steps: Positive[int] | None = None
    """Agent steps after which an episode is truncated; not given: the environment's limit, or 10,000."""
    action_repeat: Positive[int] | None = None
    """Environment frames in one agent step, for tasks that allow a choice."""
    image_size: Positive[int] | None = None
    """Side in pixels of the frames that a task renders for agents that read pixels, or that a game's screen becomes."""
    sticky_actions: Fraction | None = None
    """Probability that a game repeats the last action instead of the new one, at each frame; 0 if not given."""
    mujoco_version: Literal["v4", "v5"] | None = None
    """Version of Gymnasium's MuJoCo environments, v5 if not given; v4 has the paper's observation sizes."""
    encoding: Literal["one-hot", "integer"] = "one-hot"
    """How the network reads a state that the task numbers: as a one-hot vector, or the number itself as one float."""
    frame_stack: Positive[int] | None = None
    """Frames in one observation, for tasks that show images."""
    render_quality: Literal["full", "draft"] | None = None
    """draft renders such frames without shadows and reflections, at twice the size, and averages them: several times
    as fast without a GPU."""
    profile: Profile = "paper"
    """paper: the full settings; small: hours on a CPU; smoke: a minute."""
    preset: str = ""
    """A named set of settings on top of the task's own; none by default."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""
    threads: Positive[int] = 1
    """Torch's threads. One is fastest for small networks; a run resumes only with the number it started with."""
    learning: Annotated[Learning, arg(name="")] = field(kw_only=True)
    """Replay and update schedule."""
    protocol: Annotated[Protocol, arg(name="")] = field(kw_only=True)
    """Evaluation, diagnostics and logging."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta_target is not None and not -1 <= self.beta_target <= 1:
            raise ConfigError(f"beta_target must be a cosine, in [-1, 1], but is {self.beta_target}")
        if (self.steps is None) == (self.episodes is None):
            raise ConfigError(
                f"give one budget, steps or episodes, not {self.steps} steps and {self.episodes} episodes"
            )


AnyRunConfig = RunConfig[Any, Any, Any]
