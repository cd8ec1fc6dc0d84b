"""Taps on critics written as others write them."""

import copy
import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from critic_styles import ACTION, DIM, OBS, ROWS, CleanRLStyle, Joined, SB3Style, TianshouStyle, TorchRLStyle, mlp
from torch import Tensor, nn

from peer_rl import RepresentationTap, check_critic, diagnose, peer_loss
from peer_rl.plugin.tap import UncertainHeadWarning


@pytest.fixture
def inputs() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(ROWS, OBS), torch.randn(ROWS, ACTION)


def single_critics() -> list[nn.Module]:
    torch.manual_seed(1)
    return [CleanRLStyle(), TianshouStyle()]


@pytest.mark.parametrize("critic", single_critics(), ids=lambda critic: type(critic).__name__)
def test_head_of_phi_is_q(critic: nn.Module, inputs: tuple[Tensor, Tensor]) -> None:
    with RepresentationTap(critic) as tap:
        for _ in range(2):  # found in the first pass, remembered in the second
            q = critic(*inputs)
            assert tap.phi.shape == (ROWS, DIM)
            assert tap.head_weight.shape == (DIM,)
            bias = tap.heads[0].bias
            torch.testing.assert_close(tap.phi @ tap.head_weight + bias, q.flatten())


def test_twin_heads_in_one_module_are_an_ensemble(inputs: tuple[Tensor, Tensor]) -> None:
    torch.manual_seed(1)
    critic = SB3Style()
    for tap in (
        RepresentationTap(critic),
        RepresentationTap(critic, ["qf0.4", "qf1.4"]),
        RepresentationTap(critic, [critic.qf0[-1], critic.qf1[-1]]),
    ):
        q = torch.stack(critic(*inputs)).squeeze(-1)
        assert tap.head_names == ("qf0.4", "qf1.4")
        assert tap.phi.shape == (2, ROWS, DIM)
        assert tap.head_weight.shape == (2, 1, DIM)
        bias = torch.stack([head.bias for head in tap.heads])
        torch.testing.assert_close((tap.phi * tap.head_weight).sum(-1) + bias, q)
        diagnose(tap.phi, 2 * tap.phi, head_weight=tap.head_weight, reward=torch.ones(ROWS), gamma=0.9)
        tap.remove()


@pytest.mark.parametrize("join", [lambda q: torch.cat(q, -1), torch.stack, lambda q: torch.cat(q, 0)])
def test_joined_outputs_are_recognised(join: Callable[[list[Tensor]], Tensor], inputs: tuple[Tensor, Tensor]) -> None:
    torch.manual_seed(1)
    critic = Joined(join)
    tap = RepresentationTap(critic)
    critic(*inputs)
    assert tap.head_names == ("q1.4", "q2.4")


def test_dictionaries_go_in_and_out(inputs: tuple[Tensor, Tensor]) -> None:
    critic = TorchRLStyle()
    example = {"observation": inputs[0], "action": inputs[1]}
    tap = RepresentationTap(critic)
    critic(example)
    assert tap.head_names == ("module.4",)
    assert check_critic(critic, example).heads == ("module.4",)


def test_the_gradient_through_phi_is_the_right_one(inputs: tuple[Tensor, Tensor]) -> None:
    torch.manual_seed(1)
    critic = CleanRLStyle()
    target = copy.deepcopy(critic)
    tap, target_tap = RepresentationTap(critic), RepresentationTap(target)
    shifted = [tensor + 1 for tensor in inputs]
    with torch.no_grad():
        target(*shifted)
    q = critic(*inputs)
    (q.mean() + peer_loss(tap.phi, target_tap.phi, 0.5)).backward()
    tapped = [parameter.grad.clone() for parameter in critic.parameters()]
    critic.zero_grad()
    hidden = torch.relu(critic.fc2(torch.relu(critic.fc1(torch.cat(inputs, 1)))))
    after = torch.relu(critic.fc2(torch.relu(critic.fc1(torch.cat(shifted, 1)))))
    phi_next = after.detach()
    (critic.fc3(hidden).mean() + 0.5 * (hidden * phi_next).sum(-1).mean()).backward()
    for ours, plain in zip(tapped, critic.parameters(), strict=True):
        torch.testing.assert_close(ours, plain.grad)


def test_a_tap_changes_no_output_and_goes_away(inputs: tuple[Tensor, Tensor]) -> None:
    critic = CleanRLStyle()
    plain = critic(*inputs)
    tap = RepresentationTap(critic)
    assert torch.equal(critic(*inputs), plain)
    tap.remove()
    assert torch.equal(critic(*inputs), plain)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in critic.modules())
    with pytest.raises(RuntimeError, match="has been removed"):
        _ = tap.phi


def test_no_phi_before_the_first_call() -> None:
    tap = RepresentationTap(CleanRLStyle())
    with pytest.raises(RuntimeError, match="call the tapped CleanRLStyle itself first"):
        _ = tap.phi
    with pytest.raises(RuntimeError, match="call the tapped critic first"):
        _ = tap.head_weight


def test_calls_of_the_parts_do_not_count(inputs: tuple[Tensor, Tensor]) -> None:
    critic = SB3Style()
    tap = RepresentationTap(critic)
    critic(*inputs)
    before = tap.phi
    critic.qf0(torch.randn(2, OBS + ACTION))
    assert torch.equal(tap.phi, before)


class Sometimes(SB3Style):
    """Runs its second head only when asked to."""

    both = True

    def forward(self, obs: Tensor, action: Tensor) -> tuple[Tensor, ...]:
        joined = torch.cat([obs, action], dim=1)
        return tuple(net(joined) for net in self.q_networks[: 2 if self.both else 1])


def test_a_head_that_did_not_run_has_no_old_phi(inputs: tuple[Tensor, Tensor]) -> None:
    critic = Sometimes()
    tap = RepresentationTap(critic)
    critic(*inputs)
    critic.both = False
    critic(*inputs)
    with pytest.raises(RuntimeError, match=r"did not run the head qf1\.4"):
        _ = tap.phi


def test_a_failed_pass_leaves_no_old_phi(inputs: tuple[Tensor, Tensor]) -> None:
    critic = CleanRLStyle()
    tap = RepresentationTap(critic)
    critic(*inputs)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        critic(inputs[0], inputs[0])
    with pytest.raises(RuntimeError, match="no phi yet"):
        _ = tap.phi


def test_a_new_pass_frees_the_old_phi(inputs: tuple[Tensor, Tensor]) -> None:
    critic = CleanRLStyle()
    tap = RepresentationTap(critic)
    critic(*inputs)
    critic(*inputs)
    old = weakref.ref(tap.phi)
    critic(*inputs)
    gc.collect()
    assert old() is None
    assert tap._trace == []


def test_a_tapped_critic_can_be_copied_after_a_pass(inputs: tuple[Tensor, Tensor]) -> None:
    critic = CleanRLStyle()
    tap = RepresentationTap(critic)
    critic(*inputs)
    phi = tap.phi
    copy.deepcopy(critic)(*inputs)
    assert tap.phi is phi


def test_a_single_linear_layer_is_its_own_head() -> None:
    critic = nn.Linear(4, 1)
    tap, x = RepresentationTap(critic), torch.randn(5, 4)
    critic(x)
    assert tap.phi is x
    critic(input=x)
    assert tap.phi is x


def test_an_output_that_is_no_linear_layers_is_pointed_out(inputs: tuple[Tensor, Tensor]) -> None:
    torch.manual_seed(1)
    critic = Joined(lambda q: torch.minimum(*q) - 1)
    tap = RepresentationTap(critic)
    with pytest.warns(UncertainHeadWarning, match=r"'q2\.4'.*head="):
        critic(*inputs)
    assert tap.head_names == ("q2.4",)
    check = check_critic(critic, *inputs)
    assert not check.is_linear
    assert not check.safe
    assert "NOT the critic's output" in str(check)


@pytest.mark.parametrize("rows", [1, ROWS])
def test_a_minimum_over_heads_is_pointed_out(rows: int, inputs: tuple[Tensor, Tensor]) -> None:
    class Smaller(SB3Style):
        def forward(self, obs: Tensor, action: Tensor) -> Tensor:
            return torch.minimum(*super().forward(obs, action))

    critic, few = Smaller(), [tensor[:rows] for tensor in inputs]
    check = check_critic(critic, *few)
    assert not check.is_linear
    assert "NOT the critic's output" in str(check)
    with RepresentationTap(critic), pytest.warns(UncertainHeadWarning, match="give head="):
        critic(*few)
    assert check_critic(SB3Style(), *few).is_linear


def test_what_cannot_be_tapped_is_refused(inputs: tuple[Tensor, Tensor]) -> None:
    critic = CleanRLStyle()
    with pytest.raises(ValueError, match=r"head 'fc4' is not a layer.*fc1, fc2, fc3"):
        RepresentationTap(critic, "fc4")
    with pytest.raises(TypeError, match=r"head must be an nn.Linear.*not Sequential"):
        RepresentationTap(SB3Style(), "qf0")
    with pytest.raises(ValueError, match="must be a layer of the critic"):
        RepresentationTap(critic, nn.Linear(2, 1))
    with pytest.raises(ValueError, match="layers with equally many inputs"):
        RepresentationTap(critic, ["fc1", "fc3"])
    with pytest.raises(ValueError, match="at least one layer"):
        RepresentationTap(critic, [])
    with pytest.raises(TypeError, match="has none"):
        RepresentationTap(nn.Sequential(nn.Conv1d(1, 1, 1)))
    with pytest.raises(TypeError, match=r"must not be compiled already.*make the tap before"):
        RepresentationTap(torch.compile(critic, backend="eager"))
    with pytest.raises(TypeError, match="must not be a DataParallel"):
        RepresentationTap(nn.DataParallel(critic))
    with pytest.raises(TypeError, match=r"must be an nn.Module, not function"):
        RepresentationTap(lambda x: x)
    tap = RepresentationTap(critic, "fc3")
    with pytest.raises(RuntimeError, match=r"out of torch\.vmap"):
        torch.vmap(critic)(inputs[0][:, None], inputs[1][:, None])
    tap.remove()


def test_a_traced_critic_is_refused() -> None:
    with pytest.warns(DeprecationWarning, match="trace"):
        traced = torch.jit.trace(mlp(), torch.ones(1, OBS + ACTION))
    with pytest.raises(TypeError, match="must not be scripted or traced"):
        RepresentationTap(traced)
