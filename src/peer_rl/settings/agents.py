"""The table of agents."""

from __future__ import annotations

from dataclasses import dataclass
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
    learning: type[Any]
    """Dataclass of replay and update schedule."""
    protocol: type[Any]
    """Dataclass of evaluation, diagnostics and logging."""
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
    packages: tuple[str, ...] = ()
    """Packages that it comes from, if it is not ours."""
    scripted: bool = False
    """Whether a user's script trains it, as in ``peer-rl compare``."""

    def fits(self, *, actions: str, observations: str) -> bool:
        """Whether it can act in an environment with such spaces."""
        return self.actions in (actions, "either") and self.observations in (observations, "either")

    @property
    def beta_origin(self) -> str:
        """Where its beta comes from when none is given."""
        if not self.td_target:
            return "PEER does not apply: it has no TD target"
        if not self.beta:
            return "a baseline of the paper"
        return "PEER appendix" if self.backbone else "ours: the paper's value for its own backbones"

    @property
    def resumes(self) -> bool:
        """Whether a stopped run continues; agents of other packages start again."""
        return not (self.packages or self.scripted)


AGENTS: dict[str, AgentEntry] = {
    "dqn": AgentEntry(
        DQNConfig, DQNLearning, ProtocolConfig, actions="discrete", observations="either", beta=5e-4,
        about="Deep Q-learning: the paper's grid-world agent, and its efficient DQN on Atari",
    ),
    "drq-dqn": AgentEntry(
        DrQDQNConfig, DrQDQNLearning, ProtocolConfig, actions="discrete", observations="frames", beta=5e-4,
        about="Efficient DQN on augmented frames: the paper's DrQ on Atari",
    ),
    "td3": AgentEntry(
        TD3Config, StateLearning, StateProtocol, actions="continuous", observations="vectors", beta=5e-4,
        about="Twin critics, delayed actor, smoothed target: the paper's backbone from state",
    ),
    "metd3": AgentEntry(
        METD3Config, StateLearning, StateProtocol, actions="continuous", observations="vectors", beta=0.0,
        about="TD3 with one dropout mask on critic and target, the paper's baseline",
    ),
    "sac": AgentEntry(
        SACConfig, StateLearning, StateProtocol, actions="continuous", observations="vectors", beta=5e-4,
        backbone=False,
        about="Soft actor-critic with a learned temperature",
    ),
    "redq": AgentEntry(
        REDQConfig, REDQLearning, StateProtocol, actions="continuous", observations="vectors", beta=5e-4,
        backbone=False,
        about="SAC with ten critics and twenty updates a step",
    ),
    "curl-sac": AgentEntry(
        CURLSACConfig, CURLSACLearning, ProtocolConfig, actions="continuous", observations="frames", beta=5e-4,
        about="SAC on random crops with CURL's contrastive loss, the paper's backbone on DMControl",
    ),
    "drq-sac": AgentEntry(
        DrQSACConfig, DrQSACLearning, ProtocolConfig, actions="continuous", observations="frames", beta=5e-4,
        about="SAC with losses and targets over random shifts: the paper's DrQ on DMControl",
    ),
    "sac-ae": AgentEntry(
        SACAEConfig, SACAELearning, ProtocolConfig, actions="continuous", observations="frames", beta=5e-4,
        backbone=False,
        about="SAC whose encoder also learns to reconstruct the frames",
    ),
    "drq-v2": AgentEntry(
        DrQv2Config, DrQv2Learning, ProtocolConfig, actions="continuous", observations="frames", beta=5e-4,
        backbone=False,
        about="Deterministic actor and twin critics on randomly shifted frames, n-step returns",
    ),
    "td-mpc": AgentEntry(
        TDMPCConfig, TDMPCLearning, TDMPCProtocol, actions="continuous", observations="vectors", beta=5e-4,
        about="Planning in a latent model learned with the TD loss, from state",
    ),
    "td-mpc-pixels": AgentEntry(
        TDMPCConfig, TDMPCLearning, TDMPCProtocol, actions="continuous", observations="frames", beta=5e-4,
        about="The same on randomly shifted frames: the paper's TD-MPC on DMControl",
    ),
    "rainbow": AgentEntry(
        RainbowConfig, RainbowLearning, ProtocolConfig, actions="discrete", observations="either", beta=0.0,
        about="Data-efficient Rainbow, the paper's baseline on Atari",
    ),
    "curl-rainbow": AgentEntry(
        CURLRainbowConfig, RainbowLearning, ProtocolConfig, actions="discrete", observations="frames", beta=5e-4,
        about="Rainbow with CURL's contrastive loss, the paper's backbone on Atari",
    ),
    "planet": AgentEntry(
        PlaNetConfig, PlaNetLearning, WorldModelProtocol, actions="continuous", observations="vectors", beta=0.0,
        backbone=False, td_target=False,
        about="A world model and the cross-entropy method, from state",
    ),
    "planet-pixels": AgentEntry(
        PlaNetConfig, PlaNetLearning, WorldModelProtocol, actions="continuous", observations="frames", beta=0.0,
        backbone=False, td_target=False,
        about="The same on frames: the paper's PlaNet on DMControl",
    ),
    "dreamer": AgentEntry(
        DreamerConfig, DreamerLearning, WorldModelProtocol, actions="continuous", observations="vectors", beta=0.0,
        backbone=False, td_target=False,
        about="A world model and a policy learned in imagination, from state",
    ),
    "dreamer-pixels": AgentEntry(
        DreamerConfig, DreamerLearning, WorldModelProtocol, actions="continuous", observations="frames", beta=0.0,
        backbone=False, td_target=False,
        about="The same on frames: the paper's Dreamer on DMControl",
    ),
    "dreamer-v2": AgentEntry(
        DreamerV2Config, DreamerV2Learning, WorldModelProtocol, actions="either", observations="vectors", beta=0.0,
        backbone=False, td_target=False,
        about="Dreamer with categorical states, KL balancing and a slow critic, from state",
    ),
    "dreamer-v2-pixels": AgentEntry(
        DreamerV2Config, DreamerV2Learning, WorldModelProtocol, actions="either", observations="frames", beta=0.0,
        backbone=False, td_target=False,
        about="The same on frames: the paper's Dreamer-V2",
    ),
    "ppo": AgentEntry(
        PPOConfig, OnPolicyLearningConfig, OnPolicyProtocolConfig, actions="either", observations="vectors", beta=0.0,
        td_target=False, packages=("stable-baselines3",),
        about="Proximal policy optimisation, Stable-Baselines3's, with Baselines' settings",
    ),
    "trpo": AgentEntry(
        TRPOConfig, OnPolicyLearningConfig, OnPolicyProtocolConfig, actions="either", observations="vectors", beta=0.0,
        td_target=False, packages=("stable-baselines3", "sb3-contrib"),
        about="Trust region policy optimisation, sb3-contrib's, with Baselines' settings",
    ),
}  # fmt: skip


SCRIPTED: dict[str, AgentEntry] = {
    "sb3-script": AgentEntry(
        ScriptConfig, ScriptLearning, ModelProtocol, actions="either", observations="either", beta=5e-4, scripted=True,
        about="A Stable-Baselines3 model that a user's script makes",
    ),
    "script": AgentEntry(
        ScriptConfig, ScriptLearning, FunctionProtocol, actions="either", observations="either", beta=5e-4,
        scripted=True,
        about="A training function of a user's script",
    ),
}  # fmt: skip
"""Agents of ``peer-rl compare``; ``peer-rl train`` does not list them."""


CUSTOM = AgentEntry(
    CustomConfig, LearningConfig, ProtocolConfig, actions="either", observations="either", beta=5e-4,
    about="An agent of your own, named as module:Class",
)  # fmt: skip
"""Every agent named as module:Class; nothing is imported to read its settings."""


def find_agent(name: str) -> AgentEntry:
    """The table's row for ``name``, or an error that names the nearest agent."""
    if name in SCRIPTED:
        return SCRIPTED[name]
    if is_custom(name):
        return CUSTOM
    if name not in AGENTS:
        hint = (
            nearest(name.lower(), AGENTS) or f"; there are: {', '.join(AGENTS)}, and module:Class for one of your own"
        )
        raise ConfigError(f"unknown agent {name!r}{hint}")
    return AGENTS[name]
