"""SAC against its equations written out (tests/plain_agents.py), its policy against torch.distributions."""

import math

import numpy as np
import pytest
import torch
from continuous import agent_with, batch_of, moved, stream, weights_of
from plain_agents import PlainSAC, assert_same, assert_same_gradients
from torch.distributions import Independent, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from peer_rl.networks.gaussian import GaussianActor
from peer_rl.replay.store import Batch
from peer_rl.settings.networks import ActorConfig

LEARNING = {
    "actor_learning_rate": 1e-2,
    "critic_learning_rate": 1e-2,
    "temperature_learning_rate": 3e-2,
    "initial_temperature": 0.4,
    "tau": 0.2,
}
BOUNDS = [{"log_std_low": -0.4, "log_std_high": 0.1, "log_std_by": "clip"}]
BOUNDS += [{"log_std_low": -5.0, "log_std_high": 2.0, "log_std_by": "tanh"}]


@pytest.mark.parametrize("beta", [0.0, 0.1])
@pytest.mark.parametrize("every", [(1, 1), (2, 3)], ids=["each update", "policy 2, target 3"])
@pytest.mark.parametrize("bounds", BOUNDS, ids=["clip", "tanh"])
def test_updates_equal_the_equations_written_out(beta, every, bounds):
    policy_every, target_every = every
    agent = agent_with("sac", beta=beta, policy_every=policy_every, target_every=target_every, **LEARNING, **bounds)
    plain, rng, same = PlainSAC(agent, beta), stream(), stream()
    for index in range(7):
        batch = batch_of(seed=index)
        metrics = agent.update(batch, index=index, rng=rng).metrics
        due = (index + 1) % policy_every == 0
        draws = [torch.randn(16, 2, generator=same.torch) for _ in range(1 + due)]
        losses = plain.update(batch, draws[0], draws[1] if due else None, index)
        assert set(metrics) == {*losses, "q"}
        for name, loss in losses.items():
            assert metrics[name].item() == pytest.approx(loss.item(), rel=1e-5, abs=1e-5), name
        assert_same_gradients(agent.critic, plain.critic)
        for name in ("actor", "critic", "target_critic"):
            assert_same(getattr(agent, name), getattr(plain, name))
        assert agent.log_temperature.item() == pytest.approx(plain.log_alpha.item(), abs=1e-5)
        if due:
            assert_same_gradients(agent.actor, plain.actor)
            assert agent.log_temperature.grad.item() == pytest.approx(plain.log_alpha.grad.item(), abs=1e-5)


def test_some_log_standard_deviations_are_clipped_in_the_test_above():
    agent = agent_with("sac", **BOUNDS[0])
    log_std = agent.actor(batch_of().obs)[1]
    assert (log_std == -0.4).any()
    assert (log_std == 0.1).any()


@pytest.mark.parametrize("scale", [1.0, 5.0])
@pytest.mark.parametrize("log_std_by", ["clip", "tanh"])
def test_the_log_probability_is_that_of_a_squashed_gaussian(scale, log_std_by):
    rng = torch.Generator().manual_seed(0)
    actor = GaussianActor(3, 2, ActorConfig(hidden=(8, 5)), rng, log_std=(-3.0, 1.0), log_std_by=log_std_by).double()
    obs, noise = torch.randn(50, 3, generator=rng).double(), scale * torch.randn(50, 2, generator=rng).double()
    mean, log_std = actor(obs)
    gaussian = Normal(mean, log_std.exp())
    squashed = Independent(TransformedDistribution(gaussian, [TanhTransform(cache_size=1)]), 1)
    expected = squashed.base_dist.transforms[0](mean + log_std.exp() * noise)  # remembers what it squashed
    action, log_prob = actor.sample(obs, noise)
    torch.testing.assert_close(action, expected)
    torch.testing.assert_close(log_prob, squashed.log_prob(expected))


def test_the_log_probability_stays_finite_and_right_where_tanh_saturates():
    actor = GaussianActor(1, 1, ActorConfig(hidden=(2,)), torch.Generator(), log_std=(-20.0, 2.0), log_std_by="clip")
    with torch.no_grad():
        for parameter in actor.parameters():
            parameter.zero_()
        actor.head.bias[0] = 30.0  # a = tanh(30), which float32 rounds to 1
    action, log_prob = actor.sample(torch.zeros(1, 1), torch.zeros(1, 1))
    log_prob.sum().backward()
    exact = -0.5 * math.log(2 * math.pi) - (2 * math.log(2) - 60.0)  # 1 - tanh(u)^2 = 4 exp(-2u) for a large u
    assert action.item() == 1.0
    assert log_prob.item() == pytest.approx(exact, rel=1e-6)
    assert actor.head.bias.grad[0].item() == pytest.approx(2.0, rel=1e-6)


def test_tanh_and_clip_keep_the_logarithm_within_its_bounds():
    obs = 1e3 * torch.randn(200, 3, generator=torch.Generator().manual_seed(1))
    for way, middle in (("clip", 0.0), ("tanh", -1.5)):
        rng = torch.Generator().manual_seed(0)
        actor = GaussianActor(3, 2, ActorConfig(hidden=(8, 5)), rng, log_std=(-5.0, 2.0), log_std_by=way)
        log_std = actor(obs)[1]
        assert log_std.min().item() == -5.0
        assert log_std.max().item() == 2.0
        with torch.no_grad():
            actor.head.weight.zero_()
            actor.head.bias.zero_()
        assert actor(obs)[1].unique().item() == middle


def test_the_temperature_rises_where_entropy_is_too_low_and_falls_where_it_is_too_high():
    for target_entropy, rises in ((50.0, True), (-50.0, False)):
        agent = agent_with("sac", target_entropy=target_entropy)
        before = agent.log_temperature.item()
        agent.update(batch_of(), index=0, rng=stream())
        assert (agent.log_temperature.item() > before) == rises
        agent.update(batch_of(), index=1, rng=stream())
        assert agent.log_temperature.grad.shape == ()


def test_target_entropy_is_minus_the_number_of_action_units_unless_said():
    assert agent_with("sac").target_entropy == -2.0
    assert agent_with("sac", target_entropy=0.0).target_entropy == 0.0
    assert agent_with("sac", initial_temperature=0.1).log_temperature.item() == pytest.approx(math.log(0.1))


def test_terminal_rows_bootstrap_neither_value_nor_entropy():
    agent, batch = agent_with("sac", initial_temperature=3.0), batch_of()
    end = Batch(batch.obs, batch.action, batch.reward, torch.zeros(16), batch.next_obs)
    q = agent.critic(batch.obs, batch.action).q
    loss = agent.temporal_difference(end, stream()).loss
    torch.testing.assert_close(loss, ((q - batch.reward) ** 2).mean(1).sum())


def test_nothing_flows_into_targets_temperature_or_from_the_actor_into_the_critic():
    agent, batch = agent_with("sac", policy_every=2), batch_of()
    actor, log_temperature = weights_of(agent.actor), agent.log_temperature.item()
    agent.update(batch, index=0, rng=stream())
    assert not moved(actor, agent.actor)
    assert agent.log_temperature.grad is None
    assert agent.log_temperature.item() == log_temperature
    assert all(parameter.grad is None for parameter in agent.target_critic.parameters())
    with_policy, without = agent_with("sac", policy_every=1), agent_with("sac", policy_every=2)
    for one in (with_policy, without):
        one.update(batch, index=0, rng=stream())
    assert not moved(weights_of(with_policy.critic, with_policy.target_critic), without.critic, without.target_critic)
    assert moved(weights_of(with_policy.actor), without.actor)
    assert all(parameter.requires_grad for parameter in with_policy.critic.parameters())


def test_acting_samples_the_policy_and_evaluating_takes_its_mean():
    agent = agent_with("sac")
    obs, first = np.zeros((4_000, 3), np.float32), np.zeros(4_000, bool)
    mean, log_std = (each[0].detach() for each in agent.actor(torch.from_numpy(obs)))
    greedy = agent.act(obs, first=first, explore=False, rng=stream())
    torch.testing.assert_close(torch.from_numpy(greedy[0]), torch.tanh(mean))
    drawn = torch.atanh(torch.from_numpy(agent.act(obs, first=first, explore=True, rng=stream())).double())
    torch.testing.assert_close(drawn.mean(0), mean.double(), atol=0.06, rtol=0)
    torch.testing.assert_close(drawn.std(0), log_std.double().exp(), atol=0, rtol=0.06)


def test_value_is_the_lower_critics_of_the_mean_action():
    agent, obs = agent_with("sac"), batch_of().obs
    q = agent.critic(obs, torch.tanh(agent.actor(obs)[0])).q
    torch.testing.assert_close(agent.value(obs.numpy()), torch.minimum(*q).detach())
