"""From a config to its agent. Every agent of the package is listed here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from peer_rl.agents import Agent, curl_rainbow, curl_sac, custom, drq_dqn, drq_sac, metd3, rainbow, redq, sac, sac_ae
from peer_rl.agents.checks import check_agent
from peer_rl.agents.dqn import DQN
from peer_rl.agents.dreamer import Dreamer
from peer_rl.agents.dreamer_v2 import DreamerV2
from peer_rl.agents.drq_v2 import DrQv2
from peer_rl.agents.planet import PlaNet
from peer_rl.agents.td3 import TD3
from peer_rl.agents.td_mpc import TDMPC
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.plugin import ConstrainedPEER, Regularizer, make
from peer_rl.rng import Stream
from peer_rl.settings import AGENTS, find_agent
from peer_rl.settings.beta import settle_beta
from peer_rl.settings.custom import is_custom
from peer_rl.settings.run import AnyRunConfig

BUILDERS: dict[str, Callable[..., Agent]] = {
    "curl-rainbow": curl_rainbow.build,
    "curl-sac": curl_sac.build,
    "dqn": DQN,
    "dreamer": Dreamer,
    "dreamer-pixels": Dreamer,
    "dreamer-v2": DreamerV2,
    "dreamer-v2-pixels": DreamerV2,
    "drq-dqn": drq_dqn.build,
    "drq-sac": drq_sac.build,
    "drq-v2": DrQv2,
    "metd3": metd3.build,
    "planet": PlaNet,
    "planet-pixels": PlaNet,
    "rainbow": rainbow.build,
    "redq": redq.build,
    "sac": sac.build,
    "sac-ae": sac_ae.build,
    "td3": TD3,
    "td-mpc": TDMPC,
    "td-mpc-pixels": TDMPC,
}
"""Each takes the agent's settings and an EnvSpec, then ``regularizer``, ``rng`` and ``device``."""


def build_agent(config: AnyRunConfig, spec: EnvSpec, device: torch.device) -> Agent:
    """The config's agent, freshly initialised. Nothing here depends on beta but the regularizer (law 1)."""
    entry = find_agent(config.agent)
    kind = "discrete" if spec.actions else "continuous"
    if entry.actions not in (kind, "either"):
        seen = "frames" if spec.is_image else "vectors"
        fitting = [name for name, other in AGENTS.items() if other.fits(actions=kind, observations=seen)]
        raise ConfigError(
            f"{config.agent} needs {entry.actions} actions, but {config.task} has {kind} ones; "
            f"agents that fit: {', '.join(fitting)}"
        )
    try:
        regularizer = _regularizer_of(config)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    rng = Stream(config.seed, "initialise", device=torch.device("cpu"))
    return make_agent(config.agent, config.settings, spec, regularizer=regularizer, rng=rng, device=device)


def make_agent(
    name: str, settings: Any, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device
) -> Agent:
    """The agent of that name, if it can learn in such an environment."""
    if is_custom(name):
        return custom.build(name, settings, spec, regularizer=regularizer, rng=rng, device=device)
    check_agent(name, settings, spec, regularizer)
    return BUILDERS[name](settings, spec, regularizer=regularizer, rng=rng, device=device)


def _regularizer_of(config: AnyRunConfig) -> Regularizer:
    settled = settle_beta(config)
    if settled.beta != "auto":
        return make(settled.regularizer, settled.beta)
    assert settled.beta_target is not None
    assert settled.beta_rate is not None
    return ConstrainedPEER(settled.beta_target, settled.beta_rate)
