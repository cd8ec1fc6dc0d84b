"""Our TD3, SAC and DQN against Stable-Baselines3: same weights, same rows, same noise, same weights afterwards."""

from collections.abc import Iterator

import discrete
import numpy as np
import pytest
import torch
from continuous import agent_with, batch_of, stream
from stable_baselines3 import DQN, SAC, TD3
from stable_baselines3.common.logger import Logger
from torch import Tensor, nn
from toy_envs import FixedBox, FixedDiscrete

ROWS, GAMMA = 16, 0.9
CLOSE = {"rtol": 1e-4, "atol": 1e-6}


def sb3_model(kind, batches, **settings: object):
    """SB3's agent, whose replay gives the rows of each batch in order, one batch an update."""
    settings = {"gamma": GAMMA, "tau": 0.2, "buffer_size": ROWS * len(batches), "device": "cpu", **settings}
    model = kind("MlpPolicy", FixedDiscrete() if kind is DQN else FixedBox(), **settings)
    model.set_logger(Logger(folder=None, output_formats=[]))
    for batch in batches:
        for row in range(ROWS):
            model.replay_buffer.add(
                batch.obs[row].numpy(),
                batch.next_obs[row].numpy(),
                batch.action[row].numpy(),
                batch.reward[row].numpy(),
                batch.discount[row].numpy() == 0,
                [{}],
            )
    due = iter(range(len(batches)))
    model.replay_buffer.sample = lambda size, env=None: model.replay_buffer._get_samples(
        ROWS * next(due) + np.arange(size)
    )
    return model


def linears(network: nn.Module) -> list[nn.Linear]:
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]


def heads_of(ours) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """Weight and bias of each layer, head by head."""
    for head in range(2):
        yield [(layer.weight[head].T, layer.bias[head, 0]) for layer in (*ours.layers, ours.head)]


def pairs(ours, theirs) -> Iterator[tuple[Tensor, Tensor]]:
    """Tensors of our network with the same ones of SB3's."""
    if hasattr(theirs, "q_networks"):
        for head, q in zip(heads_of(ours), theirs.q_networks, strict=True):
            for (weight, bias), layer in zip(head, linears(q), strict=True):
                yield from ((weight, layer.weight), (bias, layer.bias))
        return
    mine = [(layer.weight, layer.bias) for layer in linears(ours)]
    if hasattr(theirs, "log_std"):  # our head gives mean and log standard deviation together
        weight, bias = mine.pop()
        mine += list(zip(weight.chunk(2), bias.chunk(2), strict=True))
    for (weight, bias), layer in zip(mine, linears(theirs), strict=True):
        yield from ((weight, layer.weight), (bias, layer.bias))


def copy_weights(agent, model, names: dict[str, str]) -> None:
    with torch.no_grad():
        for ours, theirs in names.items():
            for source, target in pairs(getattr(agent, ours), getattr(model, theirs)):
                target.copy_(source)


def assert_equal_weights(agent, model, names: dict[str, str]) -> None:
    for ours, theirs in names.items():
        for mine, other in pairs(getattr(agent, ours), getattr(model, theirs)):
            torch.testing.assert_close(mine.detach(), other.detach(), **CLOSE)


TD3_NAMES = {"actor": "actor", "critic": "critic", "target_actor": "actor_target", "target_critic": "critic_target"}


@pytest.mark.parametrize("noise", [0.0, 1.0], ids=["no noise", "shared noise"])
@pytest.mark.parametrize("updates", [1, 2, 5])
def test_td3_learns_what_sb3s_learns(noise, updates, monkeypatch):
    rates = {"actor_learning_rate": 1e-2, "critic_learning_rate": 1e-2}
    agent = agent_with("td3", beta=0.0, tau=0.2, smoothing_noise=noise, smoothing_clip=0.7, **rates)
    batches = [batch_of(ROWS, seed) for seed in range(updates)]
    model = sb3_model(
        TD3,
        batches,
        learning_rate=1e-2,
        target_policy_noise=noise,
        target_noise_clip=0.7,
        policy_kwargs={"net_arch": [8, 5]},
    )
    copy_weights(agent, model, TD3_NAMES)
    rng, same = stream(), stream()
    for index, batch in enumerate(batches):
        agent.update(batch, index=index, rng=rng)

    def shared(tensor: Tensor, mean: float, std: float) -> Tensor:
        return tensor.copy_(mean + std * torch.randn(tensor.shape, generator=same.torch))

    monkeypatch.setattr(Tensor, "normal_", shared)
    model.train(gradient_steps=updates, batch_size=ROWS)
    assert_equal_weights(agent, model, TD3_NAMES)


class Descent(torch.optim.SGD):
    """Plain gradient descent with our optimizers' one method."""

    def minimise(self, loss: Tensor) -> None:
        self.zero_grad()
        loss.backward(inputs=self.param_groups[0]["params"])
        self.step()


SAC_NAMES = {"actor": "actor", "critic": "critic", "target_critic": "critic_target"}


@pytest.mark.parametrize("updates", [1, 4])
def test_sac_learns_what_sb3s_learns(updates, monkeypatch):
    """Plain gradient descent on both sides, so that SB3's 1/2 in the critic's loss shows: we take half its step."""
    rate = 1e-2
    agent = agent_with(
        "sac", beta=0.0, tau=0.2, target_every=1, initial_temperature=0.4, temperature_learning_rate=rate
    )
    agent.actor_optimizer = Descent(agent.actor.parameters(), rate)
    agent.critic_optimizer = Descent(agent.critic.parameters(), rate / 2)
    batches = [batch_of(ROWS, seed) for seed in range(updates)]
    model = sb3_model(
        SAC,
        batches,
        learning_rate=rate,
        ent_coef="auto_0.4",
        policy_kwargs={"net_arch": [8, 5], "optimizer_class": torch.optim.SGD},
    )
    copy_weights(agent, model, SAC_NAMES)
    before = [parameter.clone() for parameter in agent.critic.parameters()]
    rng, same = stream(), stream()
    draws = []  # ours draws for s' first, theirs for s
    for index, batch in enumerate(batches):
        agent.update(batch, index=index, rng=rng)
        draws += reversed([torch.randn(ROWS, 2, generator=same.torch) for _ in range(2)])
    left = iter(draws)
    monkeypatch.setattr(torch.distributions.Normal, "rsample", lambda self: self.loc + self.scale * next(left))
    model.train(gradient_steps=updates, batch_size=ROWS)
    assert next(left, None) is None
    assert_equal_weights(agent, model, SAC_NAMES)
    assert agent.log_temperature.item() == pytest.approx(model.log_ent_coef.item(), abs=1e-6)
    assert agent.target_entropy == model.target_entropy
    steps = [(new - old).abs().max().item() for old, new in zip(before, agent.critic.parameters(), strict=True)]
    assert max(steps) > 1e-3  # far above the tolerance: a factor of two would show


def test_sac_has_twice_the_critic_gradient_of_sb3():
    """The same beta is therefore twice as strong, against the TD loss, in SB3's SAC."""
    agent, batches = agent_with("sac", beta=0.0), [batch_of(ROWS)]
    model = sb3_model(SAC, batches, policy_kwargs={"net_arch": [8, 5]})
    copy_weights(agent, model, SAC_NAMES)
    end = batch_of(ROWS)
    end.discount.zero_()  # y = R: no noise enters
    model.replay_buffer.dones[:] = 1.0
    agent.update(end, index=0, rng=stream())
    model.train(gradient_steps=1, batch_size=ROWS)
    # the actor's loss, which comes later, adds its own gradient to SB3's critic: compare with the optimizer's average
    for head, q in enumerate(model.critic.q_networks):
        for layer, theirs in zip((*agent.critic.layers, agent.critic.head), linears(q), strict=True):
            average = model.critic.optimizer.state[theirs.weight]["exp_avg"] / 0.1
            torch.testing.assert_close(layer.weight.grad[head].T, 2 * average, **CLOSE)


DQN_NAMES = {"critic": "q_net", "target": "q_net_target"}


@pytest.mark.parametrize("updates", [1, 2, 5])
@pytest.mark.parametrize("largest", [0.05, 10.0], ids=["clipped gradients", "whole gradients"])
def test_dqn_learns_what_sb3s_learns(updates, largest):
    agent = discrete.agent_with(
        "dqn",
        discrete.VECTORS,
        beta=0.0,
        loss="huber",
        learning_rate=1e-2,
        max_gradient_norm=largest,
        tau=0.2,
        target_every=2,
    )
    batches = [discrete.batch_of(discrete.VECTORS, ROWS, seed) for seed in range(updates)]
    model = sb3_model(
        DQN,
        batches,
        learning_rate=1e-2,
        max_grad_norm=largest,
        target_update_interval=2,
        policy_kwargs={"net_arch": [8, 5]},
    )
    copy_weights(agent, model, DQN_NAMES)
    before = [parameter.clone() for parameter in agent.critic.parameters()]
    for index, batch in enumerate(batches):
        agent.update(batch, index=index, rng=stream())
        model.train(gradient_steps=1, batch_size=ROWS)
        model._on_step()  # updates the target every second call
    assert_equal_weights(agent, model, DQN_NAMES)
    steps = [(new - old).abs().max().item() for old, new in zip(before, agent.critic.parameters(), strict=True)]
    assert min(steps) > 1e-3
