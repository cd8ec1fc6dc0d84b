"""Every agent for continuous actions learns, through the real trainer, a task that a broken loss cannot."""

import pytest
import torch
from breaking import without_bootstrap
from continuous import CONTINUOUS

from peer_rl.agents.sac import SAC
from peer_rl.agents.td3 import TD3
from peer_rl.launch.api import load, train
from peer_rl.settings import configure

pytestmark = pytest.mark.slow

SETTINGS = {
    "steps": 1_800,
    "learning.start_steps": 800,
    "learning.batch_size": 64,
    "learning.gamma": 0.95,
    "settings.actor.hidden": (32, 32),
    "settings.critic.hidden": (32, 32),
    "settings.actor_learning_rate": 3e-4,
    "settings.critic_learning_rate": 2e-3,
    "settings.tau": 0.05,
    "protocol.eval_every": 0,
    "protocol.diagnose_every": 0,
}
SOFT = {"settings.initial_temperature": 0.05, "settings.policy_every": 1, "settings.target_every": 1}
OWN = {
    "td3": {"settings.exploration_noise": 0.4},
    "metd3": {"settings.exploration_noise": 0.4},
    "sac": SOFT,
    "redq": {**SOFT, "learning.updates": 1, "settings.heads": 4},
}
SOLVED = 0.9  # of 1.2, see toy_envs.Bait; with one side alone learned it is near 0.3


def score(agent: str, runs) -> float:
    config = configure(agent, "toy_envs:bait", **{**SETTINGS, **OWN[agent]})
    return load(train(config, runs=runs)).evaluate(episodes=20).mean


@pytest.mark.parametrize("agent", CONTINUOUS)
def test_learns_to_leave_the_bait(agent, tmp_path):
    assert score(agent, tmp_path) > SOLVED


def downhill(kind):
    """The actor goes down where it should climb."""
    actor_loss = kind._actor_loss

    def broken(self, *arguments):
        found = actor_loss(self, *arguments)
        return -found if isinstance(found, torch.Tensor) else (-found[0], *found[1:])

    return "_actor_loss", broken


def myopic(kind):
    """The target is the reward alone."""
    bootstrap = kind._bootstrap
    if kind is SAC:
        return "_bootstrap", lambda self, reward, discount, *rest: bootstrap(self, reward, 0 * discount, *rest)
    return "_bootstrap", lambda self, batch, *rest: bootstrap(self, without_bootstrap(batch), *rest)


def gradient_upwards(kind):
    """The critic leaves its target where it should go to it."""
    td_loss = kind._td_loss

    def broken(self, *arguments):
        loss, online = td_loss(self, *arguments)
        return -loss.clamp(max=100.0), online  # bounded, or it would be refused as infinite

    return "_td_loss", broken


@pytest.mark.parametrize("breaking", [downhill, myopic, gradient_upwards])
@pytest.mark.parametrize("agent", ["td3", "sac"])
def test_a_broken_loss_does_not_learn_it(agent, breaking, tmp_path, monkeypatch):
    """METD3 and REDQ are these two classes."""
    kind = {"td3": TD3, "sac": SAC}[agent]
    monkeypatch.setattr(kind, *breaking(kind))
    assert score(agent, tmp_path) < SOLVED - 0.5
