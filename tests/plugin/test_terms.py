"""The regularizers against plain formulas, their gradients, and what they refuse."""

import ast
import math
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from peer_rl import plugin as regularizers
from peer_rl.plugin import (
    BEER,
    DR3,
    NAMES,
    PEER,
    CosinePEER,
    FeatureNorm,
    Features,
    NoRegularizer,
    PublishedBEER,
    Regularizer,
    SignedFeaturesWarning,
    TargetGradientWarning,
    make,
    peer_loss,
    wrap,
)
from peer_rl.plugin.features import Watch
from peer_rl.plugin.terms import _peer_watch

pytestmark = pytest.mark.filterwarnings("ignore::peer_rl.plugin.features.NoGradientWarning")

SHAPES = [(4, 3), (2, 5, 7), (3, 2, 4, 6)]
ALL = [PEER, CosinePEER, FeatureNorm, DR3, BEER]


def pair(shape: tuple[int, ...], seed: int = 0, signed: bool = False) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    phi, phi_next = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2))
    return (phi, phi_next) if signed else (phi.abs(), phi_next.abs())


def full(phi: Tensor, phi_next: Tensor) -> Features:
    rows = phi.shape[-2]
    generator = torch.Generator().manual_seed(7)
    return Features(
        phi,
        phi_next,
        phi_next_online=phi_next.clone(),
        head_weight=torch.ones(phi.shape[-1], dtype=phi.dtype),
        reward=5 * torch.randn(rows, generator=generator, dtype=phi.dtype),
        discount=torch.full((rows,), 0.99, dtype=phi.dtype),
    )


def gradient(loss: Tensor, at: Tensor) -> Tensor:
    return torch.autograd.grad(loss, at)[0]


@pytest.fixture(autouse=True)
def forget_the_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watch, "warned", set())


@pytest.mark.parametrize("shape", SHAPES)
def test_peer_is_the_papers_einsum_summed_over_heads(shape: tuple[int, ...]) -> None:
    phi, phi_next = pair(shape)
    heads = zip(phi.reshape(-1, *shape[-2:]), phi_next.reshape(-1, *shape[-2:]), strict=True)
    expected = sum(5e-4 * torch.einsum("ij,ij->i", [a, b]).mean() for a, b in heads)
    for loss in (PEER()(phi, phi_next), peer_loss(phi, phi_next), PEER()(Features(phi, phi_next))):
        assert loss.shape == ()
        torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", ALL)
def test_an_ensemble_is_the_sum_of_its_heads(kind: type[Regularizer]) -> None:
    phi, phi_next = pair((3, 5, 4))
    whole = kind(0.5)(full(phi, phi_next))
    parts = sum(kind(0.5)(full(a, b)) for a, b in zip(phi, phi_next, strict=True))
    assert whole != 0
    torch.testing.assert_close(whole, parts, rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", ALL)
def test_the_term_is_proportional_to_beta(kind: type[Regularizer]) -> None:
    features = full(*pair((5, 4)))
    torch.testing.assert_close(kind(0.3)(features), 3 * kind(0.1)(features), rtol=1e-12, atol=0)


@settings(max_examples=60)
@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 6), st.integers(1, 8), st.booleans())
def test_the_two_halves_add_up_to_peer(seed: int, heads: int, rows: int, dim: int, signed: bool) -> None:
    phi, phi_next = pair((heads, rows, dim), seed, signed)
    phi[0, 0] = 0  # the case without a direction
    phi.requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        whole, turn, shrink = (gradient(kind(0.7)(phi, phi_next), phi) for kind in (PEER, CosinePEER, FeatureNorm))
    torch.testing.assert_close(turn + shrink, whole, rtol=0, atol=1e-10)
    torch.testing.assert_close(whole, 0.7 * phi_next / rows, rtol=0, atol=1e-12)


def test_cosine_peer_turns_and_feature_norm_shrinks() -> None:
    phi, phi_next = pair((2, 6, 5))
    phi.requires_grad_()
    turn = gradient(CosinePEER(1.0)(phi, phi_next), phi)
    shrink = gradient(FeatureNorm(1.0)(phi, phi_next), phi)
    torch.testing.assert_close((turn * phi).sum(-1), torch.zeros(2, 6, dtype=torch.float64), rtol=0, atol=1e-12)
    cosine = torch.cosine_similarity(shrink, phi, dim=-1)
    torch.testing.assert_close(cosine, torch.ones_like(cosine), rtol=0, atol=1e-12)
    value = PEER(1.0)(phi, phi_next)
    torch.testing.assert_close(CosinePEER(1.0)(phi, phi_next), value, rtol=1e-12, atol=0)
    torch.testing.assert_close(FeatureNorm(1.0)(phi, phi_next), value, rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("zeroed", ["phi", "phi_next", "both"])
def test_zero_vectors_give_zero_and_finite_gradients(kind: type[Regularizer], zeroed: str) -> None:
    phi, phi_next = torch.ones(2, 3, 4), torch.ones(2, 3, 4)
    if zeroed != "phi_next":
        phi = torch.zeros_like(phi)
    if zeroed != "phi":
        phi_next = torch.zeros_like(phi_next)
    phi.requires_grad_()
    loss = kind(1.0)(full(phi, phi_next))
    assert loss.item() == 0
    assert gradient(loss, phi).isfinite().all()


@pytest.mark.parametrize("kind", [PEER, CosinePEER, FeatureNorm, BEER])
def test_no_gradient_reaches_the_target(kind: type[Regularizer]) -> None:
    phi, phi_next = (x.requires_grad_() for x in pair((4, 3)))
    with pytest.warns(TargetGradientWarning, match=r"phi_next carries a gradient.*torch\.no_grad"):
        kind(1.0)(full(phi, phi_next)).backward()
    assert phi.grad is not None
    assert phi.grad.abs().sum() > 0
    assert phi_next.grad is None


def test_dr3_differentiates_both_sides() -> None:
    phi, online = (x.requires_grad_() for x in pair((2, 4, 3)))
    DR3(2.0)(Features(phi, torch.zeros_like(phi), phi_next_online=online)).backward()
    torch.testing.assert_close(phi.grad, 2 * online.detach() / 4)
    torch.testing.assert_close(online.grad, 2 * phi.detach() / 4)


def beer_by_hand(f: Features, beta: float) -> float:
    total = 0.0
    assert f.reward is not None
    assert f.discount is not None
    assert f.head_weight is not None
    for head in range(f.phi.shape[0]):
        costs = []
        for row in range(f.phi.shape[1]):
            x, y = f.phi[head, row].detach().numpy(), f.phi_next[head, row].numpy()
            gamma, r = float(f.discount[row]), float(f.reward[row])
            if f.same_action is not None:
                same, w = float(f.same_action[row]), float(np.linalg.norm(f.head_weight.numpy()))
            else:
                same, w = 1.0, float(np.linalg.norm(f.head_weight[head, 0].numpy()))
            nx, ny = float(np.linalg.norm(x)), float(np.linalg.norm(y))
            if 0 in (gamma, w, nx, ny):
                continue
            bound = (nx**2 + gamma**2 * ny**2 - r**2 / w**2) / (2 * gamma * nx * ny)
            costs.append(max(0.0, float(x @ y) / (nx * ny) * same - bound))
        total += beta * sum(costs) / len(costs) if costs else 0.0
    return total


@settings(max_examples=60)
@given(st.integers(0, 2**31), st.booleans())
def test_beer_equals_a_plain_loop(seed: int, per_action: bool) -> None:
    phi, phi_next = pair((2, 6, 4), seed)
    random = np.random.default_rng(seed)
    weight = torch.from_numpy(random.normal(size=(3, 4) if per_action else (2, 1, 4)))
    if random.random() < 0.5 and not per_action:
        weight[1] = 0
    phi[0, 0] = 0
    phi_next[0, 1] = 0
    features = Features(
        phi.requires_grad_(),
        phi_next,
        head_weight=weight,
        reward=torch.from_numpy(3 * random.normal(size=6)),
        discount=torch.tensor([0.99, 0.99, 0, 0.9, 1, 0.5], dtype=torch.float64),
        same_action=torch.from_numpy(random.random(6) < 0.5) if per_action else None,
    )
    loss = BEER(0.3)(features)
    assert loss.item() == pytest.approx(beer_by_hand(features, 0.3), rel=1e-10, abs=1e-12)
    assert gradient(loss, phi).isfinite().all()


def test_beer_averages_over_the_rows_that_are_left() -> None:
    phi, phi_next = torch.ones(4, 3), 2 * torch.ones(4, 3)
    kept = {"head_weight": torch.ones(3), "reward": torch.full((4,), 6.0)}
    alone = BEER(1.0)(Features(phi, phi_next, discount=torch.tensor([0.9, 0, 0, 0]), **kept))
    # cos 1, bound (3 + 0.81 * 12 - 36 / 3) / (2 * 0.9 * 6) = 1 / 15
    assert alone.item() == pytest.approx(14 / 15)


def test_beer_without_a_single_bound_is_zero() -> None:
    phi, phi_next = pair((4, 3))
    features = full(phi, phi_next)
    kept = {"head_weight": features.head_weight, "reward": features.reward}
    assert BEER(1.0)(Features(phi, phi_next, discount=torch.zeros(4), **kept)).item() == 0
    zero = Features(phi, phi_next, head_weight=torch.zeros(3), reward=torch.ones(4), discount=torch.ones(4))
    assert BEER(1.0)(zero).item() == 0


@settings(max_examples=60)
@given(st.integers(0, 2**31))
def test_published_beer_equals_the_authors_formula(seed: int) -> None:
    """Float64 oracle: online |phi'| in the numerator, the target's below, gamma 0.99 in every row, mean over all."""
    phi, phi_next = pair((2, 6, 4), seed)
    online = pair((2, 6, 4), seed + 1)[0]
    random = np.random.default_rng(seed)
    weight, reward = random.normal(size=(2, 1, 4)), 3 * random.normal(size=6)
    given = {"head_weight": torch.from_numpy(weight), "reward": torch.from_numpy(reward), "phi_next_online": online}
    terminal = torch.tensor([0.99, 0, 0.5, 0, 1, 0.99], dtype=torch.float64)  # not read
    loss = PublishedBEER(0.3)(Features(phi.requires_grad_(), phi_next, discount=terminal, **given))
    x, y, z = (tensor.detach().numpy() for tensor in (phi, phi_next, online))
    nx, ny, nz = (np.linalg.norm(array, axis=-1) for array in (x, y, z))
    bound = 0.5 / 0.99 * (nx**2 + 0.99**2 * nz**2 - reward**2 / np.linalg.norm(weight, axis=-1) ** 2) / (nx * ny)
    expected = 0.3 * np.maximum((x * y).sum(-1) / (nx * ny) - bound, 0).mean(-1).sum()
    assert loss.item() == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert gradient(loss, phi).isfinite().all()


def test_published_beer_differs_from_ours_in_all_three_ways() -> None:
    phi, phi_next = pair((5, 4))
    kept = {"head_weight": torch.ones(4).double(), "reward": torch.full((5,), 5.0)}
    steady = torch.full((5,), 0.99)
    ours = BEER(1.0)(Features(phi, phi_next, discount=steady, **kept))
    same = PublishedBEER(1.0)(Features(phi, phi_next, phi_next_online=phi_next, **kept))
    torch.testing.assert_close(same, ours)
    online = PublishedBEER(1.0)(Features(phi, phi_next, phi_next_online=2 * phi_next, **kept))
    other_gamma = PublishedBEER(1.0, gamma=0.9)(Features(phi, phi_next, phi_next_online=phi_next, **kept))
    steady[0] = 0
    masked = BEER(1.0)(Features(phi, phi_next, discount=steady, **kept))
    assert len({round(loss.item(), 6) for loss in (ours, online, other_gamma, masked)}) == 4
    assert PublishedBEER().beta == 1e-3
    with pytest.raises(ValueError, match="phi_next_online"):
        PublishedBEER()(Features(phi, phi_next, **kept))


def test_beta_zero_is_a_plain_zero() -> None:
    phi, phi_next = pair((4, 3))
    phi[0, 0] = math.inf
    for loss in (peer_loss(phi, phi_next, 0.0), PEER(0)(phi, phi_next), NoRegularizer()(phi, phi_next)):
        assert loss.item() == 0
        assert not loss.requires_grad
    assert isinstance(make("peer", 0.0), NoRegularizer)
    assert NoRegularizer(3.0).beta == 0


@pytest.mark.parametrize("beta", [-1e-9, math.nan, math.inf, True, "5e-4", None])
def test_a_bad_beta_is_refused(beta: object) -> None:
    calls = [lambda: PEER(beta), lambda: make("peer", beta), lambda: peer_loss(*pair((2, 2)), beta=beta)]
    for call in (*calls, lambda: NoRegularizer(beta), lambda: wrap(peer_loss, beta)):
        with pytest.raises(ValueError, match=r"^beta must be"):
            call()


BAD_PAIRS = {
    r"phi must be a tensor, not ndarray": (torch.ones(4, 3).numpy(), torch.ones(4, 3)),
    r"phi_next must be a tensor, not list": (torch.ones(4, 3), [1.0, 2.0]),
    r"phi_next must have phi's shape \(4, 3\), not \(4, 2\)": (torch.ones(4, 3), torch.ones(4, 2)),
    r"phi must have a non-empty shape .* not \(0, 3\)": (torch.ones(0, 3), torch.ones(0, 3)),
    r"phi must have a non-empty shape .* not \(4, 0\)": (torch.ones(4, 0), torch.ones(4, 0)),
    r"phi must have a non-empty shape .* not \(4,\)": (torch.ones(4), torch.ones(4)),
    r"phi_next must have phi's dtype and device, torch.float32.*float64": (
        torch.ones(4, 3),
        torch.ones(4, 3).double(),
    ),
    r"phi_next must have phi's dtype and device.*on cpu, not.*on meta": (
        torch.ones(4, 3),
        torch.ones(4, 3, device="meta"),
    ),
    r"phi must be floating point, not torch.int64": (torch.ones(4, 3).long(), torch.ones(4, 3).long()),
    r"phi must be finite": (torch.full((4, 3), math.nan), torch.ones(4, 3)),
    r"phi_next must be finite": (
        torch.ones(4, 3),
        torch.tensor([[1.0, math.inf]] * 4 + [[0, 0]])[:4].repeat(1, 2)[:, :3],
    ),
    r"phi and phi_next are too large": (torch.full((4, 3), 1e30), torch.full((4, 3), 1e30)),
}


@pytest.mark.parametrize("message", BAD_PAIRS)
def test_bad_features_are_refused_in_one_sentence(message: str) -> None:
    for regularizer in (peer_loss, PEER(), CosinePEER(), FeatureNorm()):
        with pytest.raises(ValueError, match=message) as caught:
            regularizer(*BAD_PAIRS[message])
        assert "\n" not in str(caught.value)


def test_nan_is_found_on_every_call_not_only_the_first() -> None:
    good, regularizer = torch.ones(4, 3), PEER()
    for _ in range(6):
        regularizer(good, 2 * good)
    bad = good.clone()
    bad[3, 2] = math.nan
    with pytest.raises(ValueError, match="phi must be finite"):
        regularizer(bad, good)


def test_missing_and_misshapen_fields_are_named() -> None:
    phi, phi_next = pair((2, 4, 3))
    with pytest.raises(ValueError, match="phi_next must be given"):
        PEER()(phi)
    with pytest.raises(ValueError, match="phi_next_online must be given"):
        DR3()(phi, phi_next)
    with pytest.raises(ValueError, match="phi_next_online must have phi's shape"):
        DR3()(Features(phi, phi_next, phi_next_online=phi[0]))
    good = {"head_weight": torch.ones(3), "reward": torch.ones(4), "discount": torch.ones(4)}
    for name, value in {
        "reward": torch.ones(4, 1),
        "discount": torch.full((4,), 1.5),
        "head_weight": torch.ones(4, 3),
        "same_action": torch.ones(3),
    }.items():
        with pytest.raises(ValueError, match=f"^{name} must"):
            BEER()(Features(phi, phi_next, **{**good, name: value}))
        if name in good:
            with pytest.raises(ValueError, match=f"^{name} must be given"):
                BEER()(Features(phi, phi_next, **{**good, name: None}))
    with pytest.raises(ValueError, match="reward must be finite"):
        BEER()(Features(phi, phi_next, **{**good, "reward": torch.full((4,), math.nan)}))


@pytest.mark.parametrize("call", [peer_loss, PEER(), FeatureNorm()])
def test_signed_features_warn_once_and_name_the_cure(call: object) -> None:
    assert callable(call)
    signed, other = torch.tensor([[1.0, -1.0]]).requires_grad_(), torch.tensor([[0.0, 2.0]])
    _peer_watch.calls = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(5):
            call(signed, other)
    assert [warning.category for warning in caught] == [SignedFeaturesWarning]
    assert "CosinePEER" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_what_is_safe_does_not_warn() -> None:
    signed = torch.tensor([[1.0, -1.0]])
    CosinePEER()(signed, 2 * signed)
    BEER()(full(signed, 2 * signed))
    PEER()(signed.abs(), 2 * signed.abs())


def test_half_precision_does_not_overflow() -> None:
    phi = torch.ones(512, 256, dtype=torch.float16)
    assert PEER(0.5)(phi, 2 * phi).item() == 256


def test_layouts_do_not_matter() -> None:
    phi, phi_next = pair((3, 5, 4))
    assert peer_loss(phi.transpose(0, 1), phi_next.transpose(0, 1), head_axis=0).item() == pytest.approx(
        5e-4 * (phi * phi_next).sum(-1).mean(0).sum().item()
    )


def test_make_resolves_names() -> None:
    assert set(NAMES) == {"peer", "cosine-peer", "feature-norm", "dr3", "beer", "none"}
    for name, kind in NAMES.items():
        made = make(name, 0.1)
        assert type(made) is kind
        assert made.beta == (0 if name == "none" else 0.1)
    for name, message in {"peeer": "did you mean 'peer'", "zzz": "there are peer, cosine-peer"}.items():
        with pytest.raises(ValueError, match=f"regularizer '{name}'.*{message}"):
            make(name, 0.0)


def test_beta_can_be_changed_and_is_checked_again() -> None:
    phi, phi_next = pair((4, 3))
    regularizer = PEER(0.1)
    regularizer.beta = 0.2
    assert torch.equal(regularizer(phi, phi_next), PEER(0.2)(phi, phi_next))
    regularizer.beta = 0.0
    assert regularizer(phi, phi_next).item() == 0
    with pytest.raises(ValueError, match=r"^beta must be"):
        regularizer.beta = math.nan


def test_the_plug_in_imports_only_itself_torch_and_the_standard_library() -> None:
    modules = list(Path(regularizers.__file__).parent.glob("*.py"))
    assert len(modules) >= 8
    for path in modules:
        tree = ast.parse(path.read_text())
        imports = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
        imports |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        foreign = {i for i in imports if i.split(".")[0] not in sys.stdlib_module_names | {"torch", "peer_rl"}}
        assert not foreign
        assert {i.split(".")[1] for i in imports if i.startswith("peer_rl")} <= {"plugin"}


def test_importing_the_plug_in_loads_no_agent_code() -> None:
    code = (
        "import sys, torch; before = set(sys.modules)\n"
        "import peer_rl.plugin, peer_rl.plugin.diagnostics, peer_rl.plugin.check\n"
        "new = {m for m in set(sys.modules) - before if m.startswith('peer_rl.') or '.' not in m}\n"
        "print(*sorted(m for m in new if m.split('.')[0] not in sys.stdlib_module_names))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = set(run.stdout.split())
    assert "peer_rl.plugin.terms" in found
    assert all(name.startswith("peer_rl.plugin") for name in found - {"peer_rl", "peer_rl.version"})
