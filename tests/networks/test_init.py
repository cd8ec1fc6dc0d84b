"""Initial weights against their definitions, and whose generator they come from."""

import math

import pytest
import torch
from scipy import stats

from peer_rl.networks.mlp import DeterministicActor, EnsembleCritic, linear
from peer_rl.settings.networks import ActorConfig, CriticConfig

INPUTS, OUTPUTS = 60, 40


def layer_with(weight: str, bias: str = "uniform", seed: int = 0):
    shape = CriticConfig(weight_init=weight, bias_init=bias)
    return linear(INPUTS, OUTPUTS, shape, torch.Generator().manual_seed(seed))


def is_uniform(values: torch.Tensor, bound: float) -> bool:
    """Kolmogorov and Smirnov's test of U(-bound, bound), and that the bounds are nearly reached."""
    flat = values.detach().flatten().numpy()
    near = abs(flat).max() > bound * (1 - 10 / len(flat))
    return (
        bool(abs(flat).max() <= bound) and near and stats.kstest(flat, stats.uniform(-bound, 2 * bound).cdf)[1] > 0.01
    )


def test_uniform_is_pytorchs_own():
    layer, bound = layer_with("uniform"), 1 / math.sqrt(INPUTS)
    assert is_uniform(layer.weight, bound)
    assert is_uniform(layer.bias, bound)
    theirs = torch.nn.Linear(INPUTS, OUTPUTS)
    assert is_uniform(theirs.weight, bound)
    assert not is_uniform(theirs.weight, 1.5 * bound)


def test_xavier_is_uniform_with_the_bound_of_glorot_and_bengio():
    assert is_uniform(layer_with("xavier").weight, math.sqrt(6 / (INPUTS + OUTPUTS)))


def test_orthogonal_has_orthonormal_rows():
    weight = layer_with("orthogonal").weight.detach()
    torch.testing.assert_close(weight @ weight.T, torch.eye(OUTPUTS), atol=1e-5, rtol=0)
    tall = linear(OUTPUTS, INPUTS, CriticConfig(weight_init="orthogonal"), torch.Generator()).weight.detach()
    torch.testing.assert_close(tall.T @ tall, torch.eye(OUTPUTS), atol=1e-5, rtol=0)


@pytest.mark.parametrize("weight", ["uniform", "xavier", "orthogonal"])
def test_biases_are_zero_or_uniform_whatever_the_weights(weight):
    assert (layer_with(weight, "zero").bias == 0).all()
    assert is_uniform(layer_with(weight, "uniform").bias, 1 / math.sqrt(INPUTS))


@pytest.mark.parametrize("weight", ["uniform", "xavier", "orthogonal"])
def test_every_layer_of_every_head_is_drawn_anew_and_by_its_definition(weight):
    shape = CriticConfig(hidden=(30, 20), weight_init=weight)
    critic = EnsembleCritic(3, 12, shape, torch.Generator().manual_seed(0))
    for layer in (*critic.layers, critic.head):
        inputs, outputs = layer.weight.shape[1:]
        for head in range(3):
            one = layer.weight[head].detach().T
            if weight == "orthogonal":
                small = one @ one.T if outputs <= inputs else one.T @ one
                torch.testing.assert_close(small, torch.eye(min(outputs, inputs)), atol=1e-5, rtol=0)
            else:
                bound = math.sqrt(6 / (inputs + outputs)) if weight == "xavier" else 1 / math.sqrt(inputs)
                assert bound * 0.8 < one.abs().max().item() <= bound
            assert not torch.equal(one, layer.weight[head - 1].T)
            assert not torch.equal(layer.bias[head], layer.bias[head - 1])


def test_weights_come_from_the_given_generator_alone():
    def actor(seed: int) -> list[torch.Tensor]:
        rng = torch.Generator().manual_seed(seed)
        return list(DeterministicActor(3, 2, ActorConfig(hidden=(8, 5)), rng).parameters())

    torch.manual_seed(1)
    first, state = actor(0), torch.get_rng_state()
    torch.manual_seed(2)
    assert all(torch.equal(a, b) for a, b in zip(first, actor(0), strict=True))
    torch.manual_seed(1)
    actor(0)
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(torch.equal(a, b) for a, b in zip(first, actor(1), strict=True))
