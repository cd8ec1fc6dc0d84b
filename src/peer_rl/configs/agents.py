"""Each agent's own hyper-parameters, and the table of agents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from peer_rl.configs.actor_critic import METD3Config, REDQConfig, SACConfig, TD3Config
from peer_rl.configs.checks import check_fraction, check_not_negative, check_positive
from peer_rl.configs.networks import CriticConfig, EncoderConfig
from peer_rl.configs.onpolicy import OnPolicyLearningConfig, OnPolicyProtocolConfig, PPOConfig, TRPOConfig
from peer_rl.configs.pixel_actor_critic import CURLSACConfig, DrQSACConfig, DrQv2Config, SACAEConfig
from peer_rl.configs.rainbow import CURLRainbowConfig, RainbowConfig
from peer_rl.configs.run import LearningConfig, PrioritisedConfig, ProtocolConfig
from peer_rl.errors import ConfigError, nearest


@dataclass(frozen=True)
class DQNConfig:
    """DQN with a soft target update, as in the paper's grid world. The defaults suit Gymnasium's classic control."""

    learning_rate: float = 5e-4
    """Adam's step size."""
    adam_epsilon: float = 1e-8
    """What Adam adds to the root of its second moment."""
    max_gradient_norm: float | None = None
    """Gradients with a larger norm are scaled down to it; without it, none are."""
    loss: Literal["squared", "huber"] = "squared"
    """The TD error squared, or Huber's: half of that up to 1, linear beyond."""
    double: bool = False
    """The online network chooses the next action and the target values it (van Hasselt et al. 2016)."""
    dueling: bool = False
    """Two streams, for the state's value and the actions' advantages (Wang et al. 2016)."""
    tau: float = 0.005
    """Share of the online network that enters the target network at each of its updates (eta in the paper)."""
    target_every: int = 1
    """Updates to one update of the target network; with tau 1 it is a copy."""
    epsilon_start: float = 1.0
    """Probability of a random action when the random phase has ended."""
    epsilon_final: float = 0.05
    """Probability of a random action in the long run."""
    epsilon_steps: int = 10_000
    """Acting steps over which epsilon falls linearly; its own horizon, whatever --steps says."""
    epsilon_eval: float = 0.0
    """Probability of a random action in evaluation."""
    features: Literal["penultimate", "conv"] = "penultimate"
    """What PEER reads: phi, the last hidden layer, or the flattened convolutions."""
    critic: CriticConfig = field(default_factory=CriticConfig)
    """The critic's network."""
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    """The convolutions in front of it, for observations that are frames."""

    def __post_init__(self) -> None:
        for name in ("learning_rate", "adam_epsilon", "target_every", "epsilon_steps"):
            check_positive(name, getattr(self, name))
        if self.max_gradient_norm is not None:
            check_positive("max_gradient_norm", self.max_gradient_norm)
        check_fraction("tau", self.tau, above_zero=True)
        for name in ("epsilon_start", "epsilon_final", "epsilon_eval"):
            check_fraction(name, getattr(self, name))


@dataclass(frozen=True)
class DrQDQNConfig(DQNConfig):
    """DrQ (Kostrikov et al. 2021) on DQN: s and s' augmented, each by a draw of its own."""

    shift: int = 4
    """Pixels that a frame is shifted at most, each way; what comes in is the border repeated."""
    intensity: float = 0.05
    """A frame's brightness is multiplied by 1 + this * N(0, 1), the draw clipped to [-2, 2]."""
    flip: float = 0.0
    """Probability of mirroring a frame, and on its own of turning it upside down."""
    rotation: float = 0.0
    """Largest angle, in degrees, that a frame is turned by."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("shift", "intensity", "rotation"):
            check_not_negative(name, getattr(self, name))
        check_fraction("flip", self.flip)


@dataclass(frozen=True)
class AgentEntry:
    """One row of ``peer-rl list agents``."""

    settings: type[Any]
    """Dataclass of the agent's own hyper-parameters."""
    build: str
    """Where the agent is built, as module:function; imported only when a run starts."""
    actions: str
    """Kind of action space it acts in: discrete, continuous, or either."""
    observations: str
    """Kind of observations it reads: vectors, frames, or either."""
    beta: float
    """beta when none is given: 5e-4 for the paper's backbones, 0 for its baselines."""
    about: str
    """One line for people."""
    td_target: bool = True
    """Whether it learns from a TD target; without one there is nothing for PEER to regularize."""
    learning: type[Any] = LearningConfig
    """Dataclass of what the loop decides."""
    protocol: type[Any] = ProtocolConfig
    """Dataclass of what is written down while training."""
    runner: str = "peer_rl.training.loop:Trainer"
    """What trains it, as module:class; imported only when a run starts."""
    packages: tuple[str, ...] = ()
    """Packages that it comes from, if it is not ours."""

    def fits(self, *, actions: str, observations: str) -> bool:
        """Whether it can act in an environment with such spaces."""
        return self.actions in (actions, "either") and self.observations in (observations, "either")

    @property
    def resumes(self) -> bool:
        """Whether a run that was stopped goes on; somebody else's agent starts again."""
        return not self.packages


AGENTS: dict[str, AgentEntry] = {
    "dqn": AgentEntry(
        settings=DQNConfig,
        build="peer_rl.agents.dqn:build",
        actions="discrete",
        observations="either",
        beta=5e-4,
        about="Deep Q-learning: the paper's grid-world agent, and its efficient DQN on Atari",
    ),
    "drq-dqn": AgentEntry(
        settings=DrQDQNConfig,
        build="peer_rl.agents.drq_dqn:build",
        actions="discrete",
        observations="frames",
        beta=5e-4,
        about="Efficient DQN on augmented frames: the paper's DrQ on Atari",
    ),
    "td3": AgentEntry(
        settings=TD3Config,
        build="peer_rl.agents.td3:build",
        actions="continuous",
        observations="vectors",
        beta=5e-4,
        about="Twin critics, delayed actor, smoothed target: the paper's backbone from state",
    ),
    "metd3": AgentEntry(
        settings=METD3Config,
        build="peer_rl.agents.metd3:build",
        actions="continuous",
        observations="vectors",
        beta=0.0,
        about="TD3 with one dropout mask on critic and target, the paper's baseline",
    ),
    "sac": AgentEntry(
        settings=SACConfig,
        build="peer_rl.agents.sac:build",
        actions="continuous",
        observations="vectors",
        beta=5e-4,
        about="Soft actor-critic with a learned temperature",
    ),
    "redq": AgentEntry(
        settings=REDQConfig,
        build="peer_rl.agents.redq:build",
        actions="continuous",
        observations="vectors",
        beta=5e-4,
        about="SAC with ten critics and twenty updates a step",
    ),
    "curl-sac": AgentEntry(
        settings=CURLSACConfig,
        build="peer_rl.agents.curl_sac:build",
        actions="continuous",
        observations="frames",
        beta=5e-4,
        about="SAC on random crops with CURL's contrastive loss, the paper's backbone on DMControl",
    ),
    "drq-sac": AgentEntry(
        settings=DrQSACConfig,
        build="peer_rl.agents.drq_sac:build",
        actions="continuous",
        observations="frames",
        beta=5e-4,
        about="SAC with losses and targets over random shifts: the paper's DrQ on DMControl",
    ),
    "sac-ae": AgentEntry(
        settings=SACAEConfig,
        build="peer_rl.agents.sac_ae:build",
        actions="continuous",
        observations="frames",
        beta=5e-4,
        about="SAC whose encoder also learns to reconstruct the frames",
    ),
    "drq-v2": AgentEntry(
        settings=DrQv2Config,
        build="peer_rl.agents.drq_v2:build",
        actions="continuous",
        observations="frames",
        beta=5e-4,
        about="Deterministic actor and twin critics on randomly shifted frames, n-step returns",
    ),
    "rainbow": AgentEntry(
        settings=RainbowConfig,
        build="peer_rl.agents.rainbow:build",
        actions="discrete",
        observations="either",
        beta=0.0,
        about="Data-efficient Rainbow, the paper's baseline on Atari",
        learning=PrioritisedConfig,
    ),
    "curl-rainbow": AgentEntry(
        settings=CURLRainbowConfig,
        build="peer_rl.agents.curl_rainbow:build",
        actions="discrete",
        observations="frames",
        beta=5e-4,
        about="Rainbow with CURL's contrastive loss, the paper's backbone on Atari",
        learning=PrioritisedConfig,
    ),
    "ppo": AgentEntry(
        settings=PPOConfig,
        build="peer_rl.agents.onpolicy:build",
        actions="either",
        observations="vectors",
        beta=0.0,
        about="Proximal policy optimisation, Stable-Baselines3's, with Baselines' settings",
        td_target=False,
        learning=OnPolicyLearningConfig,
        protocol=OnPolicyProtocolConfig,
        runner="peer_rl.training.onpolicy:OnPolicyTrainer",
        packages=("stable-baselines3",),
    ),
    "trpo": AgentEntry(
        settings=TRPOConfig,
        build="peer_rl.agents.onpolicy:build",
        actions="either",
        observations="vectors",
        beta=0.0,
        about="Trust region policy optimisation, sb3-contrib's, with Baselines' settings",
        td_target=False,
        learning=OnPolicyLearningConfig,
        protocol=OnPolicyProtocolConfig,
        runner="peer_rl.training.onpolicy:OnPolicyTrainer",
        packages=("stable-baselines3", "sb3-contrib"),
    ),
}


def find_agent(name: str) -> AgentEntry:
    """The table's row for ``name``, or an error that names the nearest agent."""
    if name not in AGENTS:
        hint = nearest(name, AGENTS) or f"; there are: {', '.join(AGENTS)}"
        raise ConfigError(f"unknown agent {name!r}{hint}")
    return AGENTS[name]
