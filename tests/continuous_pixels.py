"""Small agents for frames and continuous actions, and batches to update them with."""

import numpy as np
import torch

from peer_rl.agents.make import make_agent
from peer_rl.envs.spec import EnvSpec
from peer_rl.plugin import make
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings import AGENTS
from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.networks import ActorConfig, CriticConfig

CPU = torch.device("cpu")
SACS = ("curl-sac", "drq-sac", "sac-ae")
KINDS = (*SACS, "drq-v2")
SPEC = EnvSpec((6, 14, 14), "uint8", stack=2, action_shape=(2,), action_low=(-1.0,) * 2, action_high=(1.0,) * 2)
OWN: dict[str, dict[str, object]] = {
    "curl-sac": {"crop": 11},
    "drq-sac": {"shift": 2},
    "sac-ae": {"latent_penalty": 0.1, "decoder_decay": 0.2},
    "drq-v2": {"shift": 2, "noise_start": 0.6},
}
"""The penalties are large enough to be seen."""


def stream(name: str = "update") -> Stream:
    return Stream(0, name, device=CPU)


def agent_with(kind: str, regularizer: str = "peer", beta: float = 0.1, spec: EnvSpec = SPEC, **settings: object):
    """A tiny agent whose target networks differ from the online ones, so that neither can be confused."""
    networks = {
        "actor": ActorConfig(hidden=(8, 6)),
        "critic": CriticConfig(hidden=(8, 6)),
        "encoder": EncoderConfig(channels=(4, 5), kernels=(3, 3), strides=(2, 1)),
        "latent": 7,
    }
    config = AGENTS[kind].settings(**{**networks, **OWN[kind], **settings})
    agent = make_agent(kind, config, spec, regularizer=make(regularizer, beta), rng=stream("weights"), device=CPU)
    shift = torch.Generator().manual_seed(1)
    targets = [agent.target_critic] if kind == "drq-v2" else [agent.sac.target_critic, agent.target_encoder]
    with torch.no_grad():
        for parameter in (parameter for network in targets for parameter in network.parameters()):
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=shift))
    return agent


def batch_of(size: int = 12, seed: int = 0, spec: EnvSpec = SPEC) -> Batch:
    """Half of the rows are terminal."""
    rng = np.random.default_rng(seed)
    frames = rng.integers(256, size=(2, size, *spec.observation_shape), dtype=np.uint8)
    return Batch.from_numpy(
        obs=frames[0],
        action=rng.uniform(-1, 1, size=(size, 2)).astype(np.float32),
        reward=rng.normal(size=size).astype(np.float32),
        discount=(0.9 * (np.arange(size) % 2)).astype(np.float32),
        next_obs=frames[1],
        device=CPU,
    )
