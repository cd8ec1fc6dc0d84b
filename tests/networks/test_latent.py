"""Latents, and actors and critics on them, written out; delta-orthogonal convolutions."""

import torch

from peer_rl.networks.encoders import ConvEncoder
from peer_rl.networks.latent import Latent, LatentCritic
from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.networks import CriticConfig


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_delta_orthogonal_convolutions_are_orthogonal_at_the_centre_and_zero_elsewhere():
    shape = EncoderConfig(channels=(32, 32), kernels=(3, 5), strides=(2, 1), weight_init="delta-orthogonal")
    encoder = ConvEncoder((9, 21, 21), shape, generator())
    for layer, centre in zip(encoder.layers, (1, 2), strict=True):
        weight = layer.weight.detach()
        tap = weight[:, :, centre, centre]
        torch.testing.assert_close(tap.T @ tap, 2 * torch.eye(tap.shape[1]), atol=1e-5, rtol=0)
        assert weight.count_nonzero() == tap.count_nonzero()
        assert not layer.bias.any()


def test_a_latent_is_linear_then_normalised_then_perhaps_squashed():
    x = torch.randn(6, 11, generator=generator(1))
    for tanh in (False, True):
        latent = Latent(11, 5, CriticConfig(), generator(), tanh=tanh)
        before = x.double() @ latent.linear.weight.double().T + latent.linear.bias.double()
        centred = before - before.mean(1, keepdim=True)
        wanted = centred / (centred.square().mean(1, keepdim=True) + 1e-5).sqrt()
        torch.testing.assert_close(latent(x).double(), wanted.tanh() if tanh else wanted, rtol=1e-5, atol=1e-5)


def test_the_head_of_phi_is_q_and_both_critics_read_one_latent():
    critic = LatentCritic(Latent(11, 5, CriticConfig(), generator(), tanh=True), 2, CriticConfig((8, 6)), generator())
    code, action = torch.randn(4, 11, generator=generator(1)), torch.rand(4, 2, generator=generator(2))
    output = critic(code, action)
    assert (output.q.shape, output.phi.shape) == ((2, 4), (2, 4, 6))
    assert (output.phi >= 0).all()
    torch.testing.assert_close(critic.head(output.phi), output.q)
    for head in range(2):
        x = torch.cat([critic.latent(code), action], 1)
        for layer in critic.heads.layers:
            x = (x @ layer.weight[head] + layer.bias[head]).clamp(min=0)
        torch.testing.assert_close(x, output.phi[head])
