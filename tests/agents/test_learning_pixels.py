"""Every agent for frames learns, through the real trainer, a task that needs the frame stack and the target."""

from dataclasses import replace

import pytest
import torch

from peer_rl.agents.dqn import DQN
from peer_rl.configs import configure
from peer_rl.networks.critics import ActionValues
from peer_rl.training.api import load, train

SETTINGS = {
    "steps": 1_600,
    "learning.start_steps": 500,
    "learning.batch_size": 32,
    "learning.n_step": 1,
    "learning.gamma": 0.95,
    "settings.learning_rate": 1e-3,
    "settings.tau": 0.05,
    "settings.epsilon_steps": 500,
    "settings.critic.hidden": (64,),
    "settings.encoder.channels": (8, 16),
    "settings.encoder.kernels": (5, 3),
    "settings.encoder.strides": (2, 2),
    "protocol.eval_every": 0,
    "protocol.diagnose_every": 0,
}
OWN = {"dqn": {}, "drq-dqn": {"settings.shift": 1}}
SOLVED = 0.6  # of 0.8, see pixel_envs.Bait; one that cannot see the direction gets 0


def score(agent: str, runs) -> float:
    config = configure(agent, "pixel_envs:bait", **{**SETTINGS, **OWN[agent]})
    return load(train(config, runs=runs)).evaluate(episodes=40).mean


@pytest.mark.parametrize("agent", OWN)
def test_learns_to_tell_the_direction_and_to_leave_the_bait(agent, tmp_path):
    assert score(agent, tmp_path) > SOLVED


def one_frame(monkeypatch):
    """The network sees the newest frame, again and again."""
    forward = ActionValues.forward
    monkeypatch.setattr(ActionValues, "forward", lambda self, obs: forward(self, obs[:, -1:].expand_as(obs)))


def myopic(monkeypatch):
    """The target is the reward alone."""
    bootstrap = DQN._bootstrap

    def broken(self, batch, next_obs):
        return bootstrap(self, replace(batch, discount=torch.zeros_like(batch.discount)), next_obs)

    monkeypatch.setattr(DQN, "_bootstrap", broken)


def stuck(monkeypatch):
    """The target's value is that of s where it should be that of s'."""
    bootstrap = DQN._bootstrap
    monkeypatch.setattr(DQN, "_bootstrap", lambda self, batch, next_obs: bootstrap(self, batch, batch.obs))


@pytest.mark.parametrize("breaking", [one_frame, myopic, stuck])
def test_a_broken_stack_or_target_does_not_learn_it(breaking, tmp_path, monkeypatch):
    """DrQ's is this class, too."""
    breaking(monkeypatch)
    assert score("dqn", tmp_path) < SOLVED - 0.3
