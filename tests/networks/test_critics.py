"""Ensembles against N separate stacks of torch's own layers."""

import pytest
import torch
from torch import nn

from peer_rl.networks.action_values import ActionValues
from peer_rl.networks.mlp import EnsembleCritic
from peer_rl.settings.networks import CriticConfig

HEADS, INPUTS = 4, 5


def ensemble(**shape: object) -> EnsembleCritic:
    """Biases, scales and shifts are random too: none may be forgotten."""
    rng = torch.Generator().manual_seed(0)
    critic = EnsembleCritic(HEADS, INPUTS, CriticConfig(hidden=(8, 6, 7), **shape), rng)
    shift = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in critic.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=shift))
    return critic


def separate(critic: EnsembleCritic, head: int) -> tuple[nn.Sequential, nn.Linear]:
    """One head as nn.Linear, nn.LayerNorm and nn.ReLU, with its weights."""
    trunk: list[nn.Module] = []
    for index, layer in enumerate(critic.layers):
        trunk.append(_filled(nn.Linear(layer.weight.shape[1], layer.weight.shape[2]), layer, head))
        if critic.norms is not None:
            trunk.append(_filled(nn.LayerNorm(layer.weight.shape[2]), critic.norms[index], head))
        trunk.append(nn.ReLU())
    return nn.Sequential(*trunk), _filled(nn.Linear(critic.head.weight.shape[1], 1), critic.head, head)


@torch.no_grad()
def _filled(layer: nn.Module, source: nn.Module, head: int) -> nn.Module:
    weight = source.weight[head]
    layer.weight.copy_(weight.T if isinstance(layer, nn.Linear) else weight[0])
    layer.bias.copy_(source.bias[head].reshape(layer.bias.shape))
    return layer


@pytest.fixture
def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(2)
    return torch.randn(9, 3, generator=rng), torch.randn(9, 2, generator=rng)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_an_ensemble_is_n_separate_stacks_with_their_gradients(layer_norm, inputs):
    critic = ensemble(layer_norm=layer_norm)
    output = critic(*inputs)
    assert output.q.shape == (HEADS, 9)
    assert output.phi.shape == (HEADS, 9, 7)
    output.q.square().sum().backward()
    for head in range(HEADS):
        trunk, last = separate(critic, head)
        phi = trunk(torch.cat(inputs, -1))
        q = last(phi)
        torch.testing.assert_close(output.phi[head], phi)
        torch.testing.assert_close(output.q[head], q[:, 0])
        q.square().sum().backward()
        for index, layer in enumerate(critic.layers):
            mine = trunk[index * (3 if layer_norm else 2)]
            torch.testing.assert_close(layer.weight.grad[head].T, mine.weight.grad, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(layer.bias.grad[head, 0], mine.bias.grad, rtol=1e-4, atol=1e-5)
            if critic.norms is not None:
                norm, theirs = critic.norms[index], trunk[index * 3 + 1]
                torch.testing.assert_close(norm.weight.grad[head, 0], theirs.weight.grad, rtol=1e-4, atol=1e-5)
                torch.testing.assert_close(norm.bias.grad[head, 0], theirs.bias.grad, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(critic.head.weight.grad[head].T, last.weight.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("heads", [torch.tensor([2, 0]), slice(1), slice(1, 3)], ids=["indices", "first", "middle"])
def test_chosen_heads_are_those_of_the_whole(layer_norm, heads, inputs):
    critic = ensemble(layer_norm=layer_norm)
    whole, some = critic(*inputs), critic(*inputs, heads=heads)
    torch.testing.assert_close(some.q, whole.q[heads])
    torch.testing.assert_close(some.phi, whole.phi[heads])


@pytest.mark.parametrize("layer_norm", [False, True])
def test_the_mask_multiplies_the_last_hidden_layer_alone(layer_norm, inputs):
    """It commutes with the ReLU because it is not negative; a negative one shows that it comes first."""
    critic = ensemble(layer_norm=layer_norm)
    mask = torch.randn(HEADS, 9, 7, generator=torch.Generator().manual_seed(3))
    output = critic(*inputs, mask=mask)
    for head in range(HEADS):
        trunk, last = separate(critic, head)
        phi = torch.relu(trunk[:-1](torch.cat(inputs, -1)) * mask[head])
        torch.testing.assert_close(output.phi[head], phi)
        torch.testing.assert_close(output.q[head], last(phi)[:, 0])


def test_action_values_with_layer_norm_are_torchs_layers_in_a_row():
    critic = ActionValues((3,), 4, CriticConfig(hidden=(8, 6), layer_norm=True), torch.Generator().manual_seed(0))
    layers = [*critic.trunk, *critic.streams[0]]
    assert [type(layer) for layer in layers] == [nn.Linear, nn.LayerNorm, nn.ReLU, nn.Linear, nn.LayerNorm, nn.ReLU]
    obs = torch.randn(9, 3, generator=torch.Generator().manual_seed(1))
    x = obs
    for linear, norm in ((layers[0], layers[1]), (layers[3], layers[4])):
        x = x @ linear.weight.T + linear.bias
        x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
        x = (x * norm.weight + norm.bias).clamp(min=0)
    output = critic(obs)
    torch.testing.assert_close(output.phi, x)
    torch.testing.assert_close(output.q, x @ critic.heads[0].weight.T + critic.heads[0].bias)
    plain = ActionValues((3,), 4, CriticConfig(hidden=(8, 6)), torch.Generator().manual_seed(0))
    assert [type(layer) for layer in (*plain.trunk, *plain.streams[0])] == [nn.Linear, nn.ReLU] * 2
