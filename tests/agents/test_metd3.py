"""METD3: the mask, against TD3's equations written out with it."""

import pytest
import torch
from continuous import agent_with, batch_of, stream
from plain_agents import PlainTD3, assert_same, assert_same_gradients

from peer_rl.plugin import PEER

LEARNING = {"actor_learning_rate": 1e-2, "critic_learning_rate": 1e-2, "tau": 0.2, "dropout": 0.4}


def recording(agent) -> list[torch.Tensor]:
    """Every mask that the agent draws."""
    masks, draw = [], agent.draw_mask

    def drawn(rows, rng):
        masks.append(draw(rows, rng))
        return masks[-1]

    agent.draw_mask = drawn
    return masks


@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_updates_equal_the_equations_with_one_mask_for_each_critic_and_its_target(beta):
    agent = agent_with("metd3", beta=beta, **LEARNING)
    masks, plain, rng, same = recording(agent), PlainTD3(agent, beta), stream(), stream()
    for index in range(6):
        batch = batch_of(seed=index)
        metrics = agent.update(batch, index=index, rng=rng).metrics
        noise = torch.randn(batch.action.shape, generator=same.torch)
        torch.empty(2, 16, 5).bernoulli_(0.6, generator=same.torch)  # the mask's own draw, on the same stream
        for name, loss in plain.update(batch, noise, index, masks[-1].double()).items():
            assert metrics[name].item() == pytest.approx(loss.item(), rel=1e-5, abs=1e-5), name
        assert_same_gradients(agent.critic, plain.critic)
        for name in ("actor", "critic", "target_actor", "target_critic"):
            assert_same(getattr(agent, name), getattr(plain, name))
    assert len(masks) == 6


def test_a_mask_is_0_or_the_inverse_of_what_is_kept_new_for_each_head_row_and_update():
    agent, rng = agent_with("metd3", dropout=0.25), stream()
    mask = agent.draw_mask(2_000, rng)
    assert mask.shape == (2, 2_000, 5)
    assert sorted(mask.unique().tolist()) == pytest.approx([0.0, 1 / 0.75])
    assert (mask == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)
    assert mask.mean().item() == pytest.approx(1.0, abs=0.03)
    assert not torch.equal(mask[0], mask[1])
    assert not torch.equal(mask[:, 0], mask[:, 1])
    assert not torch.equal(mask, agent.draw_mask(2_000, rng))


def test_the_mask_is_in_both_critics_passes_and_nowhere_else():
    agent, batch, passes = agent_with("metd3", "dr3", policy_every=1), batch_of(), []
    masks = recording(agent)
    for name in ("critic", "target_critic"):
        getattr(agent, name).register_forward_pre_hook(
            lambda module, inputs, options, name=name: passes.append((name, options.get("mask"))), with_kwargs=True
        )
    agent.update(batch, index=0, rng=stream())
    target, online, again, actor = passes
    assert [target[0], online[0], again[0], actor[0]] == ["target_critic", "critic", "critic", "critic"]
    assert target[1] is online[1] is again[1] is masks[0]
    assert actor[1] is None
    passes.clear()
    agent.value(batch.obs.numpy())
    assert passes == [("critic", None)]


def test_the_mask_comes_before_the_relu_and_leaves_zeros_in_phi():
    agent, batch = agent_with("metd3", dropout=0.5), batch_of()
    masks = recording(agent)
    features = agent.temporal_difference(batch, stream()).features
    whole = agent.critic(batch.obs, batch.action).phi
    torch.testing.assert_close(features.phi, whole * masks[0])  # a mask is never negative, so it passes the ReLU
    assert torch.equal(features.phi_next == 0, (masks[0] == 0) | (features.phi_next == 0))


def test_without_dropout_it_is_td3():
    """Bit for bit, up to the mask's own draws: one update each."""
    td3, metd3 = agent_with("td3", PEER(0.1)), agent_with("metd3", PEER(0.1), dropout=0.0)
    for agent in (td3, metd3):
        agent.update(batch_of(), index=1, rng=stream())
    for name in ("actor", "critic", "target_actor", "target_critic"):
        pairs = zip(getattr(td3, name).parameters(), getattr(metd3, name).parameters(), strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)
