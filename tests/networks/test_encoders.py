"""Convolutions against torch's own and against sums written out; TensorFlow's padding; dueling streams."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from peer_rl.networks.action_values import ActionValues
from peer_rl.networks.encoders import ConvEncoder, as_floats
from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.networks import CriticConfig

ATARI = (4, 84, 84)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def frames_of(*shape: int) -> torch.Tensor:
    return torch.randint(256, shape, generator=generator(1), dtype=torch.uint8)


def test_valid_is_torchs_convolutions_in_a_row_flattened():
    encoder, frames = ConvEncoder(ATARI, EncoderConfig(), generator()), frames_of(5, *ATARI)
    x = frames.double() / 255
    for layer, stride in zip(encoder.layers, (4, 2, 1), strict=True):
        x = F.conv2d(x, layer.weight.double(), layer.bias.double(), stride).clamp(min=0)
    assert x.shape == (5, 64, 7, 7)
    found = encoder(frames)
    assert found.shape == (5, encoder.features) == (5, 3136)
    torch.testing.assert_close(found.double(), x.reshape(5, -1), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(encoder(frames / 255), found)


def test_same_has_tensorflows_sizes():
    """The PEER authors' encoder: 84 -> 21 -> 11 -> 11, 7744 features."""
    encoder, sizes = ConvEncoder(ATARI, EncoderConfig(padding="same"), generator()), []
    for layer in encoder.layers:
        layer.register_forward_hook(lambda module, inputs, output: sizes.append(tuple(output.shape[1:])))
    encoder(frames_of(1, *ATARI))
    assert sizes == [(32, 21, 21), (64, 11, 11), (64, 11, 11)]
    assert encoder.features == 7744


@pytest.mark.parametrize(("kernel", "stride"), [(8, 4), (4, 2), (3, 1), (5, 5), (2, 3)])
@pytest.mark.parametrize("size", [(10, 10), (9, 12)])
def test_same_is_a_sum_over_the_window_with_the_odd_pixel_behind(kernel, stride, size):
    """TensorFlow: ceil(size / stride) outputs, floor(missing / 2) zeros in front."""
    shape = EncoderConfig(channels=(3,), kernels=(kernel,), strides=(stride,), padding="same")
    encoder, frames = ConvEncoder((2, *size), shape, generator()), frames_of(1, 2, *size)
    weight, bias = (one.detach().double().numpy() for one in (encoder.layers[0].weight, encoder.layers[0].bias))
    picture = frames[0].double().numpy() / 255
    outputs = [math.ceil(side / stride) for side in size]
    before = [max(0, (out - 1) * stride + kernel - side) // 2 for out, side in zip(outputs, size, strict=True)]
    expected = np.zeros((3, *outputs))
    for i, j in np.ndindex(*outputs):
        for k, m in np.ndindex(kernel, kernel):
            row, column = i * stride - before[0] + k, j * stride - before[1] + m
            if 0 <= row < size[0] and 0 <= column < size[1]:
                expected[:, i, j] += weight[:, :, k, m] @ picture[:, row, column]
    expected = np.maximum(expected + bias[:, None, None], 0)
    np.testing.assert_allclose(encoder(frames)[0].detach().numpy(), expected.ravel(), rtol=1e-4, atol=1e-5)


def test_frames_and_weights_lie_channels_last():
    encoder = ConvEncoder(ATARI, EncoderConfig(), generator())
    for tensor in (as_floats(frames_of(3, *ATARI)), *(layer.weight for layer in encoder.layers)):
        assert tensor.is_contiguous(memory_format=torch.channels_last)


def test_gradients_are_those_of_torchs_convolutions():
    encoder, frames = ConvEncoder(ATARI, EncoderConfig(), generator()), frames_of(3, *ATARI)
    encoder(frames).square().sum().backward()
    weights = [(layer.weight.detach().clone(), layer.bias.detach().clone()) for layer in encoder.layers]
    copies = [tensor.contiguous().requires_grad_() for pair in weights for tensor in pair]
    x = frames.float() / 255
    for weight, bias, stride in zip(copies[::2], copies[1::2], (4, 2, 1), strict=True):
        x = F.conv2d(x, weight, bias, stride).relu()
    x.square().sum().backward()
    for mine, theirs in zip(encoder.parameters(), copies, strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-4, atol=1e-4)


def test_initial_weights_are_pytorchs_or_orthogonal_with_the_gain_of_relu():
    plain = ConvEncoder(ATARI, EncoderConfig(), generator())
    for layer, inputs in zip(plain.layers, (4 * 64, 32 * 16, 64 * 9), strict=True):
        for values in (layer.weight, layer.bias):
            assert 0.8 * inputs**-0.5 < values.abs().max().item() <= inputs**-0.5
    published = ConvEncoder(ATARI, EncoderConfig(weight_init="orthogonal"), generator())
    for layer in published.layers:
        flat = layer.weight.detach().flatten(1)
        torch.testing.assert_close(flat @ flat.T, 2 * torch.eye(len(flat)), atol=1e-4, rtol=0)
        assert (layer.bias == 0).all()


@pytest.mark.parametrize("encoder", [None, EncoderConfig(channels=(3,), kernels=(3,), strides=(2,))])
def test_dueling_is_value_plus_advantage_minus_its_mean(encoder):
    observation = (2, 9, 9) if encoder else (6,)
    critic = ActionValues(observation, 4, CriticConfig(hidden=(8, 5)), generator(), encoder=encoder, dueling=True)
    obs = frames_of(7, *observation) if encoder else torch.randn(7, 6, generator=generator(2))
    output = critic(obs)
    assert output.phi.shape == (7, 10)
    value = output.phi[:, :5] @ critic.heads[0].weight.T + critic.heads[0].bias
    advantage = output.phi[:, 5:] @ critic.heads[1].weight.T + critic.heads[1].bias
    torch.testing.assert_close(output.q, value + advantage - advantage.sum(1, keepdim=True) / 4)
    bias = critic.heads[0].bias + critic.heads[1].bias - critic.heads[1].bias.mean()
    torch.testing.assert_close(output.phi @ critic.head_weight().T + bias, output.q)
    torch.testing.assert_close(critic.head(output.phi), output.q)
    x = critic.trunk(critic.encoder(obs) if encoder else obs)
    torch.testing.assert_close(output.phi, torch.cat([stream(x) for stream in critic.streams], 1))


def test_peer_reads_phi_or_the_convolutions():
    shape = EncoderConfig(channels=(3,), kernels=(3,), strides=(2,))
    critic = ActionValues((2, 9, 9), 4, CriticConfig(hidden=(5,)), generator(), encoder=shape)
    frames = frames_of(7, 2, 9, 9)
    output = critic(frames)
    assert output.read_by_peer("penultimate") is output.phi
    torch.testing.assert_close(output.read_by_peer("conv"), critic.encoder(frames))
