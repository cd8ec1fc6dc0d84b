"""What an update from pixels is made of, in passes of the bare network. One thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from peer_rl.agents.make import build_agent
from peer_rl.bench.updates import BETAS, cost_of_peer, in_turns, milliseconds, share
from peer_rl.envs.spec import EnvSpec
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings import configure
from peer_rl.training.process import keep_freed_memory

ATARI = EnvSpec((4, 84, 84), "uint8", stack=4, actions=18)
"""Road Runner's size."""
BATCH = 32
_CPU = torch.device("cpu")


class BareRainbow(nn.Module):
    """The data-efficient network of torch's own layers, without noise: two convolutions and two streams."""

    def __init__(self, actions: int = 18, atoms: int = 51) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(4, 32, 5, 5), nn.ReLU(), nn.Conv2d(32, 64, 5, 5), nn.ReLU(), nn.Flatten()
        )
        self.value = nn.Sequential(nn.Linear(576, 256), nn.ReLU(), nn.Linear(256, atoms))
        self.advantage = nn.Sequential(nn.Linear(576, 256), nn.ReLU(), nn.Linear(256, actions * atoms))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Every output of both streams."""
        x = self.convolutions(frames)
        return torch.cat([self.value(x), self.advantage(x)], -1)


class BareDQN(nn.Module):
    """Nature's network with dueling streams of torch's own layers."""

    def __init__(self, actions: int = 18) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            *(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU()),
            *(nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten()),
        )
        self.value = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 1))
        self.advantage = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Every output of both streams."""
        x = self.convolutions(frames)
        return torch.cat([self.value(x), self.advantage(x)], -1)


NETWORKS: dict[str, type[nn.Module]] = {"curl-rainbow": BareRainbow, "drq-dqn": BareDQN}
"""By agent: the bare network whose passes an update is counted in."""


def random_frames() -> Batch:
    """Transitions of Road Runner's size, prioritised."""
    rng = torch.Generator().manual_seed(0)
    obs, next_obs = torch.randint(256, (2, BATCH, *ATARI.observation_shape), dtype=torch.uint8, generator=rng)
    return Batch(
        obs=obs,
        action=torch.randint(ATARI.actions, (BATCH,), generator=rng),
        reward=torch.randn(BATCH, generator=rng),
        discount=torch.full((BATCH,), 0.8),
        next_obs=next_obs,
        weight=torch.rand(BATCH, generator=rng),
    )


def bare_pass(network: nn.Module, batch: Batch) -> Callable[[], None]:
    """Forward and backward of the bare network, nothing else: no loss, no optimizer, frames already floats."""
    frames = batch.obs.float() / 255
    parameters = list(network.parameters())

    def one_pass() -> None:
        torch.autograd.grad(network(frames).sum(), parameters)

    return one_pass


def measure_pixels(name: str, *, rounds: int) -> dict[str, Any]:
    """Milliseconds of an update, its cost in bare passes, and what PEER adds."""
    keep_freed_memory()
    batch, rng = random_frames(), Stream(0, "bench", device=_CPU)
    arms: dict[str, Callable[[], Any]] = {"pass": bare_pass(NETWORKS[name](), batch)}
    for arm, beta in BETAS.items():
        agent = build_agent(configure(name, "atari/road-runner", beta=beta, device="cpu"), ATARI, _CPU)
        arms[arm] = partial(agent.update, batch, index=0, rng=rng)
    times = in_turns(arms, rounds)
    passes = {"pass_ms": milliseconds(times["pass"]), "passes": 1 / share(times, "pass", "plain")}
    return cost_of_peer(name, times) | passes
