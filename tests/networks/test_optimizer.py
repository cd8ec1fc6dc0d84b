"""Our Adam against torch's."""

import pytest
import torch

from peer_rl.networks.optimizer import Adam
from peer_rl.training.trees import pack, unpack


def two_layers(seed: int = 0) -> torch.nn.Sequential:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 2))


def test_it_takes_torchs_steps():
    mine, theirs = two_layers(), two_layers()
    ours, reference = Adam(mine.parameters(), 3e-3), torch.optim.Adam(theirs.parameters(), 3e-3, fused=True)
    for seed in range(20):
        x = torch.randn(9, 5, generator=torch.Generator().manual_seed(seed))
        ours.minimise(mine(x).square().mean())
        reference.zero_grad()
        theirs(x).square().mean().backward()
        reference.step()
        for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
            assert torch.equal(one, other)
            assert torch.equal(one.grad, other.grad)


def test_a_gradient_in_another_layout_is_not_misread():
    weight = torch.nn.Parameter(torch.randn(3, 4))
    wanted = torch.randn(4, 3)
    Adam([weight], 0.5).minimise((weight.T * wanted).sum())
    torch.testing.assert_close(torch.sign(weight.grad), torch.sign(wanted.T))
    before = weight.detach().clone()
    step = Adam([weight], 0.5)
    step.minimise((weight.T * wanted).sum())
    torch.testing.assert_close(before - weight.detach(), 0.5 * torch.sign(wanted.T), rtol=1e-4, atol=1e-4)


def test_convolutions_in_channels_last_take_torchs_steps():
    def network():
        torch.manual_seed(0)
        return torch.nn.Conv2d(3, 4, 2).to(memory_format=torch.channels_last)

    mine, theirs = network(), network()
    ours, reference = Adam(mine.parameters(), 3e-3, epsilon=1e-4), torch.optim.Adam(theirs.parameters(), 3e-3, eps=1e-4)
    for seed in range(5):
        x = torch.randn(9, 3, 5, 5, generator=torch.Generator().manual_seed(seed))
        ours.minimise(mine(x).square().mean())
        reference.zero_grad()
        theirs(x).square().mean().backward()
        reference.step()
    torch.testing.assert_close(mine.weight, theirs.weight)


def test_gradients_are_clipped_as_torch_clips_them():
    mine, theirs = two_layers(), two_layers()
    ours, reference = Adam(mine.parameters(), 3e-3, max_gradient_norm=0.1), torch.optim.Adam(theirs.parameters(), 3e-3)
    for scale in (1e-3, 1.0, 100.0):
        ours.minimise(scale * mine(torch.ones(4, 5)).square().mean())
        reference.zero_grad()
        (scale * theirs(torch.ones(4, 5)).square().mean()).backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.1)
        reference.step()
        for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(one.grad, other.grad)
            torch.testing.assert_close(one, other)


def test_other_parameters_on_the_way_are_left_alone():
    first, second = two_layers()[0], two_layers(1)[2]
    Adam(first.parameters(), 0.1).minimise(second(first(torch.ones(1, 5)).relu()).sum())
    assert second.weight.grad is None
    assert first.weight.grad is not None


def test_a_restored_state_takes_the_same_next_step():
    mine, again = two_layers(), two_layers()
    ours = Adam(mine.parameters(), 1e-2)
    for _ in range(3):
        ours.minimise(mine(torch.ones(4, 5)).square().mean())
    again.load_state_dict(mine.state_dict())
    restored = Adam(again.parameters(), 1e-2)
    restored.load_state_dict(unpack(pack(ours.state_dict())))
    for network, optimizer in ((mine, ours), (again, restored)):
        optimizer.minimise(network(torch.ones(4, 5)).square().mean())
    assert all(torch.equal(one, other) for one, other in zip(mine.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize(("decoupled", "torchs"), [(False, torch.optim.Adam), (True, torch.optim.AdamW)])
def test_decays_are_torchs(decoupled, torchs):
    mine, theirs = two_layers(), two_layers()
    ours = Adam(mine.parameters(), 3e-3, beta1=0.5, weight_decay=0.1, decoupled=decoupled)
    reference = torchs(theirs.parameters(), 3e-3, betas=(0.5, 0.999), weight_decay=0.1, fused=True)
    for seed in range(5):
        x = torch.randn(9, 5, generator=torch.Generator().manual_seed(seed))
        ours.descend(torch.autograd.grad(mine(x).square().mean(), list(mine.parameters())))
        reference.zero_grad()
        theirs(x).square().mean().backward()
        reference.step()
    assert all(torch.equal(one, other) for one, other in zip(mine.parameters(), theirs.parameters(), strict=True))
