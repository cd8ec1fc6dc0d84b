"""What PEER adds to the update of a 256x256 twin critic: batch 256, 17 + 6 inputs, Adam, one thread.

    python benchmarks/peer_overhead.py

Two updates are timed. `critic`: the target actor's next action, the target critic, the TD loss, backward,
Adam, the target's moving average. `td3`: TD3's cycle, two of those and one update of the actor. Times are CPU
times. Arms alternate update by update, in random order, because the machine's speed drifts; before each timed update
its arm runs one that is not counted, because the arms leave the allocator in different states. `added` is the median
over rounds of an arm's time over the plain arm's in the same round, with a bootstrap interval. A second plain arm
shows how precise these figures are: it should read 0.

All of it is measured twice, each time in a process of its own: as `peer-rl train` runs, which asks glibc to keep
freed memory (`peer_rl.training.process`), and with glibc's default, which is what PEER meets in a script of your own.
The table and `results/peer_overhead.json` (under `allocators`) name the two.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from peer_rl.bench.updates import in_turns, ratio
from peer_rl.plugin import PEER, CosinePEER, peer_loss
from peer_rl.training.process import keep_freed_memory

BATCH, OBS, ACTION, WIDTH, HEADS, GAMMA, BETA = 256, 17, 6, 256, 2, 0.99, 5e-4
Row = dict[str, float]
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
        self.actor, self.target_actor = actor(), actor()
        self.critic_adam = torch.optim.Adam(self.critic.parameters(), lr=3e-4, fused=True)
        self.actor_adam = torch.optim.Adam(self.actor.parameters(), lr=3e-4, fused=True)
        self.obs, self.obs_next = torch.randn(2, BATCH, OBS)
        self.action, self.reward = torch.randn(BATCH, ACTION), torch.rand(BATCH)

    def update_critic(self, arm: Arm) -> None:
        with torch.no_grad():
            x_next = torch.cat([self.obs_next, self.target_actor(self.obs_next)], -1)
            q_next, phi_next = self.target(x_next)
            y = self.reward + GAMMA * q_next.amin(0)
        q, phi = self.critic(torch.cat([self.obs, self.action], -1))
        loss = (q - y).square().mean(-1).sum()
        if arm is not None:
            loss = loss + arm(phi, phi_next)
        self.critic_adam.zero_grad(set_to_none=True)
        loss.backward()
        self.critic_adam.step()
        follow(self.target, self.critic)

    def update_actor(self) -> None:
        self.critic.requires_grad_(False)
        q, _ = self.critic(torch.cat([self.obs, self.actor(self.obs)], -1))
        self.actor_adam.zero_grad(set_to_none=True)
        (-q[0].mean()).backward()
        self.actor_adam.step()
        self.critic.requires_grad_(True)
        follow(self.target_actor, self.actor)

    def update(self, kind: str, arm: Arm) -> None:
        self.update_critic(arm)
        if kind == "td3":
            self.update_critic(arm)
            self.update_actor()


def actor() -> nn.Module:
    sizes = [OBS, WIDTH, WIDTH]
    hidden = [layer for i, o in pairwise(sizes) for layer in (nn.Linear(i, o), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(WIDTH, ACTION), nn.Tanh())


@torch.no_grad()
def follow(target: nn.Module, online: nn.Module) -> None:
    torch._foreach_lerp_(list(target.parameters()), list(online.parameters()), 0.005)


def bare(phi: Tensor, phi_next: Tensor) -> Tensor:
    """Compute the formula without a check."""
    return (phi * phi_next.detach()).sum(-1).mean(-1).sum() * BETA


ARMS: dict[str, dict[str, Arm]] = {
    "critic": {
        "plain": None,
        "plain again": None,
        "peer_loss": peer_loss,
        "PEER": PEER(BETA),
        "bare formula": bare,
        "CosinePEER": CosinePEER(BETA),
    },
    "td3": {"plain": None, "plain again": None, "PEER": PEER(BETA)},
}


def measure(rounds: int) -> dict[str, dict[str, Row]]:
    update = Update()
    found = {}
    for kind, arms in ARMS.items():
        calls = {name: partial(update.update, kind, arm) for name, arm in arms.items()}
        found[kind] = added(in_turns(calls, rounds, untimed=1))
    return found


def added(times: dict[str, list[float]]) -> dict[str, Row]:
    """Microseconds of each arm, and what it adds to the plain one."""
    return {
        name: {"update_us": 1e6 * statistics.median(arm), **ratio(arm, times["plain"])} for name, arm in times.items()
    }


def table(result: dict[str, Row]) -> str:
    lines = [f"{'arm':<14}{'update':>10}{'added':>10}   95 % interval"]
    for name, row in result.items():
        interval = f"[{100 * row['low']:+.2f}, {100 * row['high']:+.2f}] %"
        lines.append(f"{name:<14}{row['update_us']:>7.0f} us{100 * row['median']:>+8.2f} %   {interval}")
    return "\n".join(lines)


ALLOCATORS = {"as peer-rl trains (memory kept)": ["--keep"], "glibc's default": []}


def read_options(description: str, *, rounds: int, out: Path) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds, help="timed calls of each arm")
    parser.add_argument("--out", type=Path, default=out)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--keep", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def by_allocator(
    script: str, options: argparse.Namespace, allocators: dict[str, list[str]], measure: Callable[[int], Any]
) -> Iterator[tuple[str, Any]]:
    """What ``measure`` finds under each allocator: this script starts itself once for each, and prints it there."""
    if options.child:
        if options.keep and not keep_freed_memory():
            sys.exit("this C library cannot be asked to keep memory, or the environment sets its thresholds")
        print(json.dumps(measure(options.rounds)))
        sys.exit()
    for name, arguments in allocators.items():
        command = [sys.executable, script, "--child", "--rounds", str(options.rounds), *arguments]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        yield name, json.loads(run.stdout)


def main() -> None:
    options = read_options("What PEER adds to a critic's update.", rounds=1500, out=RESULT)
    results = {}
    for name, found in by_allocator(__file__, options, ALLOCATORS, measure):
        results[name] = found
        for kind, result in found.items():
            print(f"{kind}, {name}:\n{table(result)}\n", flush=True)
    record = {
        "what": "twin 256x256 critic, batch 256, 23 inputs, Adam, one thread, CPU time",
        "updates_per_arm": options.rounds,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "torch": torch.__version__,
        "allocators": results,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
