"""--compile: the same weights and draws, no recompilation, diagnostics included; a machine without a compiler."""

from functools import partial

import pytest
import torch
from continuous import CONTINUOUS, CPU, agent_with, batch_of, stream
from running import TINY, tiny_config
from torch._dynamo.utils import counters

from peer_rl.agents.checks import check_compiler
from peer_rl.errors import ConfigError
from peer_rl.launch.api import load, train
from peer_rl.settings import configure
from peer_rl.training.files import read_json_lines

# torch 2.13 calls its own deprecated torch.jit.script_method when Inductor is imported
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
KINDS = [
    "td3",
    "sac",
    *(pytest.param(name, marks=pytest.mark.slow) for name in CONTINUOUS if name not in ("td3", "sac")),
]
"""METD3 and REDQ are the first two's classes."""


@pytest.fixture(autouse=True)
def _nothing_compiled_yet():
    torch.compiler.reset()
    counters.clear()
    yield
    torch.compiler.reset()


def compiled_by(backend: str, monkeypatch) -> None:
    """aot_eager traces and differentiates as Inductor does, without the minute that g++ takes."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))


def tensors(agent) -> list[torch.Tensor]:
    networks = [part for part in vars(agent).values() if isinstance(part, torch.nn.Module)]
    return [parameter for network in networks for parameter in network.parameters()]


def compare(name: str, beta: float) -> None:
    """Six updates of both; all is compiled in the first two."""
    settings = {"policy_every": 2, "actor_learning_rate": 1e-2, "critic_learning_rate": 1e-2}
    plain, fast = (agent_with(name, beta=beta, compile=choice, **settings) for choice in (False, True))
    rngs = stream(), stream()
    for index in range(6):
        first, second = (
            agent.update(batch_of(seed=index), index=index, rng=rng).metrics
            for agent, rng in zip((plain, fast), rngs, strict=True)
        )
        for key, value in first.items():
            torch.testing.assert_close(second[key], value, rtol=1e-5, atol=1e-5)
        if index == 1:
            graphs = counters["stats"]["unique_graphs"]
            assert graphs == 3  # bootstrap, TD loss, actor's loss: whole, without a break
    assert counters["stats"]["unique_graphs"] == graphs
    assert not counters["graph_break"]
    for one, other in zip(tensors(plain), tensors(fast), strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5)
    states = [rng.state_dict() for rng in rngs]
    assert torch.equal(states[0]["torch"], states[1]["torch"])
    assert states[0]["numpy"] == states[1]["numpy"]


@pytest.mark.parametrize("beta", [0.0, 0.1])
@pytest.mark.parametrize("name", KINDS)
def test_compiled_updates_equal_the_plain_ones_and_compile_once(name, beta, monkeypatch):
    compiled_by("aot_eager", monkeypatch)
    compare(name, beta)


@pytest.mark.slow
def test_with_inductor_too():
    compare("td3", 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_compiled_run_diagnoses_itself_and_learns_what_a_plain_one_learns(name, tmp_path, monkeypatch):
    """The gradient ratio needs one graph twice, which a compiled graph refuses."""
    compiled_by("aot_eager", monkeypatch)
    runs = [
        train(tiny_config(name, steps=400, **{"settings.compile": choice}), runs=tmp_path) for choice in (False, True)
    ]
    assert counters["stats"]["unique_graphs"] == 3
    plain, fast = (read_json_lines(run / "diagnostics.jsonl") for run in runs)
    assert len(plain) == len(fast) > 0
    for one, other in zip(plain, fast, strict=True):
        assert other["cosine"] == pytest.approx(one["cosine"], rel=1e-3)
        assert other["gradient_ratio"] == pytest.approx(one["gradient_ratio"], rel=1e-2)


def test_without_a_compiler_one_message_says_what_to_install(tmp_path, monkeypatch):
    config = configure("td3", TINY["td3"][0], device="cpu", **{"settings.compile": True})
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(ConfigError, match="apt-get install g\\+\\+") as caught:
        train(config, runs=tmp_path / "runs")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()
    check_compiler(config.settings, "cuda")
    check_compiler(configure("td3", TINY["td3"][0]).settings, "cpu")
    check_compiler(configure("dqn", "gridworld/paper").settings, "cpu")


@pytest.mark.slow
def test_a_compiled_runs_policy_loads_without_a_compiler(tmp_path, monkeypatch):
    compiled_by("aot_eager", monkeypatch)
    path = train(tiny_config("td3", steps=250, **{"settings.compile": True}), runs=tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert load(path, device=str(CPU)).act(batch_of().obs[0].numpy()).shape == (1,)
