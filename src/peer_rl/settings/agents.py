"""The table of agents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from peer_rl.errors import ConfigError, nearest
from peer_rl.settings.curl_rainbow import CURLRainbowConfig
from peer_rl.settings.curl_sac import CURLSACConfig, CURLSACLearning
from peer_rl.settings.custom import CustomConfig, is_custom
from peer_rl.settings.dqn import DQNConfig, DQNLearning
from peer_rl.settings.dreamer import DreamerConfig, DreamerLearning
from peer_rl.settings.dreamer_v2 import DreamerV2Config, DreamerV2Learning
from peer_rl.settings.drq_dqn import DrQDQNConfig, DrQDQNLearning
from peer_rl.settings.drq_sac import DrQSACConfig, DrQSACLearning
from peer_rl.settings.drq_v2 import DrQv2Config, DrQv2Learning
from peer_rl.settings.metd3 import METD3Config
from peer_rl.settings.on_policy import OnPolicyLearningConfig, OnPolicyProtocolConfig
from peer_rl.settings.planet import PlaNetConfig, PlaNetLearning
from peer_rl.settings.ppo import PPOConfig
from peer_rl.settings.rainbow import RainbowConfig, RainbowLearning
from peer_rl.settings.redq import REDQConfig, REDQLearning
from peer_rl.settings.run import LearningConfig, ProtocolConfig, StateLearning, StateProtocol
from peer_rl.settings.sac import SACConfig
from peer_rl.settings.sac_ae import SACAEConfig, SACAELearning
from peer_rl.settings.script import FunctionProtocol, ModelProtocol, ScriptConfig, ScriptLearning
from peer_rl.settings.td3 import TD3Config
from peer_rl.settings.td_mpc import TDMPCConfig, TDMPCLearning, TDMPCProtocol
from peer_rl.settings.trpo import TRPOConfig
from peer_rl.settings.world_model import WorldModelProtocol


@dataclass(frozen=True)
class AgentEntry:
    """One row of ``peer-rl list agents``."""

    settings: type[Any]
    """Dataclass of the agent's own hyper-parameters."""
    actions: str
    """Kind of action space it acts in: discrete, continuous, or either."""
    observations: str
    """Kind of observations it reads: vectors, frames, or either."""
    beta: float
    """Default beta: the paper's 5e-4, or 0 for the paper's baselines."""
    about: str
    """One-line description."""
    backbone: bool = True
    """Whether the paper combines it with PEER."""
    td_target: bool = True
    """Whether it learns from a TD target; without one there is nothing for PEER to regularize."""
    learning: type[Any] = LearningConfig
    """Dataclass of replay and update schedule."""
    protocol: type[Any] = ProtocolConfig
    """Dataclass of evaluation, diagnostics and logging."""
    packages: tuple[str, ...] = ()
    """Packages that it comes from, if it is not ours."""
    scripted: bool = False
    """Whether a user's script trains it, as in ``peer-rl compare``."""

    def fits(self, *, actions: str, observations: str) -> bool:
        """Whether it can act in an environment with such spaces."""
        return self.actions in (actions, "either") and self.observations in (observations, "either")

    def on_frames(self, about: str) -> AgentEntry:
        """The same agent on frames."""
        return replace(self, observations="frames", about=about)

    @property
    def beta_origin(self) -> str:
        """Where its beta comes from when none is given."""
        if not self.td_target:
            return "PEER does not apply: it has no TD target"
        if not self.beta:
            return "a baseline of the paper"
        return "PEER appendix" if self.backbone else "ours: the paper's for its backbones, which this is not"

    @property
    def resumes(self) -> bool:
        """Whether a stopped run continues; agents of other packages start again."""
        return not (self.packages or self.scripted)


_TD_MPC = AgentEntry(
    settings=TDMPCConfig,
    actions="continuous",
    observations="vectors",
    beta=5e-4,
    about="Planning in a latent model learned with the TD loss, from state",
    learning=TDMPCLearning,
    protocol=TDMPCProtocol,
)
_PLANET = AgentEntry(
    settings=PlaNetConfig,
    actions="continuous",
    observations="vectors",
    beta=0.0,
    about="A world model and the cross-entropy method, from state",
    backbone=False,
    td_target=False,
    learning=PlaNetLearning,
    protocol=WorldModelProtocol,
)
_DREAMER = AgentEntry(
    settings=DreamerConfig,
    actions="continuous",
    observations="vectors",
    beta=0.0,
    about="A world model and a policy learned in imagination, from state",
    backbone=False,
    td_target=False,
    learning=DreamerLearning,
    protocol=WorldModelProtocol,
)
_DREAMER_V2 = AgentEntry(
    settings=DreamerV2Config,
    actions="either",
    observations="vectors",
    beta=0.0,
    about="Dreamer with categorical states, KL balancing and a slow critic, from state",
    backbone=False,
    td_target=False,
    learning=DreamerV2Learning,
    protocol=WorldModelProtocol,
)

AGENTS: dict[str, AgentEntry] = {
    "dqn": AgentEntry(
        settings=DQNConfig,
        actions="discrete",
        observations="either",
        beta=5e-4,
        about="Deep Q-learning: the paper's grid-world agent, and its efficient DQN on Atari",
        learning=DQNLearning,
    ),
    "drq-dqn": AgentEntry(
        settings=DrQDQNConfig,
        actions="discrete",
        observations="frames",
        beta=5e-4,
        about="Efficient DQN on augmented frames: the paper's DrQ on Atari",
        learning=DrQDQNLearning,
    ),
    "td3": AgentEntry(
        settings=TD3Config,
        actions="continuous",
        observations="vectors",
        beta=5e-4,
        about="Twin critics, delayed actor, smoothed target: the paper's backbone from state",
        learning=StateLearning,
        protocol=StateProtocol,
    ),
    "metd3": AgentEntry(
        settings=METD3Config,
        actions="continuous",
        observations="vectors",
        beta=0.0,
        about="TD3 with one dropout mask on critic and target, the paper's baseline",
        learning=StateLearning,
        protocol=StateProtocol,
    ),
    "sac": AgentEntry(
        settings=SACConfig,
        actions="continuous",
        observations="vectors",
        beta=5e-4,
        backbone=False,
        about="Soft actor-critic with a learned temperature",
        learning=StateLearning,
        protocol=StateProtocol,
    ),
    "redq": AgentEntry(
        settings=REDQConfig,
        actions="continuous",
        observations="vectors",
        beta=5e-4,
        backbone=False,
        about="SAC with ten critics and twenty updates a step",
        learning=REDQLearning,
        protocol=StateProtocol,
    ),
    "curl-sac": AgentEntry(
        settings=CURLSACConfig,
        actions="continuous",
        observations="frames",
        beta=5e-4,
        about="SAC on random crops with CURL's contrastive loss, the paper's backbone on DMControl",
        learning=CURLSACLearning,
    ),
    "drq-sac": AgentEntry(
        settings=DrQSACConfig,
        actions="continuous",
        observations="frames",
        beta=5e-4,
        about="SAC with losses and targets over random shifts: the paper's DrQ on DMControl",
        learning=DrQSACLearning,
    ),
    "sac-ae": AgentEntry(
        settings=SACAEConfig,
        actions="continuous",
        observations="frames",
        beta=5e-4,
        backbone=False,
        about="SAC whose encoder also learns to reconstruct the frames",
        learning=SACAELearning,
    ),
    "drq-v2": AgentEntry(
        settings=DrQv2Config,
        actions="continuous",
        observations="frames",
        beta=5e-4,
        backbone=False,
        about="Deterministic actor and twin critics on randomly shifted frames, n-step returns",
        learning=DrQv2Learning,
    ),
    "td-mpc": _TD_MPC,
    "td-mpc-pixels": replace(
        _TD_MPC, observations="frames", about="The same on randomly shifted frames: the paper's TD-MPC on DMControl"
    ),
    "rainbow": AgentEntry(
        settings=RainbowConfig,
        actions="discrete",
        observations="either",
        beta=0.0,
        about="Data-efficient Rainbow, the paper's baseline on Atari",
        learning=RainbowLearning,
    ),
    "curl-rainbow": AgentEntry(
        settings=CURLRainbowConfig,
        actions="discrete",
        observations="frames",
        beta=5e-4,
        about="Rainbow with CURL's contrastive loss, the paper's backbone on Atari",
        learning=RainbowLearning,
    ),
    "planet": _PLANET,
    "planet-pixels": replace(
        _PLANET, observations="frames", about="The same on frames: the paper's PlaNet on DMControl"
    ),
    "dreamer": _DREAMER,
    "dreamer-pixels": replace(
        _DREAMER, observations="frames", about="The same on frames: the paper's Dreamer on DMControl"
    ),
    "dreamer-v2": _DREAMER_V2,
    "dreamer-v2-pixels": replace(
        _DREAMER_V2, observations="frames", about="The same on frames: the paper's Dreamer-V2"
    ),
    "ppo": AgentEntry(
        settings=PPOConfig,
        actions="either",
        observations="vectors",
        beta=0.0,
        about="Proximal policy optimisation, Stable-Baselines3's, with Baselines' settings",
        td_target=False,
        learning=OnPolicyLearningConfig,
        protocol=OnPolicyProtocolConfig,
        packages=("stable-baselines3",),
    ),
    "trpo": AgentEntry(
        settings=TRPOConfig,
        actions="either",
        observations="vectors",
        beta=0.0,
        about="Trust region policy optimisation, sb3-contrib's, with Baselines' settings",
        td_target=False,
        learning=OnPolicyLearningConfig,
        protocol=OnPolicyProtocolConfig,
        packages=("stable-baselines3", "sb3-contrib"),
    ),
}


SCRIPTED: dict[str, AgentEntry] = {
    "sb3-script": AgentEntry(
        settings=ScriptConfig,
        actions="either",
        observations="either",
        beta=5e-4,
        about="A Stable-Baselines3 model that a user's script makes",
        learning=ScriptLearning,
        protocol=ModelProtocol,
        scripted=True,
    ),
    "script": AgentEntry(
        settings=ScriptConfig,
        actions="either",
        observations="either",
        beta=5e-4,
        about="A training function of a user's script",
        learning=ScriptLearning,
        protocol=FunctionProtocol,
        scripted=True,
    ),
}
"""Agents of ``peer-rl compare``; ``peer-rl train`` does not list them."""


CUSTOM = AgentEntry(
    settings=CustomConfig,
    actions="either",
    observations="either",
    beta=5e-4,
    about="An agent of your own, named as module:Class",
)
"""Every agent named as module:Class; nothing is imported to read its settings."""


def find_agent(name: str) -> AgentEntry:
    """The table's row for ``name``, or an error that names the nearest agent."""
    if name in SCRIPTED:
        return SCRIPTED[name]
    if is_custom(name):
        return CUSTOM
    if name not in AGENTS:
        hint = nearest(name, AGENTS) or f"; there are: {', '.join(AGENTS)}, and module:Class for one of your own"
        raise ConfigError(f"unknown agent {name!r}{hint}")
    return AGENTS[name]
