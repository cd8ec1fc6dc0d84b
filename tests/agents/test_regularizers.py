"""Every regularizer, and one of the user's, with every agent for continuous actions."""

import pytest
import torch
from continuous import CONTINUOUS, agent_with, batch_of, stream, weights_of

from peer_rl.plugin import NAMES

OURS = sorted(set(NAMES) - {"none"})


def after_updates(agent) -> list[torch.Tensor]:
    rng = stream()
    for index in range(4):
        metrics = agent.update(batch_of(seed=index), index=index, rng=rng).metrics
        assert all(torch.isfinite(value) for value in metrics.values())
        for parameter in agent.critic.parameters():
            assert torch.isfinite(parameter.grad).all()
    return weights_of(agent.critic)


@pytest.mark.parametrize("name", [*OURS, "toy_envs:mean_inner_product"])
@pytest.mark.parametrize("agent", CONTINUOUS)
def test_it_goes_into_the_critics_loss(agent, name):
    small = {"policy_every": 2}
    plain = after_updates(agent_with(agent, beta=0.0, **small))
    regularized = after_updates(agent_with(agent, name, 1.0, **small))
    for one, other in zip(plain[:-1], regularized[:-1], strict=True):
        assert not torch.equal(one, other)  # every layer below the head's bias, which no feature depends on
    heads = plain[0].flatten(1).ne(regularized[0].flatten(1)).any(1)
    assert heads.all()


@pytest.mark.parametrize("agent", CONTINUOUS)
def test_a_function_of_the_user_equals_ours_of_the_same_formula(agent):
    ours = after_updates(agent_with(agent, "peer", 0.3))
    theirs = after_updates(agent_with(agent, "toy_envs:mean_inner_product", 0.3))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)
