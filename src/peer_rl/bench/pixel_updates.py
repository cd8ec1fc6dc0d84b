"""What an update from pixels is made of, in passes of the bare network. One thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from peer_rl.bench.updates import agents_of, cost_of_peer, in_turns, milliseconds, share
from peer_rl.envs.spec import EnvSpec
from peer_rl.launch.random_batches import random_transitions
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.training.process import keep_freed_memory

ATARI = EnvSpec((4, 84, 84), "uint8", stack=4, actions=18)
"""Road Runner's size."""
BATCH = 32
_CPU = torch.device("cpu")


class BareNetwork(nn.Module):
    """Convolutions and dueling streams of torch's own layers, without noise."""

    def __init__(self, convolutions: Sequence[nn.Module], code: int, hidden: int, atoms: int = 1) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(*convolutions, nn.Flatten())
        self.streams = nn.ModuleList(
            nn.Sequential(nn.Linear(code, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
            for outputs in (atoms, ATARI.actions * atoms)
        )

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Every output of both streams."""
        x = self.convolutions(frames)
        return torch.cat([stream(x) for stream in self.streams], -1)


def rainbow() -> BareNetwork:
    """The data-efficient network."""
    return BareNetwork([nn.Conv2d(4, 32, 5, 5), nn.ReLU(), nn.Conv2d(32, 64, 5, 5), nn.ReLU()], 576, 256, atoms=51)


def nature() -> BareNetwork:
    """DQN's."""
    first, second, third = nn.Conv2d(4, 32, 8, 4), nn.Conv2d(32, 64, 4, 2), nn.Conv2d(64, 64, 3)
    return BareNetwork([first, nn.ReLU(), second, nn.ReLU(), third, nn.ReLU()], 3136, 512)


NETWORKS: dict[str, Callable[[], nn.Module]] = {"curl-rainbow": rainbow, "drq-dqn": nature}
"""By agent: the bare network whose passes an update is counted in."""


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
    batch, rng = random_transitions(ATARI, BATCH, _CPU), Stream(0, "bench", device=_CPU)
    batch = replace(batch, weight=torch.rand(BATCH, generator=torch.Generator().manual_seed(0)))  # prioritised
    arms: dict[str, Callable[[], Any]] = {"pass": bare_pass(NETWORKS[name](), batch)}
    for arm, agent in agents_of(name, "atari/road-runner", ATARI).items():
        arms[arm] = partial(agent.update, batch, index=0, rng=rng)
    times = in_turns(arms, rounds)
    passes = {"pass_ms": milliseconds(times["pass"]), "passes": 1 / share(times, "pass", "plain")}
    return cost_of_peer(name, times) | passes
