"""Weights of rows: every term weighs its rows before the mean, and diagnostics leave out rows of weight 0."""

from dataclasses import replace

import pytest
import torch

from peer_rl.plugin import ConstrainedPEER, Features, make
from peer_rl.plugin.diagnostics import diagnose_features

pytestmark = pytest.mark.filterwarnings("ignore:phi has negative entries")
TERMS = ["peer", "cosine-peer", "feature-norm", "dr3", "beer", "auto"]
GAMMA = 0.9


def features(weight: torch.Tensor | None, rows: int = 6) -> Features:
    rng = torch.Generator().manual_seed(0)
    phi, phi_next, online = torch.randn(3, 2, rows, 4, generator=rng, dtype=torch.float64)
    phi_next = phi + 0.3 * phi_next
    return Features(
        phi.requires_grad_(),
        phi_next,
        phi_next_online=online,
        head_weight=torch.randn(2, 1, 4, generator=rng, dtype=torch.float64),
        reward=5 * torch.randn(rows, generator=rng, dtype=torch.float64),
        discount=torch.full((rows,), GAMMA, dtype=torch.float64),
        weight=weight,
    )


def term(name: str):
    return ConstrainedPEER(beta=0.1) if name == "auto" else make(name, 0.1)


def one_row(given: Features, row: int) -> Features:
    rows = {name: getattr(given, name)[row : row + 1] for name in ("reward", "discount")}
    parts = {name: getattr(given, name)[:, row : row + 1] for name in ("phi", "phi_next", "phi_next_online")}
    return replace(given, **parts, **rows, weight=None)


@pytest.mark.parametrize("name", TERMS)
def test_the_term_is_the_weighted_mean_of_its_rows(name):
    weight = torch.tensor([2.0, 0.0, 1.0, 0.5, 0.0, 3.0], dtype=torch.float64)
    given = features(weight)
    rows = torch.stack([term(name)(one_row(given, row)) for row in range(6)])
    assert rows.abs().sum() > 0
    torch.testing.assert_close(term(name)(given), (weight * rows).sum() / 6)


@pytest.mark.parametrize("name", TERMS)
def test_weights_of_1_change_nothing_and_a_row_of_weight_0_has_no_gradient(name):
    torch.testing.assert_close(term(name)(features(torch.ones(6))), term(name)(features(None)))
    given = features(torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0, 1.0], dtype=torch.float64))
    gradient = torch.autograd.grad(term(name)(given), given.phi)[0]
    assert not gradient[:, 4].any()
    assert gradient[:, [0, 1, 2, 3, 5]].any()


def test_auto_moves_by_the_rows_that_count():
    given = features(torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]))
    counted, alone = ConstrainedPEER(beta=0.1), ConstrainedPEER(beta=0.1)
    counted(given)
    alone(Features(given.phi[:, [0, 3]], given.phi_next[:, [0, 3]]))
    assert counted.adapt()["cosine"].item() == pytest.approx(alone.adapt()["cosine"].item())


def test_diagnostics_leave_out_rows_of_weight_0():
    kept = [0, 2, 5]
    weight = torch.zeros(6)
    weight[kept] = torch.tensor([1.0, 0.5, 0.25])
    given = features(weight)
    report = diagnose_features(given)
    rows = {name: getattr(given, name)[kept] for name in ("reward", "discount")}
    alone = replace(given, phi=given.phi[:, kept], phi_next=given.phi_next[:, kept], weight=None, **rows)
    assert report == diagnose_features(alone)
    assert report.rows == 2 * len(kept)


@pytest.mark.parametrize("shape", [(), (5,), (6, 1)])
def test_a_weight_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match="weight must have shape"):
        make("peer", 0.1)(features(torch.ones(shape)))
