"""DRD and its companions against plain NumPy; undefined values; inertness."""

import json
import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from peer_rl.plugin import PEER
from peer_rl.plugin.diagnostics import Report, diagnose, dormant_fraction, drd, effective_rank, gradient_ratio

DISCOUNTS = torch.tensor([0.99, 0.9, 0.0, 1.0, 0.5])


def batch(seed: int, shape: tuple[int, ...] = (2, 5, 4)) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    random = np.random.default_rng(seed)
    arrays = (
        random.normal(size=shape),
        random.normal(size=shape),
        random.normal(size=(shape[0], 1, shape[-1])),
        random.normal(size=shape[-2]),
    )
    phi, phi_next, weight, reward = (torch.from_numpy(x.astype(np.float32)) for x in arrays)
    return phi, phi_next, weight, reward


def drd_by_hand(x: np.ndarray, y: np.ndarray, w: np.ndarray, r: float, gamma: float) -> float:
    norms = float(np.sqrt((x**2).sum()) * np.sqrt((y**2).sum()))
    head = float((w**2).sum())
    if gamma == 0 or head == 0 or norms == 0:
        return math.nan
    return float(x @ y) / norms - (1 / gamma - r**2 / (2 * head))


def as_numpy(*tensors: Tensor) -> list[np.ndarray]:
    return [tensor.double().numpy() for tensor in tensors]


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**31))
def test_drd_equals_a_plain_calculation(seed: int) -> None:
    phi, phi_next, weight, reward = batch(seed)
    phi[0, 3] = 0
    weight[1] = 0 if seed % 2 else weight[1]
    value = drd(phi, phi_next, head_weight=weight, reward=reward, gamma=DISCOUNTS)
    x, y, w, r = as_numpy(phi, phi_next, weight, reward)
    expected = [[drd_by_hand(x[h, i], y[h, i], w[h, 0], r[i], float(DISCOUNTS[i])) for i in range(5)] for h in range(2)]
    assert value.shape == (2, 5)
    assert np.isnan(value[0, 2].item())
    assert np.isnan(value[0, 3].item())
    np.testing.assert_allclose(value.numpy(), expected, rtol=0, atol=1e-6, equal_nan=True)


def test_a_float_gamma_is_that_gamma_for_every_row() -> None:
    phi, phi_next, weight, reward = batch(1)
    one = drd(phi, phi_next, head_weight=weight, reward=reward, gamma=0.9)
    many = drd(phi, phi_next, head_weight=weight, reward=reward, gamma=torch.full((5,), 0.9, dtype=torch.float64))
    torch.testing.assert_close(one, many, rtol=0, atol=1e-15)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**31))
def test_one_output_per_action_is_the_lifted_feature(seed: int) -> None:
    random = np.random.default_rng(seed)
    phi, phi_next, _, reward = batch(seed, (1, 5, 4))
    phi, phi_next = phi[0], phi_next[0]
    weight = torch.from_numpy(random.normal(size=(3, 4)))
    action, action_next = random.integers(3, size=5), random.integers(3, size=5)
    same = torch.from_numpy(action == action_next)

    def lift(x: Tensor, chosen: np.ndarray) -> Tensor:
        return torch.einsum("ba,bd->bad", torch.eye(3, dtype=x.dtype)[chosen], x).reshape(5, 12)

    lifted, lifted_next = lift(phi, action), lift(phi_next, action_next)
    flat = {"head_weight": weight.reshape(-1), "reward": reward, "gamma": 0.9}
    ours = {"head_weight": weight, "reward": reward, "gamma": 0.9, "same_action": same}
    torch.testing.assert_close(drd(phi, phi_next, **ours), drd(lifted, lifted_next, **flat), rtol=0, atol=1e-12)
    ours_report, lifted_report = diagnose(phi, phi_next, **ours), diagnose(lifted, lifted_next, **flat)
    for name in ("drd", "drd_share_positive", "bellman_gap", "head_norm", "feature_norm"):
        assert getattr(ours_report, name) == pytest.approx(getattr(lifted_report, name), abs=1e-12)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**31))
def test_the_report_equals_a_plain_calculation(seed: int) -> None:
    phi, phi_next, weight, reward = batch(seed, (2, 5, 4))
    phi[0, 3] = 0
    phi[..., 1] = 0
    report = diagnose(phi, phi_next, head_weight=weight, reward=reward, gamma=DISCOUNTS)
    x, y, w, r = as_numpy(phi, phi_next, weight, reward)
    drds, gaps, cosines = [], [], []
    for h in range(2):
        for i, gamma in enumerate(DISCOUNTS.double().tolist()):
            nx, ny = np.linalg.norm(x[h, i]), np.linalg.norm(y[h, i])
            drds.append(drd_by_hand(x[h, i], y[h, i], w[h, 0], r[i], gamma))
            if nx > 0:
                cosines.append(x[h, i] @ y[h, i] / nx / ny)
            if nx > 0 and gamma > 0:
                bound = (nx**2 + gamma**2 * ny**2 - r[i] ** 2 / (w[h] ** 2).sum()) / (2 * gamma * nx * ny)
                gaps.append(cosines[-1] - bound)
    defined = [value for value in drds if not math.isnan(value)]
    expected = {
        "drd": np.mean(defined),
        "drd_share_positive": np.mean([value > 0 for value in defined]),
        "bellman_gap": np.mean(gaps),
        "cosine": np.mean(cosines),
        "inner_product": (x * y).sum(-1).mean(),
        "feature_norm": np.linalg.norm(x, axis=-1).mean(),
        "next_feature_norm": np.linalg.norm(y, axis=-1).mean(),
        "head_norm": np.linalg.norm(w, axis=-1).mean(),
        "signed_fraction": (x < 0).mean(),
        "rows": 10,
        "drd_rows": 7,
    }
    for name, value in expected.items():
        assert getattr(report, name) == pytest.approx(value, rel=1e-6, abs=1e-6), name
    assert all(type(value) in (float, int) for value in report.as_dict().values())


def test_effective_rank_counts_directions() -> None:
    assert effective_rank(torch.eye(8)) == 8
    assert effective_rank(torch.ones(8, 5)) == 1
    assert effective_rank(torch.zeros(8, 5)) == 0
    # The first singular value holds just over, then just under, 0.99 of the sum.
    assert effective_rank(torch.diag(torch.tensor([99.1, 0.89, 0.01]))) == 1
    assert effective_rank(torch.diag(torch.tensor([98.9, 1.09, 0.01]))) == 2
    assert effective_rank(torch.stack([torch.eye(8), torch.ones(8, 8)])) == 4.5


def test_dormant_units_are_those_far_below_the_mean() -> None:
    phi = torch.ones(6, 4)
    phi[:, 0] = 0
    phi[:, 1] = torch.tensor([-1.0, 1, -1, 1, -1, 1])  # the sign does not matter
    assert dormant_fraction(phi) == 0.25
    phi[:, 0] = 0.0191  # 0.0191 / mean(0.0191, 1, 1, 1) = 0.0253
    assert dormant_fraction(phi) == 0
    phi[:, 0] = 0.0188
    assert dormant_fraction(phi) == 0.25
    assert dormant_fraction(torch.zeros(6, 4)) == 1


def test_what_cannot_be_known_is_nan_and_none_in_json() -> None:
    phi, phi_next, weight, reward = batch(3)
    bare = diagnose(phi, phi_next)
    undefined = {"drd", "drd_share_positive", "bellman_gap", "head_norm"}
    assert {name for name, value in bare.as_dict().items() if value is None} == undefined
    assert all(math.isnan(getattr(bare, name)) for name in undefined)
    assert bare.drd_rows == 0
    json.dumps(bare.as_dict(), allow_nan=False)
    zero = diagnose(phi, phi_next, head_weight=0 * weight, reward=reward, gamma=0.99)
    assert math.isnan(zero.drd)
    assert math.isnan(zero.bellman_gap)
    assert zero.head_norm == 0
    assert "nan" in str(zero)
    dead = diagnose(0 * phi, phi_next, head_weight=weight, reward=reward, gamma=0.99)
    assert math.isnan(dead.cosine)
    assert dead.effective_rank == 0


def test_drd_changes_sign_under_a_rescaling_that_leaves_q_alone() -> None:
    phi = torch.tensor([[3.0, 4.0]])
    weight, reward = torch.tensor([1.0, 0.0]), torch.tensor([1.0])
    signs = [drd(c * phi, c * phi, head_weight=weight / c, reward=reward, gamma=0.99).item() > 0 for c in (1.0, 0.1)]
    assert signs == [True, False]
    gaps = [
        diagnose(c * phi, 1.1 * c * phi, head_weight=weight / c, reward=reward, gamma=0.99).bellman_gap
        for c in (1, 0.1)
    ]
    assert gaps[0] == pytest.approx(gaps[1], rel=1e-6)


@pytest.mark.parametrize("gamma", [0.0, -0.1, 1.01, math.nan, True])
def test_gamma_outside_its_range_is_refused(gamma: float) -> None:
    phi, phi_next, weight, reward = batch(4)
    with pytest.raises(ValueError, match=r"^gamma must lie in \(0, 1\]"):
        drd(phi, phi_next, head_weight=weight, reward=reward, gamma=gamma)
    if gamma not in (0.0, True):
        with pytest.raises(ValueError, match=r"^gamma must lie in \[0, 1\]"):
            diagnose(phi, phi_next, gamma=torch.full((5,), gamma))


@pytest.mark.parametrize("name", ["phi", "phi_next", "head_weight", "reward"])
def test_nan_is_refused_by_name(name: str) -> None:
    given = dict(zip(("phi", "phi_next", "head_weight", "reward"), batch(5), strict=True))
    given[name] = given[name].clone()
    given[name].view(-1)[1] = math.nan
    for function in (drd, diagnose):
        with pytest.raises(ValueError, match=f"^{name} must be finite"):
            function(
                given["phi"],
                given["phi_next"],
                head_weight=given["head_weight"],
                reward=given["reward"],
                gamma=0.9,
            )


def test_wrong_shapes_are_refused_by_name() -> None:
    phi, phi_next, weight, reward = batch(6)
    good = {"head_weight": weight, "reward": reward, "gamma": 0.9}
    with pytest.raises(ValueError, match=r"^phi_next must have phi's shape"):
        diagnose(phi, phi_next[0])
    with pytest.raises(ValueError, match=r"^phi must have a non-empty shape"):
        diagnose(phi[:, :0], phi_next[:, :0])
    for name, value in {
        "reward": reward[:, None],
        "gamma": torch.ones(4),
        "head_weight": weight[:, 0],
        "same_action": torch.ones(4),
    }.items():
        with pytest.raises(ValueError, match=f"^{name} must"):
            drd(phi, phi_next, **{**good, name: value})


def test_diagnosing_changes_nothing() -> None:
    phi, phi_next, weight, reward = batch(7)
    phi.requires_grad_()
    before = phi.detach().clone()
    report = diagnose(phi, phi_next, head_weight=weight, reward=reward, gamma=0.9)
    assert isinstance(report, Report)
    assert phi.grad is None
    assert torch.equal(phi, before)


def test_gradient_ratio_is_the_ratio_of_the_norms() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    unused = torch.nn.Parameter(torch.ones(2))
    torch.manual_seed(0)
    phi = network(torch.randn(5, 3))
    td_loss = (phi.sum(-1) - 1).square().mean()
    loss = PEER(0.5)(phi, torch.rand(5, 4))
    parameters = [*network.parameters(), unused]
    ratio = gradient_ratio(td_loss, loss, iter(parameters))
    assert all(parameter.grad is None for parameter in parameters)
    norms = []
    for part in (loss, td_loss):
        part.backward(retain_graph=True)
        gradients = torch.cat([parameter.grad.reshape(-1) for parameter in network.parameters()])
        norms.append(gradients.norm().item())
        network.zero_grad()
    assert ratio == pytest.approx(norms[0] / norms[1], rel=1e-5)
    zero = torch.zeros(())
    assert gradient_ratio(td_loss, zero, parameters) == 0
    assert gradient_ratio(zero, loss, parameters) == math.inf
    unrelated = torch.ones((), requires_grad=True)
    assert math.isnan(gradient_ratio(unrelated, unrelated, parameters))
    with pytest.raises(ValueError, match="no gradient"):
        gradient_ratio(zero, zero, parameters)
    with pytest.raises(ValueError, match=r"^parameters must hold"):
        gradient_ratio(td_loss, loss, [])


def test_gradient_ratio_explains_donated_buffers() -> None:
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.compile's own
        compiled = torch.compile(network, backend="aot_eager")
        compiled(torch.randn(5, 3)).mean().backward()  # an update compiles the backward pass that gives buffers away
        q = compiled(torch.randn(5, 3))
    with pytest.raises(RuntimeError, match="donated_buffer = False"):
        gradient_ratio(q.square().mean(), q.mean(), network.parameters())
