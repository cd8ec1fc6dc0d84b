"""Noisy layers, distributions of returns and their projection, against plain versions."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from networks_plain import plain_projection

from peer_rl.networks.distributional import DistributionalValues, project
from peer_rl.networks.noisy import NoisyLinear
from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.rainbow import RainbowConfig

SMALL = RainbowConfig(hidden=6, atoms=5, encoder=EncoderConfig(channels=(3, 4), kernels=(5, 2), strides=(2, 2)))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_noisy_layer_is_two_plain_ones():
    layer = NoisyLinear(7, 4, 0.5, generator())
    with torch.no_grad():
        layer.weight_sigma.uniform_(generator=generator(1))
        layer.bias_sigma.uniform_(generator=generator(2))
    noise, x = layer.draw(generator(3)), torch.randn(9, 7, generator=generator(4))
    wanted = torch.empty(9, 4)
    for row in range(9):
        for out in range(4):
            total = layer.bias[out] + layer.bias_sigma[out] * noise.outputs[out]
            for into in range(7):
                weight = layer.weight[out, into]
                weight = weight + layer.weight_sigma[out, into] * noise.inputs[into] * noise.outputs[out]
                total = total + weight * x[row, into]
            wanted[row, out] = total
    torch.testing.assert_close(layer(x, noise), wanted)
    torch.testing.assert_close(layer(x, None), x @ layer.weight.T + layer.bias)


def test_noise_is_the_signed_root_of_normal_draws():
    layer = NoisyLinear(30_000, 10_000, 0.1, generator())
    noise = layer.draw(generator(5))
    x = torch.randn(40_000, generator=generator(5))
    both = torch.cat(noise)
    torch.testing.assert_close(both, x.sign() * x.abs().sqrt())
    assert both.mean().abs() < 0.02
    assert both.square().mean().item() == pytest.approx(math.sqrt(2 / math.pi), abs=0.02)  # E|x|


def test_noisy_layers_begin_as_the_paper_says():
    layer = NoisyLinear(400, 25, 0.1, generator())
    assert layer.weight.abs().max() <= 1 / 20
    assert layer.weight.abs().max() > 0.99 / 20
    assert torch.all(layer.weight_sigma == torch.tensor(0.1 / 20))
    assert torch.all(layer.bias_sigma == torch.tensor(0.1 / 5))


@given(
    seed=st.integers(0, 1000),
    atoms=st.integers(2, 9),
    rewards=st.lists(st.floats(-30, 30), min_size=1, max_size=5),
    discount=st.sampled_from([0.0, 0.5, 0.99, 1.0]),
)
def test_the_projection_is_the_papers_algorithm(seed, atoms, rewards, discount):
    support = torch.linspace(-10, 10, atoms)
    probabilities = torch.rand(len(rewards), atoms, generator=generator(seed)).softmax(-1)
    reward, factor = torch.tensor(rewards), torch.full((len(rewards),), discount)
    found = project(probabilities, support, reward, factor)
    wanted = plain_projection(probabilities, support, reward, factor)
    torch.testing.assert_close(found.double(), wanted, atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(found.sum(-1), torch.ones(len(rewards)), atol=2e-5, rtol=0)


def test_the_projection_keeps_the_mean_inside_the_support():
    support = torch.linspace(-10, 10, 51)
    probabilities = torch.randn(64, 51, generator=generator()).softmax(-1)
    reward = torch.rand(64, generator=generator(1)) - 0.5
    found = project(probabilities, support, reward, torch.full((64,), 0.9))
    torch.testing.assert_close(found @ support, reward + 0.9 * (probabilities @ support), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("observation", [(2, 13, 13), (7,)])
@pytest.mark.parametrize("noisy", [False, True])
def test_streams_meet_as_dueling_says_and_head_of_phi_is_logits(observation, noisy):
    critic = DistributionalValues(observation, 3, SMALL, generator())
    if len(observation) == 3:
        obs = torch.randint(255, (4, *observation), generator=generator(1)).to(torch.uint8)
        x = (obs.float() / 255).double()
        for layer, stride in zip(critic.encoder.layers, SMALL.encoder.strides, strict=True):
            x = torch.conv2d(x, layer.weight.double(), layer.bias.double(), stride).clamp(min=0)
        x = x.flatten(1)
    else:
        obs = torch.randn(4, *observation, generator=generator(1))
        x = obs.double()
    noises = critic.draw(generator(2)) if noisy else None

    def plain(layer, x, index):
        weight, bias = layer.weight, layer.bias
        if noises:
            inputs, outputs = noises[index]
            weight = weight + layer.weight_sigma * outputs[:, None] * inputs[None]
            bias = bias + layer.bias_sigma * outputs
        return x @ weight.double().T + bias.double()

    of_value = plain(critic.hidden[0], x, 0).clamp(min=0)
    of_advantage = plain(critic.hidden[1], x, 1).clamp(min=0)
    value, advantage = plain(critic.value, of_value, 2), plain(critic.advantage, of_advantage, 3).view(4, 3, 5)
    logits = value[:, None] + advantage - advantage.mean(1, keepdim=True)
    output = critic(obs, noises)
    torch.testing.assert_close(output.phi.double(), torch.cat([of_value, of_advantage], -1), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(output.logits.double(), logits, atol=1e-5, rtol=1e-5)
    q = (logits.exp() / logits.exp().sum(-1, keepdim=True) * torch.linspace(-10, 10, 5)).sum(-1)
    torch.testing.assert_close(output.q.double(), q, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(critic.head(output.phi, noises), output.logits)
    if output.conv is not None:
        torch.testing.assert_close(output.conv.double(), x, atol=1e-6, rtol=1e-5)
