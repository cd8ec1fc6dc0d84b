"""What PEER adds to the update of a 256x256 twin critic: batch 256, 17 + 6 inputs, Adam, one thread.

    python benchmarks/peer_overhead.py

The update is a TD3 critic's: the target actor's next action, the target critic, the TD loss, backward, Adam, the
target's moving average. Arms alternate in short blocks, in random order, because the machine's speed drifts; each
block's first updates are not counted, because the arms leave the allocator in different states. The figure is the
median over rounds of an arm's block time divided by the plain arm's in the same round. A second plain arm shows what
that figure is worth: it should read 0. Each allocator setting runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn

from peer_rl.regularizers import PEER, CosinePEER, peer_loss

BATCH, OBS, ACTION, WIDTH, HEADS, GAMMA, BETA = 256, 17, 6, 256, 2, 0.99, 5e-4
WARM_UP, BLOCK = 3, 20
Arm = Callable[[Tensor, Tensor], Tensor] | None
RESULT = Path(__file__).parent / "results" / "peer_overhead.json"


class TwinCritic(nn.Module):
    """Two critics as one batched matrix product."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [OBS + ACTION, WIDTH, WIDTH, 1]
        pairs = list(pairwise(sizes))
        self.weights = nn.ParameterList([torch.randn(HEADS, i, o) * (2 / i) ** 0.5 for i, o in pairs])
        self.biases = nn.ParameterList([torch.zeros(HEADS, 1, o) for _, o in pairs])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = x.expand(HEADS, *x.shape)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = torch.baddbmm(bias, hidden, weight).relu()
        return torch.baddbmm(self.biases[-1], hidden, self.weights[-1]).squeeze(-1), hidden


class Update:
    def __init__(self) -> None:
        torch.manual_seed(0)
        self.critic, self.target = TwinCritic(), TwinCritic()
        self.target.load_state_dict(self.critic.state_dict())
        self.actor = nn.Sequential(
            nn.Linear(OBS, WIDTH),
            nn.ReLU(),
            nn.Linear(WIDTH, WIDTH),
            nn.ReLU(),
            nn.Linear(WIDTH, ACTION),
            nn.Tanh(),
        )
        self.optimizer = torch.optim.Adam(self.critic.parameters(), lr=3e-4, fused=True)
        self.online = [p.data for p in self.critic.parameters()]
        self.slow = [p.data for p in self.target.parameters()]
        self.x, self.obs_next, self.reward = (
            torch.randn(BATCH, OBS + ACTION),
            torch.randn(BATCH, OBS),
            torch.rand(BATCH),
        )

    def __call__(self, arm: Arm) -> float:
        start = time.perf_counter()
        with torch.no_grad():
            x_next = torch.cat([self.obs_next, self.actor(self.obs_next)], -1)
            q_next, phi_next = self.target(x_next)
            y = self.reward + GAMMA * q_next.amin(0)
        q, phi = self.critic(self.x)
        loss = (q - y).square().mean(-1).sum()
        if arm is not None:
            loss = loss + arm(phi, phi_next)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        torch._foreach_lerp_(self.slow, self.online, 0.005)
        return time.perf_counter() - start


def bare(phi: Tensor, phi_next: Tensor) -> Tensor:
    """The formula without a check."""
    return (phi * phi_next.detach()).sum(-1).mean(-1).sum() * BETA


def measure(rounds: int) -> dict[str, dict[str, float]]:
    torch.set_num_threads(1)
    arms: dict[str, Arm] = {
        "plain": None,
        "plain again": None,
        "peer_loss": peer_loss,
        "PEER": PEER(BETA),
        "bare formula": bare,
        "CosinePEER": CosinePEER(BETA),
    }
    update, order = Update(), random.Random(0)
    times: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(rounds):
        for name in order.sample(list(arms), len(arms)):
            block = [update(arms[name]) for _ in range(WARM_UP + BLOCK)]
            times[name].append(statistics.median(block[WARM_UP:]))
    return {name: summary(blocks, times["plain"]) for name, blocks in times.items()}


def summary(blocks: list[float], plain: list[float]) -> dict[str, float]:
    ratios = sorted(a / b - 1 for a, b in zip(blocks, plain, strict=True))
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(1000))
    return {
        "update_us": 1e6 * statistics.median(blocks),
        "added_percent": 100 * statistics.median(ratios),
        "low_percent": 100 * medians[25],
        "high_percent": 100 * medians[975],
        "fastest_block_added_percent": 100 * (min(blocks) / min(plain) - 1),
    }


def table(result: dict[str, dict[str, float]]) -> str:
    lines = [f"{'arm':<14}{'update':>10}{'added':>9}   95 % interval     by fastest blocks"]
    for name, row in result.items():
        interval = f"[{row['low_percent']:+.2f}, {row['high_percent']:+.2f}] %"
        lines.append(
            f"{name:<14}{row['update_us']:>7.0f} us{row['added_percent']:>+7.2f} %   {interval:<18}"
            f"{row['fastest_block_added_percent']:+.2f} %"
        )
    return "\n".join(lines)


ALLOCATORS = {
    "glibc default": {},
    "freed memory kept": {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description="What PEER adds to a critic's update.")
    parser.add_argument("--rounds", type=int, default=150, help=f"blocks of {BLOCK} counted updates per arm")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.rounds)))
        return
    results = {}
    for name, environment in ALLOCATORS.items():
        command = [sys.executable, __file__, "--child", "--rounds", str(options.rounds)]
        run = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
        results[name] = json.loads(run.stdout)
        print(f"{name}:\n{table(results[name])}\n")
    record = {
        "what": "twin 256x256 critic, batch 256, 23 inputs, TD3 critic update, Adam, one thread",
        "updates_per_arm": options.rounds * BLOCK,
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "torch": torch.__version__,
        "allocators": results,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
