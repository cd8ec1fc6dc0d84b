"""TD3 against its equations written out head by head (tests/plain_agents.py)."""

import numpy as np
import pytest
import torch
from continuous import CPU, SPEC, agent_with, batch_of, moved, stream, weights_of
from plain_agents import PlainTD3, assert_same, assert_same_gradients

from peer_rl.agents.make import make_agent
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.plugin import PEER
from peer_rl.replay.store import Batch
from peer_rl.settings.td3 import TD3Config

ROUGH = {"smoothing_noise": 1.0, "smoothing_clip": 0.7, "actor_learning_rate": 1e-2, "critic_learning_rate": 1e-2}
"""Noise that is often clipped, at 0.7 and at the actions' bounds; steps that a wrong gradient shows in."""


def draw(rng, batch: Batch) -> torch.Tensor:
    return torch.randn(batch.action.shape, generator=rng.torch)


@pytest.mark.parametrize("beta", [0.0, 0.1])
@pytest.mark.parametrize("policy_every", [1, 2, 3])
def test_updates_equal_the_equations_written_out(beta, policy_every):
    agent = agent_with("td3", beta=beta, policy_every=policy_every, tau=0.2, **ROUGH)
    plain, rng, same = PlainTD3(agent, beta), stream(), stream()
    for index in range(7):
        batch = batch_of(seed=index)
        metrics = agent.update(batch, index=index, rng=rng).metrics
        losses = plain.update(batch, draw(same, batch), index)
        assert set(metrics) == {*losses, "q"}
        for name, loss in losses.items():
            assert metrics[name].item() == pytest.approx(loss.item(), rel=1e-5, abs=1e-5), name
        assert_same_gradients(agent.critic, plain.critic)
        for name in ("actor", "critic", "target_actor", "target_critic"):
            assert_same(getattr(agent, name), getattr(plain, name))
        if "actor_loss" in losses:
            assert_same_gradients(agent.actor, plain.actor)


def test_head_i_meets_target_head_i():
    """With the pairs crossed, the term and its gradient are others."""
    agent, batch = agent_with("td3", **ROUGH), batch_of()
    found = agent.update(batch, index=0, rng=stream()).metrics["regularizer"].item()
    right, crossed = (
        PlainTD3(agent_with("td3", **ROUGH), 0.1, pairing=pairing).update(batch, draw(stream(), batch), 0)
        for pairing in ((0, 1), (1, 0))
    )
    assert found == pytest.approx(right["regularizer"].item(), rel=1e-5)
    assert found != pytest.approx(crossed["regularizer"].item(), rel=1e-2)


def test_the_smoothing_noise_is_clipped_and_so_is_the_action():
    """The batch of the tests above does reach both bounds."""
    agent, batch = agent_with("td3", **ROUGH), batch_of()
    noise = draw(stream(), batch)
    assert (noise.abs() > 0.7).any()
    assert ((agent.target_actor(batch.next_obs) + noise.clamp(-0.7, 0.7)).abs() > 1).any()
    seen = []
    agent.target_critic.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[1]))
    agent.update(batch, index=0, rng=stream())
    expected = (agent.target_actor(batch.next_obs) + noise.clamp(-0.7, 0.7)).clamp(-1, 1)
    torch.testing.assert_close(seen, [expected])


def test_y_and_phi_come_from_one_pass_over_the_target():
    """One call, so one a': the features that PEER sees are those of the value in y."""
    agent, batch, calls = agent_with("td3", **ROUGH), batch_of(), []
    agent.target_critic.register_forward_hook(lambda module, inputs, output: calls.append(output))
    td = agent.temporal_difference(batch, stream())
    assert len(calls) == 1
    assert td.features.phi_next is calls[0].phi
    y = batch.reward + batch.discount * torch.minimum(*calls[0].q)
    expected = ((agent.critic(batch.obs, batch.action).q - y) ** 2).mean(1).sum()
    torch.testing.assert_close(td.loss, expected)


def test_dr3_reads_the_online_features_at_the_very_same_next_action():
    agent, batch, actions = agent_with("td3", "dr3", **ROUGH), batch_of(), []
    for critic in (agent.critic, agent.target_critic):
        critic.register_forward_pre_hook(lambda module, inputs: actions.append(inputs[1]))
    td = agent.temporal_difference(batch, stream())
    of_target, of_online, again = actions
    torch.testing.assert_close(of_target, again)
    assert of_online is batch.action
    torch.testing.assert_close(td.features.phi_next_online, agent.critic(batch.next_obs, of_target).phi)


def test_terminal_rows_do_not_bootstrap_but_stay_in_the_peer_term():
    agent, batch = agent_with("td3"), batch_of()
    end = Batch(batch.obs, batch.action, batch.reward, torch.zeros(16), batch.next_obs)
    td = agent.temporal_difference(end, stream())
    q = agent.critic(batch.obs, batch.action).q
    torch.testing.assert_close(td.loss, ((q - batch.reward) ** 2).mean(1).sum())
    phi, phi_next = td.features.phi, td.features.phi_next
    torch.testing.assert_close(agent.regularizer(td.features), 0.1 * (phi * phi_next).sum(-1).mean(-1).sum())
    assert (phi_next > 0).any()


def test_nothing_flows_into_the_targets_nor_from_the_actors_loss_into_the_critic():
    agent, batch = agent_with("td3", policy_every=1, tau=0.25), batch_of()
    before = weights_of(agent.target_actor, agent.target_critic)
    agent.update(batch, index=0, rng=stream())
    new = [*agent.target_actor.parameters(), *agent.target_critic.parameters()]
    online = [*agent.actor.parameters(), *agent.critic.parameters()]
    for old, target, source in zip(before, new, online, strict=True):
        assert target.grad is None
        torch.testing.assert_close(target, 0.75 * old + 0.25 * source)
    assert all(parameter.requires_grad for parameter in agent.critic.parameters())
    alone, delayed = agent_with("td3", policy_every=1), agent_with("td3", policy_every=2)
    for one in (alone, delayed):  # the critic's step is the same whether or not the actor takes one after it
        one.update(batch, index=0, rng=stream())
    assert all(torch.equal(a, b) for a, b in zip(weights_of(alone.critic), weights_of(delayed.critic), strict=True))
    assert moved(weights_of(alone.actor), delayed.actor)


def test_the_actor_climbs_the_first_critic_alone():
    agent, batch = agent_with("td3", beta=0.0, policy_every=1), batch_of()
    other = agent_with("td3", beta=0.0, policy_every=1)
    with torch.no_grad():
        for parameter in other.critic.parameters():
            parameter[1].mul_(-3.0)
    obs = batch.obs
    assert agent.actor_loss(obs).item() == other.actor_loss(obs).item()
    with torch.no_grad():
        for parameter in other.critic.parameters():
            parameter[0].mul_(-3.0)
    assert agent.actor_loss(obs).item() != other.actor_loss(obs).item()


@pytest.mark.parametrize("policy_every", [1, 2, 3])
def test_actor_and_targets_move_every_dth_update_by_its_index(policy_every):
    agent = agent_with("td3", policy_every=policy_every)
    for index in range(100, 107):
        names = ("critic", "actor", "target_actor", "target_critic")
        before = {name: weights_of(getattr(agent, name)) for name in names}
        agent.update(batch_of(), index=index, rng=stream())
        due = (index + 1) % policy_every == 0
        for name in names:
            assert moved(before[name], getattr(agent, name)) == (due or name == "critic"), name


def test_exploration_noise_has_its_size_and_stays_in_range():
    agent = agent_with("td3", exploration_noise=0.3)
    obs, first = np.zeros((4_000, 3), np.float32), np.zeros(4_000, bool)
    greedy = agent.act(obs, first=first, explore=False, rng=stream())
    torch.testing.assert_close(torch.from_numpy(greedy), agent.actor(torch.from_numpy(obs)).detach())
    noisy = agent.act(obs, first=first, explore=True, rng=stream())
    assert noisy.dtype == np.float32
    assert np.std(noisy - greedy) == pytest.approx(0.3, rel=0.05)
    loud = agent_with("td3", exploration_noise=5.0).act(obs, first=first, explore=True, rng=stream())
    assert loud.min() == -1.0
    assert loud.max() == 1.0


def test_value_is_the_lower_critics_of_the_policys_action():
    agent, obs = agent_with("td3"), batch_of().obs
    q = agent.critic(obs, agent.actor(obs)).q
    torch.testing.assert_close(agent.value(obs.numpy()), torch.minimum(*q).detach())


def test_frames_are_refused():
    pixels = EnvSpec((3, 8, 8), "uint8", action_shape=(1,), action_low=(-1.0,), action_high=(1.0,))
    with pytest.raises(ConfigError, match="td3 reads vectors"):
        make_agent("td3", TD3Config(), pixels, regularizer=PEER(), rng=stream(), device=CPU)
    make_agent("td3", TD3Config(), SPEC, regularizer=PEER(), rng=stream(), device=CPU)
