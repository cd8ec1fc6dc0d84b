"""Updates of the agents that read DMControl's frames, compared with the passes that they cannot avoid. One thread.

The passes are forward and backward of bare networks in torch's own layers, on frames that are floats already: no
augmentation, loss, optimizer or target update. The `small` profile, whose updates a processor makes in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from peer_rl.bench.updates import agents_of, cost_of_peer, in_turns, milliseconds, share, two_updates
from peer_rl.envs.spec import EnvSpec
from peer_rl.launch.random_batches import random_transitions
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings import configure
from peer_rl.training.process import keep_freed_memory

AGENTS = ("curl-sac", "drq-sac", "sac-ae", "drq-v2")
TASK = "dmc/cartpole-swingup"
_CPU = torch.device("cpu")


def cartpole(size: int) -> EnvSpec:
    """Its frames and its one action."""
    limits: dict[str, Any] = {"action_shape": (1,), "action_low": (-1.0,), "action_high": (1.0,)}
    return EnvSpec((9, size, size), "uint8", stack=3, **limits)


class BareNetworks:
    """An agent's networks in torch's own layers, and the passes that one of its updates is made of."""

    def __init__(self, config: Any, side: int, actions: int) -> None:
        settings = config.settings
        shape = settings.encoder
        channels = (9, *shape.channels)
        layers: list[nn.Module] = []
        sides = [side]
        for (before, after), kernel, stride in zip(pairwise(channels), shape.kernels, shape.strides, strict=True):
            layers += [nn.Conv2d(before, after, kernel, stride), nn.ReLU()]
            sides.append((sides[-1] - kernel) // stride + 1)
        self.convolutions = nn.Sequential(*layers, nn.Flatten()).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        code = channels[-1] * sides[-1] ** 2
        self.latents = [nn.Sequential(nn.Linear(code, settings.latent), nn.LayerNorm(settings.latent)) for _ in "ac"]
        outputs = actions if config.agent == "drq-v2" else 2 * actions
        self.actor = _mlp(settings.latent, settings.actor.hidden, outputs)
        self.critics = [_mlp(settings.latent + actions, settings.critic.hidden, 1) for _ in range(2)]
        self.actions = actions
        mirrored = [nn.Linear(settings.latent, code), nn.ReLU(), nn.Unflatten(1, (channels[-1], sides[-1], sides[-1]))]
        for index in reversed(range(len(shape.channels))):
            kernel, stride = shape.kernels[index], shape.strides[index]
            left = (sides[index] - kernel) % stride
            last = [] if index == 0 else [nn.ReLU()]
            mirrored += [nn.ConvTranspose2d(channels[index + 1], channels[index], kernel, stride, 0, left), *last]
        self.decoder = nn.Sequential(*mirrored)

    def values(self, code: Tensor, action: Tensor) -> Tensor:
        """Both critics' sum."""
        seen = torch.cat([self.latents[1](code), action], -1)
        return sum((critic(seen) for critic in self.critics), torch.zeros(())).sum()

    def act(self, code: Tensor) -> Tensor:
        """One number an action, whatever else the policy says."""
        chosen: Tensor = self.actor(self.latents[0](code))[:, : self.actions]
        return chosen

    def critic_pass(self, frames: Tensor, action: Tensor) -> None:
        """Forward and backward of convolutions, latent and critics."""
        parts = (self.convolutions, self.latents[1], *self.critics)
        _backward(self.values(self.convolutions(frames), action), *parts)

    @torch.no_grad()
    def target_pass(self, frames: Tensor, *, encoders: int) -> None:
        """Forward at s', by the online encoder and, where there is one, the target's."""
        code = [self.convolutions(frames) for _ in range(encoders)][-1]
        self.values(code, self.act(code))

    def actor_pass(self, code: Tensor) -> None:
        """Forward through actor and critics, backward to the actor's weights."""
        _backward(self.values(code, self.act(code)), self.latents[0], self.actor)

    def contrastive_pass(self, frames: Tensor) -> None:
        """The anchors with a gradient, the keys without."""
        with torch.no_grad():
            self.latents[1](self.convolutions(frames))
        _backward(self.latents[1](self.convolutions(frames)).sum(), self.convolutions, self.latents[1])

    def reconstruction_pass(self, frames: Tensor) -> None:
        """Forward and backward of encoder, latent and decoder."""
        parts = (self.convolutions, self.latents[1], self.decoder)
        _backward(self.decoder(self.latents[1](self.convolutions(frames))).sum(), *parts)


def _mlp(inputs: int, hidden: tuple[int, ...], outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in pairwise((inputs, *hidden)):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(hidden[-1], outputs))


def _backward(loss: Tensor, *parts: nn.Module) -> None:
    torch.autograd.grad(loss, [weight for part in parts for weight in part.parameters()])


def unavoidable(config: Any, batch: Batch) -> Callable[[], None]:
    """The passes of two updates, one of which moves the actor (DrQ-v2's both do)."""
    settings, views = config.settings, getattr(config.settings, "views", 1)
    side = getattr(settings, "crop", batch.obs.shape[-1])
    networks = BareNetworks(config, side, batch.action.shape[-1])
    frames = (batch.obs[..., :side, :side].float() / 255).repeat(views, 1, 1, 1)
    frames = frames.contiguous(memory_format=torch.channels_last)
    action, rows = batch.action.repeat(views, 1), len(batch.reward)
    of_v2 = config.agent == "drq-v2"
    with torch.no_grad():
        code = networks.convolutions(frames[:rows])

    def passes() -> None:
        for index in range(2):
            networks.critic_pass(frames, action)
            networks.target_pass(frames, encoders=1 if of_v2 else 2)
            if index or of_v2:
                networks.actor_pass(code)
            if config.agent == "curl-sac":
                networks.contrastive_pass(frames)
            if config.agent == "sac-ae":
                networks.reconstruction_pass(frames)

    return passes


def measure_passes(name: str, *, rounds: int) -> dict[str, Any]:
    """Milliseconds of an update, of the passes that it cannot avoid, their share, and what PEER adds."""
    keep_freed_memory()
    config = configure(name, TASK, profile="small", device="cpu")
    spec = cartpole(config.image_size or 64)
    batch, rng = random_transitions(spec, config.learning.batch_size, _CPU), Stream(0, "bench", device=_CPU)
    arms: dict[str, Callable[[], None]] = {"passes": unavoidable(config, batch)}
    for arm, agent in agents_of(name, TASK, spec, profile="small").items():
        arms[arm] = two_updates(agent, batch, rng)
    times = in_turns(arms, rounds)
    least = {
        "unavoidable_ms": milliseconds(times["passes"], 2), "unavoidable_share": share(times, "passes", "plain"),
    }  # fmt: skip
    return cost_of_peer(name, times, updates=2) | least
