"""The single-file example: it runs, and its 200 updates equal our td3's."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from continuous import CPU, SPEC, stream

from peer_rl.agents.td3 import TD3
from peer_rl.plugin import make
from peer_rl.replay.store import Batch
from peer_rl.settings.networks import ActorConfig, CriticConfig
from peer_rl.settings.td3 import TD3Config

SCRIPT = Path(__file__).parents[2] / "examples" / "plug_into_your_agent.py"
WIDTH, ROWS, GAMMA = 24, 32, 0.97


@pytest.fixture
def example():
    spec = importlib.util.spec_from_file_location("plug_into_your_agent", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def our_td3(beta: float) -> TD3:
    networks = {"actor": ActorConfig(hidden=(WIDTH, WIDTH)), "critic": CriticConfig(hidden=(WIDTH, WIDTH))}
    agent = TD3(TD3Config(**networks), SPEC, regularizer=make("peer", beta), rng=stream("weights"), device=CPU)
    for optimizer in (agent.actor_optimizer, agent.critic_optimizer):
        optimizer.step = optimizer.step.float()  # torch's fused kernel wants the count in single precision
    return agent


def layers_of(ours: TD3, theirs):
    """Weight and bias of each layer of ours, and the example's layer: actors, then critic by critic."""
    for mine, other in ((ours.actor, theirs.actor), (ours.target_actor, theirs.actor_target)):
        linears = [*(layer for layer in mine.trunk if isinstance(layer, torch.nn.Linear)), mine.head]
        for layer, same in zip(linears, (other.fc1, other.fc2, other.fc_mu), strict=True):
            yield layer.weight, layer.bias, same
    for mine, other in ((ours.critic, theirs.critics), (ours.target_critic, theirs.critics_target)):
        for head, critic in enumerate(other):
            for layer, same in zip((*mine.layers, mine.head), (critic.fc1, critic.fc2, critic.fc3), strict=True):
                yield layer.weight[head].T, layer.bias[head, 0], same


def rows_of(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "obs": rng.normal(size=(ROWS, 3)),
        "action": rng.uniform(-1, 1, size=(ROWS, 2)),
        "reward": rng.normal(size=ROWS),
        "next_obs": rng.normal(size=(ROWS, 3)),
        "terminated": (rng.random(ROWS) < 0.3).astype(float),
    }


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("beta", [0.05, 0.0])
def test_200_updates_equal_our_td3s(example, beta: float) -> None:
    words = ["--width", str(WIDTH), "--gamma", str(GAMMA), "--beta", str(beta)]
    ours, theirs = our_td3(beta), example.TD3(3, 2, example.read_arguments(words))
    with torch.no_grad():
        for weight, bias, same in layers_of(ours, theirs):
            same.weight.copy_(weight)
            same.bias.copy_(bias)
    start = [same.weight.clone() for _, _, same in layers_of(ours, theirs)]
    rng, noise = stream(), stream().torch
    for index in range(200):
        rows = rows_of(index)
        theirs.update(example.Batch(**{name: torch.from_numpy(column) for name, column in rows.items()}), noise)
        rows["discount"] = GAMMA * (1 - rows.pop("terminated"))
        ours.update(Batch(**{name: torch.from_numpy(column) for name, column in rows.items()}), index=index, rng=rng)
    for (weight, bias, same), before in zip(layers_of(ours, theirs), start, strict=True):
        torch.testing.assert_close(same.weight, weight, rtol=0, atol=1e-8)
        torch.testing.assert_close(same.bias, bias, rtol=0, atol=1e-8)
        assert (same.weight - before).abs().max() > 1e-3


def test_the_script_trains_and_prints() -> None:
    words = ["--steps", "60", "--random-steps", "30", "--eval-every", "30", "--eval-episodes", "1", "--width", "16"]
    done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True, check=True, timeout=120)
    lines = done.stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["30", "60"]
    assert all("return" in line and "cosine 0." in line for line in lines)


def test_it_is_short() -> None:
    assert len(SCRIPT.read_text().splitlines()) < 200
