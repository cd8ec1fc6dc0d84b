"""Which of five ways to compute PEER's term is the cheapest? Our TD3's update: 256x256, batch 256, one thread.

    python benchmarks/peer_variants.py

`as it is` is what `PEER` does. `dot` and `function` make no array in the forward pass. `hook` adds the known gradient
to phi's in place. `fused` is a head of its own, whose backward adds it within the product that makes phi's gradient.
`half` only reads both arrays for the value and has no gradient. Alternating updates, CPU times, medians of paired
ratios with bootstrap intervals; `plain again` should read 0.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from peer_overhead import added, table
from torch import Tensor
from torch.nn import functional as F

from peer_rl.agents.make import build_agent
from peer_rl.bench.updates import BATCH, HALF_CHEETAH, in_turns
from peer_rl.launch.random_batches import random_transitions
from peer_rl.networks.mlp import CriticOutput, EnsembleCritic
from peer_rl.plugin import terms
from peer_rl.rng import Stream
from peer_rl.settings import configure
from peer_rl.training.process import keep_freed_memory

BETA = 5e-4
RESULT = Path(__file__).parent / "results" / "peer_variants.json"
Term = Callable[[Tensor, Tensor, float], Tensor]


def dot(phi: Tensor, phi_next: Tensor, beta: float) -> Tensor:
    return torch.dot(phi.reshape(-1), phi_next.reshape(-1)) * (beta / phi.shape[-2])


class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, phi: Tensor, phi_next: Tensor, beta: float) -> Tensor:
        ctx.save_for_backward(phi_next)
        ctx.scale = beta / phi.shape[-2]
        return dot(phi, phi_next, beta)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.saved_tensors[0] * (gradient * ctx.scale), None, None


def hook(phi: Tensor, phi_next: Tensor, beta: float) -> Tensor:
    phi.register_hook(lambda gradient: gradient.add_(phi_next, alpha=beta / phi.shape[-2]))
    return half(phi, phi_next, beta)


@torch.no_grad()
def half(phi: Tensor, phi_next: Tensor, beta: float) -> Tensor:
    return dot(phi, phi_next, beta)


class FusedHead(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, phi: Tensor, weight: Tensor, bias: Tensor, phi_next: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(phi, weight, phi_next)
        return torch.baddbmm(bias, phi, weight), dot(phi, phi_next, BETA)

    @staticmethod
    def backward(ctx: Any, q: Tensor, _value: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        phi, weight, phi_next = ctx.saved_tensors
        gradient = torch.baddbmm(phi_next, q, weight.mT, beta=BETA / phi.shape[-2])
        return gradient, torch.bmm(phi.mT, q), q.sum(1, keepdim=True), None


class FusedCritic(EnsembleCritic):
    """The target critic and the critic of one TD3; phi' goes from the first to the second."""

    phi_next: Tensor
    value: Tensor

    def forward(self, obs: Tensor, action: Tensor, **options: Any) -> CriticOutput:
        if options.get("heads") is not None:
            return super().forward(obs, action, **options)
        phi = torch.cat([obs, action], -1).expand(2, -1, -1)
        for layer in self.layers:
            phi = F.relu(layer(phi), inplace=True)
        if not torch.is_grad_enabled():
            FusedCritic.phi_next = phi
            return CriticOutput(q=self.head(phi), phi=phi)
        q, FusedCritic.value = FusedHead.apply(phi, self.head.weight, self.head.bias, FusedCritic.phi_next)
        return CriticOutput(q=q.squeeze(-1), phi=phi)


def arm(beta: float, term: Term, critic: type[EnsembleCritic] = EnsembleCritic) -> Callable[[], None]:
    device = torch.device("cpu")
    agent: Any = build_agent(configure("td3", "mujoco/half-cheetah", beta=beta, device="cpu"), HALF_CHEETAH, device)
    agent.critic.__class__ = agent.target_critic.__class__ = critic
    batch, rng = random_transitions(HALF_CHEETAH, BATCH, device), Stream(0, "bench", device=device)

    def two_updates() -> None:
        terms.mean_inner = term
        for index in range(2):  # the second updates the actor, too
            agent.update(batch, index=index, rng=rng)

    return two_updates


def main() -> None:
    parser = argparse.ArgumentParser(description="Ways to compute PEER's term.")
    parser.add_argument("--rounds", type=int, default=1500, help="timed calls of each arm")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    keep_freed_memory()
    today = terms.mean_inner
    calls = {"plain": arm(0.0, today), "plain again": arm(0.0, today), "as it is": arm(BETA, today)}
    ways = {"dot": dot, "function": Inner.apply, "hook": hook, "half": half}
    calls |= {name: arm(BETA, term) for name, term in ways.items()}
    calls["fused"] = arm(BETA, lambda *_: FusedCritic.value, FusedCritic)
    found = added(in_turns(calls, options.rounds))
    print(table(found))
    record = {"what": "two TD3 updates, memory kept", "rounds": options.rounds, "torch": torch.__version__}
    options.out.write_text(json.dumps(record | {"arms": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
