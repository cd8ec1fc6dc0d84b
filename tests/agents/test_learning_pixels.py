"""Every agent for frames learns, through the real trainer, a task that needs the frame stack and the target."""

import pytest
from breaking import change_batches, show_one_frame, without_bootstrap, without_next_state

from peer_rl.agents.dqn import DQN
from peer_rl.agents.rainbow import Rainbow
from peer_rl.launch.api import load, train
from peer_rl.settings import configure

pytestmark = pytest.mark.slow

SETTINGS = {
    "steps": 1_600,
    "learning.start_steps": 500,
    "learning.batch_size": 32,
    "learning.n_step": 1,
    "learning.gamma": 0.95,
    "settings.learning_rate": 1e-3,
    "settings.encoder.channels": (8, 16),
    "settings.encoder.kernels": (5, 3),
    "settings.encoder.strides": (2, 2),
    "protocol.eval_every": 0,
    "protocol.diagnose_every": 0,
}
_DQN = {"settings.tau": 0.05, "settings.epsilon_steps": 500, "settings.critic.hidden": (64,)}
_RAINBOW = {
    "settings.target_every": 30,
    "settings.hidden": 64,
    "settings.atoms": 21,
    "settings.lowest_return": -2.0,
    "settings.highest_return": 2.0,
    "settings.noise": 0.5,
}
OWN = {
    "dqn": _DQN,
    "drq-dqn": {**_DQN, "settings.shift": 1},
    "rainbow": _RAINBOW,
    "curl-rainbow": {**_RAINBOW, "settings.crop_margin": 1, "settings.contrastive": 0.1},
}
SOLVED = 0.6  # of 0.8, see pixel_envs.Bait; one that cannot see the direction gets 0


def score(agent: str, runs) -> float:
    config = configure(agent, "pixel_envs:bait", **{**SETTINGS, **OWN[agent]})
    return load(train(config, runs=runs)).evaluate(episodes=40).mean


@pytest.mark.parametrize("agent", OWN)
def test_learns_to_name_the_direction_and_to_leave_the_bait(agent, tmp_path):
    assert score(agent, tmp_path) > SOLVED


def myopic(monkeypatch):
    change_batches(monkeypatch, (DQN, Rainbow), "temporal_difference", without_bootstrap)


def stuck(monkeypatch):
    change_batches(monkeypatch, (DQN, Rainbow), "temporal_difference", without_next_state)


@pytest.mark.filterwarnings("ignore:phi_next equals phi")  # which is what stuck does
@pytest.mark.parametrize("breaking", [show_one_frame, myopic, stuck])
@pytest.mark.parametrize("agent", ["dqn", "rainbow"])
def test_a_broken_stack_or_target_does_not_learn_it(agent, breaking, tmp_path, monkeypatch):
    """DrQ's is the first class, CURL's the second."""
    breaking(monkeypatch)
    assert score(agent, tmp_path) < SOLVED - 0.3
