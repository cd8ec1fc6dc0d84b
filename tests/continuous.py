"""Small agents for continuous actions and batches to update them with."""

import numpy as np
import torch

from peer_rl.agents.make import make_agent
from peer_rl.agents.sac import SAC
from peer_rl.agents.td3 import TD3
from peer_rl.envs.spec import EnvSpec
from peer_rl.plugin import Regularizer, make
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings import AGENTS
from peer_rl.settings.networks import ActorConfig, CriticConfig

CPU = torch.device("cpu")
CONTINUOUS = ("td3", "metd3", "sac", "redq")
SPEC = EnvSpec((3,), "float32", action_shape=(2,), action_low=(-1.0, -1.0), action_high=(1.0, 1.0))


def stream(name: str = "update") -> Stream:
    return Stream(0, name, device=CPU)


def agent_with(name: str, regularizer: str | Regularizer = "peer", beta: float = 0.1, **settings: object) -> TD3 | SAC:
    """A tiny agent whose target networks differ from the online ones, so that neither can be confused."""
    networks = {"actor": ActorConfig(hidden=(8, 5)), "critic": CriticConfig(hidden=(8, 5))}
    config = AGENTS[name].settings(**{**networks, **settings})
    if isinstance(regularizer, str):
        regularizer = make(regularizer, beta)
    agent = make_agent(name, config, SPEC, regularizer=regularizer, rng=stream("weights"), device=CPU)
    shift = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for network in (agent.target_critic, getattr(agent, "target_actor", torch.nn.Identity())):
            for parameter in network.parameters():
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=shift))
    return agent


def batch_of(size: int = 16, seed: int = 0) -> Batch:
    """Half of the rows are terminal."""
    rng = np.random.default_rng(seed)
    return Batch.from_numpy(
        obs=rng.normal(size=(size, 3)).astype(np.float32),
        action=rng.uniform(-1, 1, size=(size, 2)).astype(np.float32),
        reward=rng.normal(size=size).astype(np.float32),
        discount=(0.9 * (np.arange(size) % 2)).astype(np.float32),
        next_obs=rng.normal(size=(size, 3)).astype(np.float32),
        device=CPU,
    )


def weights_of(*networks: torch.nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for network in networks for parameter in network.parameters()]


def moved(before: list[torch.Tensor], *networks: torch.nn.Module) -> bool:
    return any(not torch.equal(old, new) for old, new in zip(before, weights_of(*networks), strict=True))
