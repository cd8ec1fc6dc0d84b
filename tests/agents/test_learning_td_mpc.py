"""TD-MPC learns, through the real trainer, a task that broken dynamics or a broken planner cannot."""

import pytest

from peer_rl.agents import td_mpc
from peer_rl.launch.api import load, train
from peer_rl.networks.latent_model import LatentModel
from peer_rl.settings import configure

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:phi has negative entries")]

SETTINGS = {
    "steps": 1_200,
    "beta": 5e-4,
    "learning.start_steps": 600,
    "learning.pretrain": 300,
    "learning.batch_size": 64,
    "learning.gamma": 0.95,
    "learning.sequence_length": 3,
    "settings.planning_discount": 0.95,
    "settings.learning_rate": 3e-3,
    "settings.tau": 0.05,
    "settings.latent": 16,
    "settings.encoder_hidden": 32,
    "settings.hidden": 32,
    "settings.schedule_steps": 600,
    "settings.planner.horizon": 2,
    "settings.planner.samples": 48,
    "settings.planner.elites": 8,
    "settings.planner.iterations": 3,
    "protocol.eval_every": 0,
    "protocol.diagnose_every": 0,
}
SOLVED = 0.9  # of 1.2, see toy_envs.Bait


def score(runs) -> float:
    return load(train(configure("td-mpc", "toy_envs:bait", **SETTINGS), runs=runs)).evaluate(episodes=20).mean


def test_learns_to_leave_the_bait(tmp_path):
    assert score(tmp_path) > SOLVED


def standstill(monkeypatch):
    """The model predicts that nothing changes."""
    step = LatentModel.step
    monkeypatch.setattr(LatentModel, "step", lambda self, z, action: z + 0.0 * step(self, z, action))


def worst(monkeypatch):
    """The planner keeps the worst sequences."""
    search = td_mpc.plan
    monkeypatch.setattr(
        td_mpc, "plan", lambda values, *rest, **more: search(lambda actions: -values(actions), *rest, **more)
    )


@pytest.mark.parametrize("breaking", [standstill, worst])
def test_a_broken_model_or_planner_does_not_learn_it(breaking, tmp_path, monkeypatch):
    breaking(monkeypatch)
    assert score(tmp_path) < SOLVED - 0.5
