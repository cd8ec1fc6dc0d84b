"""A user's environment that breaks Gymnasium's API is one sentence at the call that breaks it."""

import numpy as np
import pytest
from toy_envs import Choice

from peer_rl.envs.checked import Checked
from peer_rl.envs.make import make_env, spec_of
from peer_rl.errors import ConfigError, RunError
from peer_rl.settings.tasks import find_task

OBS = np.zeros(2, np.float32)


class Broken(Choice):
    """Returns what it is given."""

    def __init__(self, reset=(OBS, {}), step=(OBS, 1.0, False, False, {})):
        super().__init__()
        self.from_reset, self.from_step = reset, step

    def reset(self, *, seed=None, options=None):
        return self.from_reset

    def step(self, action):
        if self.from_step is SystemExit:
            raise SystemExit(0)
        return self.from_step


@pytest.mark.parametrize("found", [None, OBS, (OBS, 1.0, False, {}), (OBS, 1.0, False, False, {}, 0)])
def test_step_returns_five_values(found):
    with pytest.raises(ConfigError, match="step must return"):
        Checked(Broken(step=found), "mine").step(0)


@pytest.mark.parametrize(
    ("place", "values", "words"),
    [
        (1, (None, "1", np.ones(2), 1j, 10**400), "a number as the reward"),
        (2, (None, "no", np.array([True, False]), 0.5), "True or False"),
        (3, (None, []), "True or False"),
        (4, (None, 3), "a dict as info"),
    ],
)
def test_reward_flags_and_info_have_their_types(place, values, words):
    for value in values:
        step = [OBS, 1.0, False, False, {}]
        step[place] = value
        with pytest.raises(ConfigError, match=words):
            Checked(Broken(step=tuple(step)), "mine").step(0)


@pytest.mark.parametrize("reward", [1, 1.5, np.float32(2), np.array(3.0), True])
def test_numbers_of_every_kind_are_rewards(reward):
    assert Checked(Broken(step=(OBS, reward, np.False_, True, {})), "mine").step(0)[1] is reward


@pytest.mark.parametrize("found", [None, OBS, (OBS, {}, 0)])
def test_reset_returns_observation_and_info(found):
    with pytest.raises(ConfigError, match="reset must return"):
        Checked(Broken(reset=found), "mine").reset(seed=0)


def test_an_environment_cannot_end_the_process():
    with pytest.raises(RunError, match="step ended the process"):
        Checked(Broken(step=SystemExit), "mine").step(0)


def test_reset_takes_a_seed():
    class Unseeded(Choice):
        def reset(self):
            return OBS, {}

    with pytest.raises(ConfigError, match="seed"):
        Checked(Unseeded(), "mine")


@pytest.mark.parametrize("obs", [[[1.0], [1.0, 2.0]], None, "here", ["a", "b"], {"a": OBS}])
def test_what_is_no_array_of_numbers_is_one_sentence(obs):
    spec = spec_of(make_env(find_task("toy_envs:choice")))
    with pytest.raises(ConfigError, match=r"^obs must"):
        spec.encode(obs)
