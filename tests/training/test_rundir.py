"""What a run directory contains about its run."""

import pytest

from peer_rl.cli.train import read_options
from peer_rl.settings import configure
from peer_rl.training.rundir import command_of


@pytest.mark.parametrize("default", [False, True])
def test_the_command_in_the_manifest_is_one_that_trains_this_run(more_settings, default):
    """Law 8; switches are written without a value, whichever way they stand by default."""
    more_settings("gym", {"learning.clip_rewards": default, "settings.critic.layer_norm": default}, agents=["td3"])
    changes = {"clip_rewards": not default, "critic.layer_norm": not default, "critic.hidden": (16, 8)}
    config = configure("td3", "gym/Pendulum-v1", seed=3, beta=0.0, steps=700, **changes)
    command = command_of(config)
    assert command[:2] == ["peer-rl", "train"]
    assert read_options(command[2:])[0].run == config
