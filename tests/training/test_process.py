"""While something trains, subnormal numbers are zero; afterwards torch computes as it did before."""

from contextlib import suppress

import pytest
import torch
from running import final, tiny_run

from peer_rl.networks.optimizer import Adam
from peer_rl.training.process import processor

SMALLEST_NORMAL = torch.finfo(torch.float32).tiny
x86_or_arm = pytest.mark.skipif(not torch.set_flush_denormal(False), reason="this processor cannot flush to zero")


def subnormal(numbers: torch.Tensor) -> torch.Tensor:
    """Which of them are, seen in their bits: a comparison might itself take them for zero."""
    bits = numbers.view(torch.int32) & 0x7FFFFFFF
    return (bits > 0) & (bits < 0x00800000)


def half() -> float:
    """Half the smallest normal number, as torch computes it now."""
    return torch.full((), SMALLEST_NORMAL).mul(0.5).item()


def mean_after_one_gradient(updates: int) -> torch.Tensor:
    """Adam's mean when one gradient was one and all later ones were zero."""
    weights = torch.ones(64)
    adam = Adam([weights], 1e-3)
    for index in range(updates):
        adam.descend([torch.full_like(weights, float(index == 0))])
    return adam.means[0]


@x86_or_arm
def test_a_mean_of_zero_gradients_ends_at_zero() -> None:
    assert subnormal(mean_after_one_gradient(2_000)).all()  # without: there for good
    with processor(threads=1):
        assert mean_after_one_gradient(2_000).view(torch.int32).eq(0).all()


@x86_or_arm
@pytest.mark.parametrize("before", [False, True])
def test_afterwards_all_is_as_it_was(before: bool) -> None:
    threads = torch.get_num_threads()
    torch.set_flush_denormal(before)
    try:
        as_it_was = half()
        with suppress(KeyError), processor(threads + 1):  # whatever ended it
            assert torch.get_num_threads() == threads + 1
            assert half() == 0
            raise KeyError
        assert torch.get_num_threads() == threads
        assert half() == as_it_was
        assert (as_it_was == 0) is before
    finally:
        torch.set_flush_denormal(False)


@x86_or_arm
def test_no_subnormal_number_is_in_a_run(tmp_path) -> None:
    agent = final(tiny_run("dqn", tmp_path, steps=2_500)).components["agent"]
    assert half() > 0
    moments = [*agent["optimizer"]["means"].values(), *agent["optimizer"]["squares"].values()]
    assert any((moment == 0).any() for moment in moments)  # there are gradients that stayed zero
    assert not any(subnormal(moment).any() for moment in moments)
