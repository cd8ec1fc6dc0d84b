"""ConstrainedPEER: CosinePEER's term, and a beta that moves with the cosine, after updates only."""

import math

import pytest
import torch
from torch import Tensor, nn

from peer_rl import ConstrainedPEER, CosinePEER, diagnose
from peer_rl.training.trees import pack, unpack

LOWEST, HIGHEST = 1e-6, 1.0


def pair(cosine: float, rows: int = 4) -> tuple[Tensor, Tensor]:
    """Features of two heads whose cosine is the given one in every row."""
    phi = torch.tensor([1.0, 0.0]).repeat(2, rows, 1).requires_grad_()
    phi_next = torch.tensor([cosine, math.sqrt(1 - cosine**2)]).repeat(2, rows, 1) * 3
    return phi, phi_next


def random_pair(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    phi, phi_next = (torch.randn(3, 6, 5, generator=generator).to(dtype) for _ in range(2))
    phi[0, 0] = 0
    phi_next[1, 1] = 0
    return phi.requires_grad_(), phi_next


def test_the_term_is_cosine_peers() -> None:
    phi, phi_next = random_pair()
    ours, plain = (term(phi, phi_next) for term in (ConstrainedPEER(beta=0.25), CosinePEER(0.25)))
    torch.testing.assert_close(ours, plain, rtol=1e-6, atol=0)
    gradients = (torch.autograd.grad(loss, phi)[0] for loss in (ours, plain))
    torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("cosine", [0.95, 0.5])
def test_beta_rises_above_the_target_and_falls_below_it(cosine: float) -> None:
    regularizer = ConstrainedPEER(target=0.8, rate=0.1, beta=0.01)
    expected = math.log(0.01)
    for _ in range(5):
        regularizer(*pair(cosine))
        metrics = regularizer.adapt()
        assert metrics["beta"].item() == pytest.approx(math.exp(expected), rel=1e-5)  # the one that was used
        assert metrics["cosine"].item() == pytest.approx(cosine)
        expected += 0.1 * (cosine - 0.8)
        assert regularizer.beta == pytest.approx(math.exp(expected), rel=1e-5)
    assert (regularizer.beta > 0.01) == (cosine > 0.8)


@pytest.mark.parametrize(("cosine", "end"), [(1.0, HIGHEST), (0.0, LOWEST)])
def test_beta_stays_within_its_bounds_and_comes_back(cosine: float, end: float) -> None:
    regularizer = ConstrainedPEER(target=0.5, rate=10.0)
    for _ in range(10):
        regularizer(*pair(cosine))
        regularizer.adapt()
    assert regularizer.beta == pytest.approx(end, rel=1e-5)
    regularizer(*pair(1.0 - cosine))
    regularizer.adapt()
    assert regularizer.beta == pytest.approx(end * math.exp(10 * (0.5 - cosine)), rel=1e-4)


def test_the_mean_cosine_is_that_of_the_diagnostics() -> None:
    phi, phi_next = random_pair()
    regularizer = ConstrainedPEER()
    regularizer(phi, phi_next)
    assert regularizer.adapt()["cosine"].item() == pytest.approx(diagnose(phi, phi_next).cosine)


def test_without_a_direction_beta_stays() -> None:
    regularizer = ConstrainedPEER(rate=1.0)
    phi = torch.zeros(4, 3, requires_grad=True)
    loss = regularizer(phi, torch.ones(4, 3))
    assert loss.item() == 0
    assert torch.autograd.grad(loss, phi)[0].isfinite().all()
    before = regularizer.beta
    assert regularizer.adapt()["cosine"].isfinite()
    assert regularizer.beta == before


def test_calls_alone_move_nothing() -> None:
    regularizer = ConstrainedPEER(rate=1.0)
    for cosine in (0.1, 1.0, 0.3):
        regularizer(*pair(cosine))
    assert regularizer.beta == pytest.approx(5e-4)
    with torch.no_grad():
        regularizer(*pair(0.9))
    regularizer.adapt()
    assert regularizer.beta == pytest.approx(5e-4)  # the latest call's cosine, the target, is what counts
    with pytest.raises(RuntimeError, match="comes after an update"):
        regularizer.adapt()


def test_the_state_is_all_that_is_needed() -> None:
    first, second = ConstrainedPEER(rate=0.5), ConstrainedPEER(rate=0.5)
    for _ in range(3):
        first(*pair(0.2))
        first.adapt()
    second.load_state_dict(unpack(pack(first.state_dict())))
    for regularizer in (first, second):
        regularizer(*pair(0.99))
        regularizer.adapt()
    assert pack(first.state_dict()) == pack(second.state_dict())


def test_a_network_comes_to_the_target() -> None:
    torch.manual_seed(0)
    x, x_next, y = torch.randn(64, 4), torch.randn(64, 4), torch.randn(64, 1)
    body, head = nn.Sequential(nn.Linear(4, 32), nn.ReLU()), nn.Linear(32, 1)
    target = nn.Sequential(nn.Linear(4, 32), nn.ReLU())
    target.load_state_dict(body.state_dict())
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], 3e-3)
    regularizer = ConstrainedPEER(target=0.3, rate=0.1)
    cosines = []
    for _ in range(600):
        with torch.no_grad():
            phi_next = target(x_next)
        phi = body(x)
        loss = (head(phi) - y).square().mean() + regularizer(phi, phi_next)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        cosines.append(regularizer.adapt()["cosine"].item())
    assert cosines[0] > 0.4
    assert sum(cosines[-100:]) / 100 == pytest.approx(0.3, abs=0.02)


def test_bad_settings_are_refused() -> None:
    for arguments, message in {
        (1.5,): "target must be a cosine",
        (math.nan,): "target must be a cosine",
        (0.9, -1.0): "rate must be finite",
        (0.9, math.inf): "rate must be finite",
    }.items():
        with pytest.raises(ValueError, match=message):
            ConstrainedPEER(*arguments)
    for beta in (0.0, 2.0):
        with pytest.raises(ValueError, match=r"beta must begin within \[1e-06, 1\]"):
            ConstrainedPEER(beta=beta)
    regularizer = ConstrainedPEER()
    regularizer.beta = 0.5
    assert regularizer.beta == pytest.approx(0.5)
    assert repr(regularizer) == "ConstrainedPEER(target=0.9, rate=0.001, beta=0.5)"


def test_half_precision_does_not_overflow() -> None:
    phi = torch.ones(512, 256, dtype=torch.float16)
    assert ConstrainedPEER(beta=0.5)(phi.requires_grad_(), 2 * phi.detach()).item() == pytest.approx(256)
