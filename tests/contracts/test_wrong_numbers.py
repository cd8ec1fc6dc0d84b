"""NaN and infinity, whatever they come from, stop a run of any agent; its last checkpoint stays good."""

import math
import re
from itertools import count
from types import SimpleNamespace

import pytest
import torch
import toy_envs
from running import OURS, PIXELS, REGULARIZED, final, tiny_config, toy_config

import peer_rl
from peer_rl.agents.planet import PlaNet
from peer_rl.errors import RunError
from peer_rl.launch.api import train
from peer_rl.networks.latent_model import LatentModel
from peer_rl.settings import AGENTS
from peer_rl.training import loop
from peer_rl.training.checkpoint import Checkpoints
from peer_rl.training.rundir import run_path
from peer_rl.training.trees import all_finite

pytestmark = pytest.mark.filterwarnings("ignore:phi has negative entries")  # td-mpc's features are an ELU's
each = pytest.mark.parametrize("agent", OURS)


@pytest.fixture(autouse=True)
def _a_second_between_checks(monkeypatch):
    """Whenever the loop asks for the time, which it does after every episode, a second has passed."""
    seconds = count()
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: float(next(seconds))))


def complaint(config, runs, *, episodes: int) -> tuple[str, int]:
    """Why the run stopped, and the step of its newest checkpoint, which is good; one is taken every few episodes."""
    with pytest.raises(RunError) as caught:
        train(config, runs=runs, checkpoint_seconds=float(episodes))
    path = run_path(config, runs)
    said = str(caught.value)
    steps = Checkpoints(path / "checkpoint").steps()
    assert f"the last good checkpoint, at step {steps[-1]}, is kept in {path}" in said
    checkpoint = final(path)
    assert all_finite(checkpoint.components["agent"])
    assert all_finite(checkpoint.components["loop"])
    assert peer_rl.load(path).step == steps[-1]
    return said, steps[-1]


@each
@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("nan_reward", "the environment gave the reward nan"),
        ("nan_observation", "the environment gave an observation that is not finite"),
    ],
)
def test_from_the_environment(agent, task, words, tmp_path):
    if agent in PIXELS and task == "nan_observation":
        pytest.skip("a uint8 is always finite")
    said, kept = complaint(toy_config(agent, task), tmp_path, episodes=100)
    assert said.startswith(f"stopped at step 249: {words};")
    assert 140 < kept < 249, "episodes are one step long"


@each
def test_from_the_environment_of_the_evaluation(agent, tmp_path, monkeypatch):
    if agent in PIXELS:
        pytest.skip("a uint8 is always finite")
    monkeypatch.setattr(toy_envs.NanWhenWatched, "made", 0)
    said, kept = complaint(toy_config(agent, "nan_in_evaluation"), tmp_path, episodes=50)
    assert said.startswith("stopped at step 100: evaluation stopped: an observation is not finite (seed ")
    assert kept < 100


@each
@pytest.mark.parametrize("beta", [0.0, 5e-4])
def test_from_a_loss_that_diverges(agent, beta, tmp_path):
    rates = ("learning_rate", "critic_learning_rate", "model_learning_rate")
    names = [name for name in rates if hasattr(AGENTS[agent].settings(), name)]
    weight = {"beta": beta} if agent in REGULARIZED else {}
    config = tiny_config(agent, **weight, **{f"settings.{name}": 1e30 for name in names})
    said, kept = complaint(config, tmp_path, episodes=1)
    stopped = re.match(r"stopped at step (\d+): .*(nan|inf|NaN|not finite)", said)
    assert stopped, said
    assert kept <= int(stopped[1])


@pytest.mark.parametrize("agent", REGULARIZED)
def test_from_a_gradient(agent, tmp_path):
    """The TD loss stays finite; a later loss of the same update shows it, or the checkpoint does."""
    first_update = tiny_config(agent).learning.start_steps + tiny_config(agent).learning.update_every
    silent = {"protocol.eval_every": 0, "protocol.diagnose_every": 0, "learning.updates": 1, "learning.pretrain": 0}
    if hasattr(AGENTS[agent].settings(), "policy_every"):
        silent["settings.policy_every"] = 2
    config = tiny_config(agent, regularizer="toy_envs:nan_gradient", beta=1.0, steps=first_update, **silent)
    first_to_tell = "(a weight became NaN or infinite|(actor|auxiliary)_loss became nan|phi must be finite.*)"
    with pytest.raises(RunError, match=f"{first_to_tell}; there is no checkpoint yet"):
        train(config, runs=tmp_path)
    assert not list(tmp_path.rglob("agent.safetensors"))


@pytest.mark.parametrize("agent", [name for name in OURS if AGENTS[name].actions == "continuous"])
def test_from_the_agents_action(agent, tmp_path, monkeypatch):
    """A simulator never sees it."""
    config = toy_config(agent, "choice")
    module = torch.nn.Module

    def spoilt(self, *arguments, **keywords):
        output = call(self, *arguments, **keywords)
        first = output[0] if isinstance(output, tuple) else output
        poison = (
            type(self).__name__.endswith(("Actor", "Policy", "Gaussian"))
            and isinstance(first, torch.Tensor)
            and len(first) == 1
        )
        if poison and not isinstance(output, tuple):
            return output * math.nan
        return (output[0] * math.nan, *output[1:]) if poison else output

    call = module.__call__
    monkeypatch.setattr(module, "__call__", spoilt)
    for planned, returns in ((LatentModel, "returns"), (PlaNet, "_returns")):  # a planner's actions come from values
        monkeypatch.setattr(planned, returns, lambda self, start, actions, *_, **__: actions.sum((0, 2)) * math.nan)
    with pytest.raises(RunError, match=r"stopped at step 100: the agent's action became \[nan\]"):
        train(config, runs=tmp_path)
