"""Taps and checks on recent critic architectures: the features are found and PEER's value is the one by hand."""

import copy
from collections.abc import Callable

import pytest
import torch
from critic_styles import ACTION, DIM, OBS, ROWS, CrossQ, Five, Lazy, OfOne, SimBa, SimNorm, Transformer, mlp
from torch import Tensor, nn

from peer_rl import CosinePEER, RepresentationTap, check_critic, peer_loss

STYLES: dict[str, tuple[Callable[[], nn.Module], tuple[str, ...], bool]] = {
    "transformer": (Transformer, ("head",), True),  # LayerNorm at the end
    "SimBa": (SimBa, ("head",), True),
    "SimNorm": (lambda: OfOne(mlp(last=SimNorm)), ("network.4",), False),
    "CrossQ": (CrossQ, ("network.4",), False),
    "lazy": (Lazy, ("network.2",), False),
    "five in a list": (Five, tuple(f"critics.{i}.4" for i in range(5)), False),
    "five stacked": (lambda: Five(torch.stack), tuple(f"critics.{i}.4" for i in range(5)), False),
    "five concatenated": (lambda: Five(lambda q: torch.cat(q, -1)), tuple(f"critics.{i}.4" for i in range(5)), False),
}


def inputs(seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(ROWS, OBS, generator=generator), torch.randn(ROWS, ACTION, generator=generator)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("style", STYLES)
def test_phi_is_found_and_regularized(style: str) -> None:
    make, heads, signed = STYLES[style]
    critic = make()
    check = check_critic(critic, *inputs(0))
    assert (check.heads, check.feature_dim, check.signed) == (heads, DIM, signed)
    assert check.is_linear
    assert check.is_ensemble
    target = copy.deepcopy(critic)
    assert check_critic(critic, *inputs(0), target=target).target
    tap, target_tap = RepresentationTap(critic), RepresentationTap(target)
    with torch.no_grad():
        target(*inputs(1))
    critic(*inputs(0))
    phi, phi_next = tap.phi, target_tap.phi
    assert phi.shape == ((5, ROWS, DIM) if len(heads) == 5 else (ROWS, DIM))
    loss = CosinePEER(0.3)(phi, phi_next) if signed else peer_loss(phi, phi_next, 0.3)
    torch.testing.assert_close(loss, 0.3 * (phi * phi_next).sum() / ROWS)
    loss.backward()
    trained = {name for name, parameter in critic.named_parameters() if parameter.grad is not None}
    assert trained == {name for name, _ in critic.named_parameters() if name.rpartition(".")[0] not in heads}


def test_crossqs_joint_pass_gives_both_features() -> None:
    critic = CrossQ()
    tap = RepresentationTap(critic)
    (obs, action), (obs_next, action_next) = inputs(0), inputs(1)
    critic(torch.cat([obs, obs_next]), torch.cat([action, action_next]))
    phi, phi_next = tap.phi.chunk(2)
    loss = peer_loss(phi, phi_next.detach(), 0.5)
    hidden = critic.network[:4](torch.cat([torch.cat([obs, obs_next]), torch.cat([action, action_next])], 1))
    torch.testing.assert_close(loss, 0.5 * (hidden[:ROWS] * hidden[ROWS:]).sum() / ROWS)


def test_bfloat16_autocast() -> None:
    critic = OfOne(mlp())
    with torch.autocast("cpu", torch.bfloat16):
        assert check_critic(critic, *inputs(0)).safe
        tap = RepresentationTap(critic)
        critic(*inputs(0))
        phi = tap.phi
        assert phi.dtype == torch.bfloat16
        phi_next = torch.rand(ROWS, DIM).bfloat16()
        loss = peer_loss(phi, phi_next, 0.5)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, 0.5 * (phi.float() * phi_next.float()).sum() / ROWS)
    loss.backward()
    assert critic.network[0].weight.grad.abs().sum() > 0
