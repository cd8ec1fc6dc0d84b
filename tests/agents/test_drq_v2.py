"""DrQ-v2 against its equations written out (tests/plain_pixels.py)."""

import numpy as np
import pytest
import torch
from continuous_pixels import agent_with, batch_of, stream
from plain_pixels import PlainDrQv2, shifts

LEARNING = {"actor_learning_rate": 3e-3, "critic_learning_rate": 3e-3, "tau": 0.2}
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
NEAR = {"rtol": 1e-4, "atol": 2e-4}  # Adam's first steps divide a small gradient by itself; a step is 3e-3


@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_updates_equal_the_equations_written_out(beta):
    agent = agent_with("drq-v2", beta=beta, **LEARNING)
    plain, rng, same = PlainDrQv2(agent, beta), stream(), stream().torch
    for index in range(4):
        batch = batch_of(seed=index)
        metrics = agent.update(batch, index=index, rng=rng).metrics
        losses = plain.update(batch, 0.6, same)
        assert set(metrics) == {*losses, "q"}
        for name, loss in losses.items():
            assert metrics[name].item() == pytest.approx(loss.item(), rel=1e-3, abs=1e-3), (name, index)
        for name in ("encoder", "actor", "critic", "target_critic"):
            for part, parameter in getattr(agent, name).named_parameters():
                wanted = getattr(plain, name)[part].detach()
                torch.testing.assert_close(parameter.detach().double(), wanted, **NEAR)


def test_losses_and_gradients_are_the_equations():
    agent = agent_with("drq-v2", smoothing_clip=0.4)
    with torch.no_grad():
        agent.actor.policy.head.bias.copy_(torch.tensor([1.5, -1.5]))  # so that some actions are cut off
    plain, batch, rng, same = PlainDrQv2(agent, 0.1), batch_of(), stream(), stream().torch
    td = agent.temporal_difference(batch, rng)
    regularizer = agent.regularizer(td.features)
    obs, next_obs = (shifts(x, 2, same) for x in (batch.obs, batch.next_obs))
    noise = (0.6 * torch.randn(12, 2, generator=same).double()).clamp(-0.4, 0.4)
    wanted, peer = plain.critic_losses(batch, obs, next_obs, noise)
    torch.testing.assert_close(td.loss.double(), wanted, **CLOSE)
    torch.testing.assert_close(regularizer.double(), peer, **CLOSE)
    found = torch.autograd.grad(td.loss + regularizer, agent.critic_parameters())
    for one, other in zip(found, torch.autograd.grad(wanted + peer, plain.of_critic), strict=True):
        torch.testing.assert_close(one.double(), other, **CLOSE)
    code = plain.code(obs).detach()
    assert ((plain.policy(code) + noise).abs() > 1).any()
    loss = agent.actor_loss(code.float(), noise.float())
    expected, gradients = plain.actor_gradients(code, noise)
    torch.testing.assert_close(loss.double(), expected, **CLOSE)
    for one, other in zip(torch.autograd.grad(loss, list(agent.actor.parameters())), gradients, strict=True):
        torch.testing.assert_close(one.double(), other, **CLOSE)


def test_the_actors_loss_moves_no_convolution_and_targets_take_no_gradient():
    agent = agent_with("drq-v2")
    convolutions = {id(parameter) for parameter in agent.encoder.parameters()}
    assert not convolutions & {id(parameter) for parameter in agent.actor_optimizer.parameters}
    seen, loss = [], agent.actor_loss
    agent.actor_loss = lambda code, noise: seen.append(code) or loss(code, noise)
    agent.update(batch_of(), index=0, rng=stream())
    assert not seen[0].requires_grad
    assert all(parameter.grad is None for parameter in agent.target_critic.parameters())
    assert not agent.temporal_difference(batch_of(), stream()).features.phi_next.requires_grad
    assert not [name for name, _ in agent.target_critic.named_modules() if "encoder" in name]


def test_noise_falls_over_acting_steps_and_evaluation_has_none():
    agent, rng = agent_with("drq-v2", noise_start=1.0, noise_final=0.2, noise_steps=4), stream()
    obs, first = batch_of().obs.numpy(), np.zeros(12, bool)
    mean = agent.actor(agent.encoder(torch.from_numpy(obs) / 255 - 0.5)).detach()
    np.testing.assert_allclose(agent.act(obs, first=first, explore=False, rng=rng), mean, rtol=1e-5, atol=1e-6)
    assert torch.equal(rng.torch.get_state(), stream().torch.get_state())
    same = stream().torch
    for std in (1.0, 0.8, 0.6, 0.4, 0.2, 0.2):
        assert agent.noise_now() == pytest.approx(std)
        found = agent.act(obs, first=first, explore=True, rng=rng)
        wanted = (mean + std * torch.randn(12, 2, generator=same)).clamp(-1, 1)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert agent.state_dict()["explored"] == 6


class ActorFirst(PlainDrQv2):
    """The actor reads the critics before their step."""

    def steps(self, critics, actor, target) -> None:
        actor()
        critics()
        target()


class TargetFirst(PlainDrQv2):
    """The targets follow before the critics' step."""

    def steps(self, critics, actor, target) -> None:
        target()
        critics()
        actor()


class NewCode(PlainDrQv2):
    """The actor reads the code of the encoder after its step."""

    def code_for_actor(self, obs):
        return self.code(obs).detach()


@pytest.mark.parametrize("kind", [PlainDrQv2, ActorFirst, TargetFirst, NewCode])
def test_updates_come_in_the_authors_order(kind):
    """Critics and encoder, then the actor on the code from before, then the targets; any other order shows."""
    rates = {"actor_learning_rate": 3e-3, "critic_learning_rate": 3e-2, "tau": 0.5}
    agent = agent_with("drq-v2", beta=0.1, **rates)
    plain, rng, same = kind(agent, 0.1), stream(), stream().torch
    for index in range(2):
        agent.update(batch_of(seed=index), index=index, rng=rng)
        plain.update(batch_of(seed=index), 0.6, same)
    furthest = max(
        (parameter.detach().double() - getattr(plain, name)[part].detach()).abs().max().item()
        for name in ("actor", "target_critic")
        for part, parameter in getattr(agent, name).named_parameters()
    )
    assert furthest < 1e-4 if kind is PlainDrQv2 else furthest > 1e-3
