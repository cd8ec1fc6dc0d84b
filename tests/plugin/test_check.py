"""What check_critic says about critics written as others write them."""

from collections.abc import Callable

import pytest
import torch
from critic_styles import ACTION, DIM, OBS, ROWS, CleanRLStyle, SB3Style, mlp
from torch import Tensor, nn

from peer_rl import RepresentationTap, check_critic


@pytest.fixture
def inputs() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(ROWS, OBS), torch.randn(ROWS, ACTION)


def test_check_critic_says_what_it_found(inputs: tuple[Tensor, Tensor]) -> None:
    torch.manual_seed(1)
    twin = check_critic(SB3Style(), *inputs)
    assert twin.heads == ("qf0.4", "qf1.4")
    assert (twin.feature_dim, twin.outputs, twin.rows, twin.before) == (DIM, 1, ROWS, "ReLU")
    assert twin.safe
    assert twin.recommended == "PEER"
    for phrase in ("qf0.4, qf1.4", "2 heads", "ReLU", "non-negative", "safe to use", "peer_loss("):
        assert phrase in str(twin)

    signed = check_critic(mlp(last=nn.Tanh), torch.cat(inputs, 1))
    assert not signed.safe
    assert signed.recommended == "CosinePEER"
    for phrase in ("Tanh", "negative", "not safe", "CosinePEER()("):
        assert phrase in str(signed)

    assert "not a module" in str(check_critic(CleanRLStyle(), *inputs))
    assert "4 outputs" in str(check_critic(mlp(4), torch.cat(inputs, 1)))

    zero = mlp()
    nn.init.zeros_(zero[-1].weight)
    nn.init.zeros_(zero[-1].bias)
    report = check_critic(zero, torch.cat(inputs, 1))
    assert report.zero_heads == ("4",)
    assert "DRD is undefined" in str(report)

    dead = mlp()
    nn.init.constant_(dead[2].bias, -100.0)
    assert "phi is 0 throughout" in str(check_critic(dead, torch.cat(inputs, 1)))


@pytest.mark.parametrize("normalise", [nn.utils.parametrizations.spectral_norm, nn.utils.parametrizations.weight_norm])
def test_a_normalised_last_layer_is_linear(normalise: Callable[..., nn.Module], inputs: tuple[Tensor, Tensor]) -> None:
    critic = mlp()
    critic[-1] = normalise(critic[-1])
    rows = torch.cat(inputs, 1)
    found = check_critic(critic, rows)
    assert (found.heads, found.is_linear, found.safe) == (("4",), True, True)
    with RepresentationTap(critic) as tap:
        q = critic.eval()(rows)
        assert tap.head_names == found.heads
        torch.testing.assert_close(tap.phi @ tap.head_weight + critic[-1].bias, q[:, 0])


def test_check_critic_is_inert(inputs: tuple[Tensor, Tensor]) -> None:
    critic = nn.Sequential(
        nn.Linear(OBS + ACTION, DIM), nn.BatchNorm1d(DIM), nn.Dropout(0.5), nn.ReLU(), nn.Linear(DIM, 1)
    )
    critic(torch.cat(inputs, 1)).mean().backward()
    critic[2].eval()
    modes = [module.training for module in critic.modules()]
    state = {name: value.clone() for name, value in critic.state_dict().items()}
    gradients = [parameter.grad.clone() for parameter in critic.parameters()]
    random = torch.get_rng_state()
    check_critic(critic, torch.cat(inputs, 1))
    assert modes == [module.training for module in critic.modules()]
    assert all(torch.equal(value, state[name]) for name, value in critic.state_dict().items())
    assert all(torch.equal(p.grad, g) for p, g in zip(critic.parameters(), gradients, strict=True))
    assert torch.equal(torch.get_rng_state(), random)
    assert not any(module._forward_hooks for module in critic.modules())


class Noisy(nn.Module):
    """Draws random numbers and counts its calls even in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(OBS + ACTION, 1)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.head(x + torch.randn_like(x).abs())


def test_check_critic_puts_back_what_evaluation_mode_changes() -> None:
    critic, random = Noisy(), torch.get_rng_state()
    check_critic(critic, torch.ones(4, OBS + ACTION))
    assert critic.calls == 0
    assert torch.equal(torch.get_rng_state(), random)
    with pytest.raises(TypeError, match="positional"):
        check_critic(critic, torch.ones(4, OBS + ACTION), torch.ones(3))
    assert critic.training
    assert not critic.head._forward_hooks


def test_check_critic_refuses_what_is_not_finite(inputs: tuple[Tensor, Tensor]) -> None:
    with pytest.raises(ValueError, match=r"^example_inputs must be finite"):
        check_critic(CleanRLStyle(), inputs[0] * float("nan"), inputs[1])
    broken = CleanRLStyle()
    nn.init.constant_(broken.fc2.weight, float("nan"))
    with pytest.raises(ValueError, match=r"^phi must be finite"):
        check_critic(broken, *inputs)
    with pytest.raises(TypeError, match=r"nn.Linear as its last layer"):
        check_critic(nn.Identity(), inputs[0])
