"""Each agent's own hyper-parameters, and the table of agents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from peer_rl.configs.actor_critic import METD3Config, REDQConfig, SACConfig, TD3Config
from peer_rl.configs.checks import check_fraction, check_positive
from peer_rl.configs.networks import CriticConfig
from peer_rl.configs.onpolicy import OnPolicyLearningConfig, OnPolicyProtocolConfig, PPOConfig, TRPOConfig
from peer_rl.configs.rainbow import CURLRainbowConfig, RainbowConfig
from peer_rl.configs.run import LearningConfig, PrioritisedConfig, ProtocolConfig
from peer_rl.errors import ConfigError, nearest


@dataclass(frozen=True)
class DQNConfig:
    """DQN with a soft target update, as in the paper's grid world. The defaults suit Gymnasium's classic control."""

    learning_rate: float = 5e-4
    """Adam's step size."""
    tau: float = 0.005
    """Share of the online network that enters the target network at each update (eta in the paper)."""
    epsilon_start: float = 1.0
    """Probability of a random action when the random phase has ended."""
    epsilon_final: float = 0.05
    """Probability of a random action in the long run."""
    epsilon_steps: int = 10_000
    """Acting steps over which epsilon falls linearly; its own horizon, whatever --steps says."""
    critic: CriticConfig = field(default_factory=CriticConfig)
    """The critic's network."""

    def __post_init__(self) -> None:
        check_positive("learning_rate", self.learning_rate)
        check_fraction("tau", self.tau, above_zero=True)
        check_fraction("epsilon_start", self.epsilon_start)
        check_fraction("epsilon_final", self.epsilon_final)
        check_positive("epsilon_steps", self.epsilon_steps)


@dataclass(frozen=True)
class AgentEntry:
    """One row of ``peer-rl list agents``."""

    settings: type[Any]
    """Dataclass of the agent's own hyper-parameters."""
    build: str
    """Where the agent is built, as module:function; imported only when a run starts."""
    actions: str
    """Kind of action space it acts in: discrete, continuous, or either."""
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

    @property
    def resumes(self) -> bool:
        """Whether a run that was stopped goes on; somebody else's agent starts again."""
        return not self.packages


AGENTS: dict[str, AgentEntry] = {
    "dqn": AgentEntry(
        settings=DQNConfig,
        build="peer_rl.agents.dqn:build",
        actions="discrete",
        beta=5e-4,
        about="Deep Q-learning with a soft target, the paper's grid-world agent",
    ),
    "td3": AgentEntry(
        settings=TD3Config,
        build="peer_rl.agents.td3:build",
        actions="continuous",
        beta=5e-4,
        about="Twin critics, delayed actor, smoothed target: the paper's backbone from state",
    ),
    "metd3": AgentEntry(
        settings=METD3Config,
        build="peer_rl.agents.metd3:build",
        actions="continuous",
        beta=0.0,
        about="TD3 with one dropout mask on critic and target, the paper's baseline",
    ),
    "sac": AgentEntry(
        settings=SACConfig,
        build="peer_rl.agents.sac:build",
        actions="continuous",
        beta=5e-4,
        about="Soft actor-critic with a learned temperature",
    ),
    "redq": AgentEntry(
        settings=REDQConfig,
        build="peer_rl.agents.redq:build",
        actions="continuous",
        beta=5e-4,
        about="SAC with ten critics and twenty updates a step",
    ),
    "rainbow": AgentEntry(
        settings=RainbowConfig,
        build="peer_rl.agents.rainbow:build",
        actions="discrete",
        beta=0.0,
        about="Data-efficient Rainbow, the paper's baseline on Atari",
        learning=PrioritisedConfig,
    ),
    "curl-rainbow": AgentEntry(
        settings=CURLRainbowConfig,
        build="peer_rl.agents.curl_rainbow:build",
        actions="discrete",
        beta=5e-4,
        about="Rainbow with CURL's contrastive loss, the paper's backbone on Atari",
        learning=PrioritisedConfig,
    ),
    "ppo": AgentEntry(
        settings=PPOConfig,
        build="peer_rl.agents.onpolicy:build",
        actions="either",
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
