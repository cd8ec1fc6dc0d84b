"""What users get wrong most easily: each case gives the right number or one clear message."""

import copy
import math
import warnings
from collections.abc import Callable

import pytest
import torch
from critic_styles import ACTION, DIM, OBS, ROWS, mlp
from torch import Tensor, nn

from peer_rl import (
    BEER,
    DR3,
    PEER,
    ConstrainedPEER,
    CosinePEER,
    FeatureNorm,
    Features,
    RepresentationTap,
    check_critic,
    diagnose,
    drd,
    peer_loss,
)
from peer_rl.plugin import NoGradientWarning, SamePairWarning, SingleFeatureWarning, TargetGradientWarning, wrap
from peer_rl.plugin.features import Watch
from peer_rl.plugin.tap import UncertainHeadWarning
from peer_rl.plugin.terms import _peer_watch

BOTH = OBS + ACTION


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr(Watch, "warned", set())
    monkeypatch.setattr(_peer_watch, "calls", 0)


def pair(*shape: int) -> tuple[Tensor, Tensor]:
    return torch.rand(shape, dtype=torch.float64, requires_grad=True), torch.rand(shape, dtype=torch.float64)


# -- normalisation in training mode ------------------------------------------------------------------------------------


def normalised() -> nn.Sequential:
    """BatchNorm before the head, with running statistics that hide its negative outputs in evaluation mode."""
    norm = nn.BatchNorm1d(DIM)
    assert norm.running_mean is not None
    norm.running_mean.fill_(-100.0)
    return nn.Sequential(nn.Linear(BOTH, DIM), norm, nn.Linear(DIM, 1))


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_is_judged_in_training_mode(training: bool) -> None:
    critic, x = normalised().train(training), torch.randn(64, BOTH)
    assert bool((critic.eval()[:2](x) > 0).all())
    critic.train(training)
    before = copy.deepcopy(critic.state_dict())
    check = check_critic(critic, x)
    assert check.recommended == "CosinePEER"
    assert not check.safe
    phi = copy.deepcopy(critic).train()[:2](x)
    assert check.signed_fraction == pytest.approx((phi < 0).double().mean().item())
    assert 0.3 < check.signed_fraction < 0.7
    assert critic.training is training
    assert all(torch.equal(value, before[name]) for name, value in critic.state_dict().items())


def test_batch_norm_needs_two_rows() -> None:
    with pytest.raises(ValueError, match="at least 2 rows"):
        check_critic(normalised(), torch.randn(1, BOTH))


# -- layouts -----------------------------------------------------------------------------------------------------------

TERMS = [PEER, CosinePEER, FeatureNorm, ConstrainedPEER, lambda beta: wrap(mean_product, beta)]


def mean_product(phi: Tensor, phi_next: Tensor) -> Tensor:
    return (phi * phi_next).sum(-1).mean(-1).sum()


@pytest.mark.parametrize("kind", TERMS)
def test_a_sequence_is_one_batch(kind: Callable[..., Callable[..., Tensor]]) -> None:
    phi, phi_next = pair(32, 5, 6)
    flat = kind(beta=0.5)(phi.flatten(0, 1), phi_next.flatten(0, 1))
    torch.testing.assert_close(kind(beta=0.5)(phi, phi_next, head_axis=()), flat)
    expected = torch.autograd.grad(flat, phi)[0]
    torch.testing.assert_close(torch.autograd.grad(kind(beta=0.5)(phi, phi_next, head_axis=()), phi)[0], expected)


@pytest.mark.parametrize("axis", [1, -2, [1]])
def test_a_batch_first_stack_is_summed_over_its_heads(axis: int | list[int]) -> None:
    phi, phi_next = pair(32, 2, 6)
    by_hand = 0.5 * sum((phi[:, head] * phi_next[:, head]).sum() / 32 for head in range(2))
    torch.testing.assert_close(peer_loss(phi, phi_next, 0.5, head_axis=axis), by_hand)
    torch.testing.assert_close(PEER(0.5)(phi, phi_next, head_axis=axis), by_hand)


def test_views_and_heads_and_time() -> None:
    phi, phi_next = pair(4, 2, 7, 3, 6)  # batch, views, time, heads, dim
    by_hand = (phi * phi_next).sum() / (4 * 7)
    torch.testing.assert_close(peer_loss(phi, phi_next, 1.0, head_axis=(1, 3)), by_hand)


@pytest.mark.parametrize("shape", [(32, 5, 6), (128, 2, 6), (16, 50, 6), (32, 128, 6), (2, 32, 5, 6)])
@pytest.mark.parametrize("call", [peer_loss, PEER(), diagnose], ids=["peer_loss", "PEER", "diagnose"])
def test_a_shape_that_may_be_batch_first_is_refused(shape: tuple[int, ...], call: Callable[..., object]) -> None:
    phi, phi_next = pair(*shape)
    with pytest.raises(ValueError, match=r"head_axis=\(\)"):
        call(phi, phi_next)
    call(phi, phi_next, head_axis=(0, 1) if len(shape) == 4 else 0)  # confirmed


@pytest.mark.parametrize("shape", [(2, 256, 6), (5, 32, 6), (10, 64, 6), (2, 2, 32, 6)])
def test_ensembles_are_not_asked(shape: tuple[int, ...]) -> None:
    phi, phi_next = pair(*shape)
    torch.testing.assert_close(peer_loss(phi, phi_next, 1.0), (phi * phi_next).sum() / shape[-2])


@pytest.mark.parametrize("axis", [2, -1, 3, (0, 1), (0, 0)])
def test_a_head_axis_that_cannot_be(axis: int | tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="head_axis"):
        peer_loss(*pair(4, 5, 6), head_axis=axis)


@pytest.mark.parametrize("shape", [(32, 5, 6), (2, 32, 5, 6)])
def test_features_that_may_be_batch_first_are_refused(shape: tuple[int, ...]) -> None:
    features = Features(*pair(*shape))
    with pytest.raises(ValueError, match=r"head_axis=\(\)"):
        PEER()(features)
    flat = Features(*(x.flatten(-3, -2) for x in (features.phi, features.phi_next)))
    torch.testing.assert_close(PEER()(features, head_axis=() if len(shape) == 3 else 0), PEER()(flat))


def test_a_row_of_weights_for_each_head_confirms_a_large_ensemble() -> None:
    phi, phi_next = pair(20, 5, 6)
    by_hand = (phi * phi_next).sum() / 5
    torch.testing.assert_close(PEER(1.0)(Features(phi, phi_next), head_axis=0), by_hand)
    torch.testing.assert_close(PEER(1.0)(Features(phi, phi_next, head_weight=torch.rand(20, 1, 6))), by_hand)
    with pytest.raises(ValueError, match="head_axis"):
        PEER(1.0)(Features(phi, phi_next, head_weight=torch.rand(6)))


def test_what_goes_with_a_sequence_is_flattened_with_it() -> None:
    phi, phi_next = pair(32, 5, 6)
    rows = {name: torch.rand(32, 5).double() for name in ("reward", "discount", "weight")}
    weight = torch.rand(6).double()
    found = BEER(1.0)(Features(phi, phi_next, head_weight=weight, **rows), head_axis=())
    flat = {name: value.flatten() for name, value in rows.items()}
    features = Features(phi.flatten(0, 1), phi_next.flatten(0, 1), head_weight=weight, **flat)
    torch.testing.assert_close(found, BEER(1.0)(features))
    online = torch.rand(32, 5, 6).double()
    found = DR3(1.0)(Features(phi, phi_next, phi_next_online=online), head_axis=1)
    torch.testing.assert_close(found, (phi * online).sum() / 32)


def test_diagnose_takes_sequences() -> None:
    phi, phi_next = pair(32, 5, 6)
    reward, gamma, weight = torch.rand(32, 5), torch.full((32, 5), 0.9), torch.rand(6)
    found = diagnose(phi, phi_next, head_weight=weight, reward=reward, gamma=gamma, head_axis=())
    flat = [tensor.flatten(0, 1) for tensor in (phi, phi_next)]
    assert found == diagnose(*flat, head_weight=weight, reward=reward.flatten(), gamma=gamma.flatten())
    assert found.rows == 160


class Sequence(nn.Module):
    """A recurrent critic: phi is (batch, time, dim)."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(BOTH, DIM, batch_first=True), nn.Linear(DIM, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.gru(x)[0].relu())


def test_a_tap_makes_one_batch_of_a_sequence() -> None:
    critic = Sequence()
    x = torch.randn(12, 7, BOTH)
    with RepresentationTap(critic) as tap:
        q = critic(x)
        assert tap.phi.shape == (12 * 7, DIM)
        torch.testing.assert_close(tap.phi @ tap.head_weight + critic.head.bias, q.flatten())
        value = peer_loss(tap.phi, torch.ones(12 * 7, DIM), 1.0)
        torch.testing.assert_close(value, critic.gru(x)[0].relu().sum(-1).mean())
    assert check_critic(critic, x).rows == 12 * 7


# -- gradients ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [peer_loss, PEER(), CosinePEER(), ConstrainedPEER()])
def test_a_phi_without_a_gradient_is_warned_of(call: Callable[..., Tensor]) -> None:
    phi, phi_next = pair(6, 4)
    with pytest.warns(NoGradientWarning, match="constant"):
        call(phi.detach(), phi_next)
    Watch.warned.clear()
    with torch.no_grad():
        call(phi, phi_next)  # evaluated on purpose


def test_a_phi_that_loses_its_gradient_later_is_warned_of_at_once() -> None:
    phi, phi_next = pair(6, 4)
    for _ in range(4):
        peer_loss(phi, phi_next)
    with torch.inference_mode():
        inferred = phi * 2
    with pytest.warns(NoGradientWarning):  # at call 5, not at call 8
        peer_loss(inferred, phi_next)
    with pytest.warns(TargetGradientWarning):
        peer_loss(phi, phi * 2)


def test_a_phi_made_under_no_grad_is_reported_by_the_check() -> None:
    class Detach(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.relu().detach()

    check = check_critic(mlp(last=Detach), torch.randn(ROWS, BOTH))
    assert not check.has_gradient
    assert not check.safe
    assert "use:" not in str(check)
    assert check_critic(mlp().requires_grad_(False), torch.randn(ROWS, BOTH)).has_gradient


@pytest.mark.parametrize(
    "call", [peer_loss, PEER(5e-4), CosinePEER(5e-4), FeatureNorm(5e-4), ConstrainedPEER(), BEER(5e-4)]
)
def test_a_target_in_inference_mode_works(call: Callable[..., Tensor]) -> None:
    phi, phi_next = pair(6, 4)
    with torch.inference_mode():
        inferred, reward, gamma, same = phi_next.clone(), torch.full((6,), 9.0), torch.full((6,), 0.9), torch.ones(6)
    losses = []
    for after in (inferred, phi_next):
        if isinstance(call, BEER):
            weight = torch.ones(3, 4)
            losses.append(
                call(Features(phi, after, head_weight=weight, reward=reward, discount=gamma, same_action=same))
            )
        else:
            losses.append(call(phi, after))
    first, second = (torch.autograd.grad(loss, phi)[0] for loss in losses)
    assert torch.equal(*losses)
    assert torch.equal(first, second)
    assert first.abs().sum() > 0


def test_a_tapped_target_in_inference_mode_works() -> None:
    critic = mlp()
    target = copy.deepcopy(critic)
    x, x_next = torch.randn(2, ROWS, BOTH)
    grads = []
    for mode in (torch.inference_mode, torch.no_grad):
        tap, target_tap = RepresentationTap(critic), RepresentationTap(target)
        with mode():
            y = 1 + 0.9 * target(x_next)
        ((critic(x) - y).square().mean() + peer_loss(tap.phi, target_tap.phi, 0.5)).backward()
        grads.append(critic[0].weight.grad.clone())
        critic.zero_grad()
        tap.remove()
        target_tap.remove()
    assert torch.equal(*grads)


# -- the wrong tensor --------------------------------------------------------------------------------------------------


def test_q_values_passed_for_phi_are_warned_of() -> None:
    q, q_next = pair(6, 1)
    with pytest.warns(SingleFeatureWarning, match="last layer"):
        peer_loss(q, q_next)


def test_a_target_evaluated_at_the_same_pair_is_warned_of() -> None:
    critic = mlp()
    target = copy.deepcopy(critic)
    x, x_next = torch.randn(2, ROWS, BOTH)
    tap, target_tap = RepresentationTap(critic), RepresentationTap(target)
    critic(x)
    with torch.no_grad():
        target(x)
    with pytest.warns(SamePairWarning, match=r"\(s', a'\)"):
        peer_loss(tap.phi, target_tap.phi)
    Watch.warned.clear()
    with pytest.warns(SamePairWarning):
        diagnose(tap.phi, target_tap.phi)
    Watch.warned.clear()
    with torch.no_grad():
        target(x_next)
    peer_loss(tap.phi, target_tap.phi)  # no warning, which would be an error
    dead = torch.zeros(ROWS, DIM, requires_grad=True)
    peer_loss(dead, dead.detach())


class Functional(nn.Module):
    """Its last layer is a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(BOTH, DIM)
        self.w = nn.Parameter(torch.randn(DIM))

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x).relu() @ self.w


def test_a_functional_last_layer_is_named() -> None:
    critic, x = Functional(), torch.randn(ROWS, BOTH)
    check = check_critic(critic, x)
    assert not check.safe
    assert check.last_layer is not None
    assert "w" in check.last_layer.split()
    assert "return phi" in str(check)
    assert "use:" not in str(check)
    with RepresentationTap(critic), pytest.warns(UncertainHeadWarning, match=r"parameter w.*return phi"):
        critic(x)


@pytest.mark.parametrize("frozen", [True, False])
def test_a_functional_last_layer_is_pointed_out_without_a_graph_too(frozen: bool) -> None:
    """The target runs first, under no_grad, where no graph names the parameter."""
    target = Functional().requires_grad_(not frozen)
    with RepresentationTap(target), torch.no_grad(), pytest.warns(UncertainHeadWarning, match=r"guess.*return phi"):
        target(torch.randn(ROWS, BOTH))


def test_a_critic_that_is_refused_keeps_no_hooks() -> None:
    critic = nn.Conv1d(1, 1, 1)
    with pytest.raises(TypeError, match="return phi"):
        RepresentationTap(critic)
    critic(torch.zeros(1, 1, 1))
    assert not critic._forward_hooks
    assert not critic._forward_pre_hooks


class WithReward(nn.Module):
    """Returns (q, reward), of one shape."""

    def __init__(self, *, shared: bool, names: tuple[str, str]) -> None:
        super().__init__()
        self.shared, self.names = shared, names
        for name in names:
            self.add_module(f"{name}_body", nn.Sequential(nn.Linear(BOTH, DIM), nn.ReLU()))
            self.add_module(name, nn.Linear(DIM, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        body = self.get_submodule(f"{self.names[0]}_body")
        shared = body(x)
        phis = [shared if self.shared else self.get_submodule(f"{name}_body")(x) for name in self.names]
        return tuple(self.get_submodule(name)(phi) for name, phi in zip(self.names, phis, strict=True))


@pytest.mark.parametrize(
    ("shared", "names"), [(False, ("q", "reward")), (True, ("q", "reward")), (True, ("out0", "out1"))]
)
def test_a_reward_is_not_taken_for_a_twin(shared: bool, names: tuple[str, str]) -> None:
    critic, x = WithReward(shared=shared, names=names), torch.randn(ROWS, BOTH)
    check = check_critic(critic, x)
    assert not check.is_ensemble
    assert not check.safe
    assert str(check).count("head=...") == 2
    with RepresentationTap(critic), pytest.warns(UncertainHeadWarning, match="only one is a Q value"):
        critic(x)
    with RepresentationTap(critic, names[0]) as tap:  # what the warning asks for
        q, _ = critic(x)
        torch.testing.assert_close(tap.phi @ tap.head_weight, (q - critic.get_submodule(names[0]).bias).flatten())


class OutOfReach(WithReward):
    """The second head reads a detached phi, for a reward that must not shape the features."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        phi = self.get_submodule(f"{self.names[0]}_body")(x)
        return self.get_submodule(self.names[0])(phi), self.get_submodule(self.names[1])(phi.clone().detach())


def test_a_head_on_a_detached_phi_is_no_twin() -> None:
    critic, x = OutOfReach(shared=False, names=("out0", "out1")), torch.randn(ROWS, BOTH)
    check = check_critic(critic, x)
    assert check.has_gradient
    assert not check.is_ensemble
    assert "ensemble" not in str(check).splitlines()[0]
    with RepresentationTap(critic), pytest.warns(UncertainHeadWarning, match="only one is a Q value"):
        critic(x)


def test_twins_with_numbered_names_are_an_ensemble() -> None:
    critic, x = WithReward(shared=False, names=("qf1", "qf2")), torch.randn(ROWS, BOTH)
    assert check_critic(critic, x).safe
    with RepresentationTap(critic) as tap:
        critic(x)
        assert tap.phi.shape == (2, ROWS, DIM)


def test_a_two_hot_head_has_no_drd() -> None:
    phi, phi_next = pair(ROWS, DIM)
    with pytest.raises(ValueError, match="two-hot bins have no DRD"):
        drd(phi, phi_next, head_weight=torch.ones(101, DIM), reward=torch.ones(ROWS), gamma=0.99)
    assert "two-hot" in str(check_critic(mlp(101), torch.randn(ROWS, BOTH)))
    report = diagnose(phi, phi_next)
    assert math.isnan(report.drd)
    assert 0 < report.cosine < 1


def test_each_warning_is_issued_once() -> None:
    phi, phi_next = pair(6, 4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(9):
            peer_loss(phi.detach(), phi_next.requires_grad_())
    assert [warning.category for warning in caught] == [TargetGradientWarning, NoGradientWarning]
    assert {warning.filename for warning in caught} == {__file__}
