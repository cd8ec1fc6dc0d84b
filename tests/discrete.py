"""Small agents for discrete actions, from vectors or frames, and batches to update them with."""

import numpy as np
import torch

from peer_rl.agents.dqn import DQN
from peer_rl.agents.make import make_agent
from peer_rl.envs.spec import EnvSpec
from peer_rl.plugin import Regularizer, make
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings import AGENTS
from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.networks import CriticConfig

CPU = torch.device("cpu")
VECTORS = EnvSpec((3,), "float32", actions=4)
FRAMES = EnvSpec((4, 21, 21), "uint8", stack=4, actions=4)
SMALL_ENCODER = {"channels": (5, 6), "kernels": (5, 3), "strides": (3, 2)}


def stream(name: str = "update") -> Stream:
    return Stream(0, name, device=CPU)


def agent_with(
    name: str, spec: EnvSpec, regularizer: str | Regularizer = "peer", beta: float = 0.1, **settings: object
) -> DQN:
    """A tiny agent whose target, where it has one of its own, differs from the critic."""
    encoder = {"encoder": EncoderConfig(**SMALL_ENCODER)} if len(spec.observation_shape) == 3 else {}
    config = AGENTS[name].settings(**{"critic": CriticConfig(hidden=(8, 5)), **encoder, **settings})
    if isinstance(regularizer, str):
        regularizer = make(regularizer, beta)
    agent = make_agent(name, config, spec, regularizer=regularizer, rng=stream("weights"), device=CPU)
    shift = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in [*agent.target.parameters()] * (agent.target is not agent.critic):
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=shift))
    return agent


def batch_of(spec: EnvSpec, size: int = 16, seed: int = 0) -> Batch:
    """Half of the rows are terminal; some errors are above 1, where Huber's loss turns linear."""
    rng = np.random.default_rng(seed)

    def observations() -> np.ndarray:
        shape = (size, *spec.observation_shape)
        return rng.integers(256, size=shape, dtype=np.uint8) if len(shape) == 4 else rng.normal(size=shape)

    return Batch.from_numpy(
        obs=observations().astype(spec.observation_dtype),
        action=rng.integers(spec.actions, size=size),
        reward=rng.normal(scale=2.0, size=size).astype(np.float32),
        discount=(0.9 * (np.arange(size) % 2)).astype(np.float32),
        next_obs=observations().astype(spec.observation_dtype),
        device=CPU,
    )
