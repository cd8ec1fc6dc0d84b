"""How long a run of TD-MPC takes, told before it starts: whole windows, the burst of updates, plans of full length."""

import pytest
import torch

from peer_rl.envs.spec import EnvSpec
from peer_rl.launch import cost as costs
from peer_rl.launch.random_batches import random_sequences
from peer_rl.settings import configure

pytestmark = pytest.mark.filterwarnings("ignore:phi has negative entries")
STATE = EnvSpec((3,), "float32", action_shape=(2,), action_low=(-1.0,) * 2, action_high=(1.0,) * 2)
FRAMES = EnvSpec((6, 8, 8), "uint8", stack=2, action_shape=(2,), action_low=(-1.0,) * 2, action_high=(1.0,) * 2)


@pytest.mark.parametrize("spec", [STATE, FRAMES], ids=["state", "frames"])
def test_random_windows_are_whole_and_of_the_runs_size(spec):
    learning = configure("td-mpc", "dmc/cartpole-swingup", profile="smoke", batch_size=7).learning
    batch = random_sequences(spec, learning, torch.device("cpu"))
    assert batch.obs.shape == (learning.sequence_length + 1, 7, *spec.observation_shape)
    assert batch.mask.all()


def test_the_first_round_of_updates_is_counted():
    config = configure("td-mpc", "dmc/cartpole-swingup")
    cost = costs.count_cost(config, 0, update_seconds=1.0, step_seconds=0.0)
    assert cost.updates == 62_500 - 5_000 + 5_000
    assert costs.count_cost(config, 10_000, update_seconds=1.0, step_seconds=0.0).updates == 52_500


def test_a_run_that_plans_gets_an_estimate_from_state_too():
    small = {"batch_size": 8, "hidden": 8, "latent": 4, "planner.samples": 8, "planner.elites": 2}
    told = costs.expected_time(configure("td-mpc", "dmc/cartpole-swingup", profile="smoke", **small))
    assert told.startswith("about ")
    assert "s an update" in told
    assert costs.expected_time(configure("sac", "dmc/cartpole-swingup", profile="smoke")) == ""
