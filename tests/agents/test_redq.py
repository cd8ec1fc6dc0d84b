"""REDQ: N heads learn, M give the target, PEER pairs all N; against the equations written out."""

import pytest
import torch
from continuous import agent_with, batch_of, moved, stream, weights_of
from plain_agents import PlainREDQ, PlainSAC, assert_same, assert_same_gradients

from peer_rl.plugin import PEER

HEADS, DRAWN = 5, 2
SETTINGS = {
    "heads": HEADS,
    "target_heads": DRAWN,
    "policy_every": 2,
    "actor_learning_rate": 1e-2,
    "critic_learning_rate": 1e-2,
    "initial_temperature": 0.4,
    "tau": 0.2,
}


def recording(agent) -> list[list[int]]:
    """The heads of every draw."""
    drawn, draw = [], agent.draw_heads

    def recorded(rng):
        chosen = draw(rng)
        drawn.append(chosen.tolist())
        return chosen

    agent.draw_heads = recorded
    return drawn


@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_updates_equal_the_equations_written_out(beta):
    agent = agent_with("redq", beta=beta, target_every=1, **SETTINGS)
    drawn, rng, same = recording(agent), stream(), stream()
    plain = PlainREDQ(agent, beta, heads=HEADS)
    for index in range(6):
        batch = batch_of(seed=index)
        before = weights_of(agent.critic)
        metrics = agent.update(batch, index=index, rng=rng).metrics
        due = index % 2 == 1
        draws = [torch.randn(16, 2, generator=same.torch) for _ in range(1 + due)]
        losses = plain.update(batch, draws[0], draws[1] if due else None, index, chosen=drawn[-1])
        assert set(metrics) == {*losses, "q"}
        for name, loss in losses.items():
            assert metrics[name].item() == pytest.approx(loss.item(), rel=1e-5, abs=1e-5), name
        assert_same_gradients(agent.critic, plain.critic)
        for name in ("actor", "critic", "target_critic"):
            assert_same(getattr(agent, name), getattr(plain, name))
        for old, new in zip(before, agent.critic.parameters(), strict=True):  # every head learns every time
            assert (old != new).flatten(1).any(1).all()


def test_m_different_heads_are_drawn_for_each_update_and_all_get_their_turn():
    agent, rng = agent_with("redq", **SETTINGS), stream()
    drawn = [agent.draw_heads(rng).tolist() for _ in range(300)]
    assert all(len(set(heads)) == DRAWN for heads in drawn)
    counts = [sum(head in heads for heads in drawn) / 300 for head in range(HEADS)]
    assert counts == pytest.approx([DRAWN / HEADS] * HEADS, abs=0.1)


def target_heads(agent) -> list[int]:
    """How many target heads each pass evaluates, and over how many rows phi is given."""
    passes: list[int] = []
    agent.target_critic.register_forward_hook(lambda module, inputs, output: passes.append(output.q.shape[0]))
    return passes


def test_the_plain_agent_evaluates_m_target_heads_and_learns_what_all_n_would_teach():
    plain, whole = agent_with("redq", beta=0.0, **SETTINGS), agent_with("redq", PEER(0.0), **SETTINGS)
    few, many = target_heads(plain), target_heads(whole)
    rngs = stream(), stream()
    for index in range(4):
        first, second = (
            agent.update(batch_of(seed=index), index=index, rng=rng).metrics
            for agent, rng in zip((plain, whole), rngs, strict=True)
        )
        for name in first:
            torch.testing.assert_close(first[name], second[name])
    assert few == [DRAWN] * 4
    assert many == [HEADS] * 4
    for one, other in zip(weights_of(plain.actor, plain.critic), weights_of(whole.actor, whole.critic), strict=True):
        torch.testing.assert_close(one, other)
    assert torch.equal(rngs[0].torch.get_state(), rngs[1].torch.get_state())


def test_peer_needs_all_n_target_heads_and_pairs_each_with_its_own():
    agent, batch = agent_with("redq", **SETTINGS), batch_of()
    passes = target_heads(agent)
    td = agent.temporal_difference(batch, stream())
    assert passes == [HEADS]
    assert td.features.phi.shape == td.features.phi_next.shape == (HEADS, 16, 5)
    whole = (td.features.phi * td.features.phi_next).sum(-1).mean(-1)  # (N,)
    torch.testing.assert_close(agent.regularizer(td.features), 0.1 * whole.sum())
    crossed = (td.features.phi * td.features.phi_next.roll(1, 0)).sum(-1).mean(-1)
    assert 0.1 * crossed.sum().item() != pytest.approx(agent.regularizer(td.features).item(), rel=1e-2)


def test_diagnostics_see_all_heads_of_the_plain_agent_too():
    agent = agent_with("redq", beta=0.0, **SETTINGS)
    assert agent.temporal_difference(batch_of(), stream()).features.phi.shape[0] == HEADS


def test_the_actor_climbs_the_mean_of_all_heads():
    agent, obs = agent_with("redq", **SETTINGS), batch_of().obs
    noise = torch.randn(16, 2, generator=torch.Generator().manual_seed(0))
    action, log_prob = agent.actor.sample(obs, noise)
    q = agent.critic(obs, action).q
    loss = (0.4 * log_prob - sum(q) / HEADS).mean()
    torch.testing.assert_close(agent.actor_loss(obs, noise)[0], loss)
    mean_action = torch.tanh(agent.actor(obs)[0])
    torch.testing.assert_close(agent.value(obs.numpy()), agent.critic(obs, mean_action).q.mean(0).detach())


def test_the_actor_waits_for_its_turn_and_the_targets_do_not():
    agent = agent_with("redq", **{**SETTINGS, "policy_every": 20})
    actor, target = weights_of(agent.actor), weights_of(agent.target_critic)
    for index in range(19):
        agent.update(batch_of(), index=index, rng=stream())
    assert not moved(actor, agent.actor)
    assert moved(target, agent.target_critic)
    agent.update(batch_of(), index=19, rng=stream())
    assert moved(actor, agent.actor)


def test_the_actor_reads_the_critics_before_their_step():
    """The order of SAC's updates, critics first, gives another actor."""
    rates = {"policy_every": 1, "critic_learning_rate": 0.1}

    def weights(plain_kind) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        agent = agent_with("redq", beta=0.1, **{**SETTINGS, **rates})
        plain = plain_kind(agent)
        drawn, rng, same = recording(agent), stream(), stream()
        for index in range(3):
            agent.update(batch_of(seed=index), index=index, rng=rng)
            draws = [torch.randn(16, 2, generator=same.torch) for _ in range(2)]
            plain.update(batch_of(seed=index), *draws, index, chosen=drawn[-1])
        return weights_of(agent.actor), [plain.actor[name].detach() for name, _ in agent.actor.named_parameters()]

    ours, authors = weights(lambda agent: PlainREDQ(agent, 0.1, heads=HEADS))
    _, sacs = weights(lambda agent: PlainSAC(agent, 0.1, heads=HEADS, average=True))
    for mine, wanted in zip(ours, authors, strict=True):
        torch.testing.assert_close(mine.double(), wanted, rtol=1e-4, atol=1e-5)
    assert any((mine.double() - other).abs().max() > 1e-3 for mine, other in zip(ours, sacs, strict=True))
