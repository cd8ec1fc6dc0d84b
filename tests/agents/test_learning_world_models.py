"""PlaNet, Dreamer and Dreamer-V2 learn, through the real trainer, a task that a broken world model cannot."""

import pytest
import torch

from peer_rl.launch.api import load, train
from peer_rl.networks.rssm import RSSM
from peer_rl.settings import configure

pytestmark = pytest.mark.slow

MODEL = {
    "steps": 1_600,
    "learning.start_steps": 400,
    "learning.pretrain": 100,
    "learning.batch_size": 32,
    "learning.sequence_length": 4,
    "learning.update_every": 2,
    "learning.updates": 1,
    "settings.model_learning_rate": 3e-3,
    "settings.units": 32,
    "settings.reward_layers": 1,
    "settings.vector_layers": 1,
    "settings.free_nats": 1.0,
    "settings.kl_weight": 0.1,
    "settings.rssm.belief": 32,
    "settings.rssm.hidden": 32,
    "settings.rssm.variables": 4,
    "settings.rssm.classes": 4,
    "protocol.eval_every": 0,
}
BEHAVIOUR = {
    "settings.imagined_steps": 5,
    "settings.imagined_discount": 0.9,
    "settings.actor_layers": 1,
    "settings.critic_layers": 1,
    "settings.actor_learning_rate": 3e-3,
    "settings.critic_learning_rate": 3e-3,
}
PLANNER = {
    "settings.planner.horizon": 3,
    "settings.planner.samples": 48,
    "settings.planner.elites": 8,
    "settings.planner.iterations": 3,
}
OWN = {"planet": PLANNER, "dreamer": BEHAVIOUR, "dreamer-v2": BEHAVIOUR}
SOLVED = 3.0  # of 4, see toy_envs.Recall


def score(agent, runs) -> float:
    config = configure(agent, "toy_envs:recall", **MODEL, **OWN[agent])
    return load(train(config, runs=runs)).evaluate(episodes=20).mean


def forgetful(monkeypatch):
    """The belief before every observation is that of an episode's start."""
    observe = RSSM.observe

    def broken(self, encoded, actions, first, rng, state=None):
        return observe(self, encoded, actions, torch.ones_like(first), rng, state)

    monkeypatch.setattr(RSSM, "observe", broken)


def deaf(monkeypatch):
    """The model's dynamics do not depend on the action."""
    step = RSSM.step
    monkeypatch.setattr(RSSM, "step", lambda self, state, action, noise: step(self, state, 0 * action, noise))


@pytest.mark.parametrize("agent", list(OWN))
def test_learns_to_remember_the_side(agent, tmp_path):
    assert score(agent, tmp_path) > SOLVED


@pytest.mark.parametrize(
    ("agent", "breaking"), [("planet", deaf), ("dreamer", deaf), ("dreamer", forgetful), ("dreamer-v2", forgetful)]
)
def test_a_broken_model_does_not_learn_it(agent, breaking, tmp_path, monkeypatch):
    breaking(monkeypatch)
    assert score(agent, tmp_path) < SOLVED - 1
