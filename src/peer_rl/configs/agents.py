"""Each agent's own hyper-parameters, and the table of agents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from peer_rl.configs.checks import check_fraction, check_positive
from peer_rl.configs.onpolicy import OnPolicyLearningConfig, OnPolicyProtocolConfig, PPOConfig, TRPOConfig
from peer_rl.configs.run import LearningConfig, ProtocolConfig
from peer_rl.errors import ConfigError, nearest


@dataclass(frozen=True)
class CriticConfig:
    """The critic's network."""

    hidden: tuple[int, ...] = (256, 256)
    """Units of each hidden layer, ReLU after each; the last one is the representation phi."""

    bias_init: Literal["uniform", "zero"] = "uniform"
    """Biases at the start: uniform is PyTorch's own, U(-1/sqrt(inputs), 1/sqrt(inputs))."""

    def __post_init__(self) -> None:
        if not self.hidden:
            raise ConfigError("critic.hidden must name at least one layer: its output is phi")
        for units in self.hidden:
            check_positive("critic.hidden", units)


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
