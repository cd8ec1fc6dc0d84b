"""Critics in the styles of other libraries, ensembles of every kind: tapped, or refused with what to do."""

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from peer_rl import CosinePEER, RepresentationTap, TargetGradientWarning, check_critic, peer_loss
from peer_rl.plugin.features import Watch
from peer_rl.plugin.tap import UncertainHeadWarning

OBS, ACTION, DIM, ROWS, ACTIONS = 3, 2, 8, 6, 4


class CleanRL(nn.Module):
    """fc1, fc2, fc3, and functions between them."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(OBS + ACTION, DIM), nn.Linear(DIM, DIM), nn.Linear(DIM, 1)

    def forward(self, x: Tensor, a: Tensor) -> Tensor:
        x = torch.cat([x, a], 1)
        x = nn.functional.relu(self.fc1(x))
        x = nn.functional.relu(self.fc2(x))
        return self.fc3(x)


class TianshouMLP(nn.Module):
    """A Sequential called model."""

    def __init__(self, inputs: int, *sizes: int, activated: bool) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for size in sizes:
            layers += [nn.Linear(inputs, size), nn.ReLU()]
            inputs = size
        self.model = nn.Sequential(*(layers if activated else layers[:-1]))

    def forward(self, obs: Tensor) -> Tensor:
        return self.model(obs)


class TianshouNet(nn.Module):
    """The preprocessing net, which returns logits and a recurrent state."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.model = TianshouMLP(inputs, DIM, DIM, activated=True)

    def forward(self, obs: Tensor, state: Any = None, info: dict[str, Any] | None = None) -> tuple[Tensor, Any]:
        return self.model(obs), state


class TianshouCritic(nn.Module):
    """preprocess, then last."""

    def __init__(self) -> None:
        super().__init__()
        self.preprocess = TianshouNet(OBS + ACTION)
        self.last = TianshouMLP(DIM, 1, activated=False)

    def forward(self, obs: Tensor, act: Tensor | None = None, info: dict[str, Any] | None = None) -> Tensor:
        both = obs.flatten(1) if act is None else torch.cat([obs.flatten(1), act.flatten(1)], dim=1)
        logits, _ = self.preprocess(both)
        return self.last(logits)


class TianshouDiscrete(TianshouCritic):
    """Values of all actions and the state, as its DQN's network returns them."""

    def __init__(self) -> None:
        super().__init__()
        self.last = TianshouMLP(DIM, ACTIONS, activated=False)

    def forward(self, obs: Tensor, act: Tensor) -> tuple[Tensor, Any]:  # type: ignore[override]
        logits, state = self.preprocess(torch.cat([obs, act], 1), state={"hidden": torch.zeros(1)})
        return self.last(logits), state


class Dictionary:
    """As much of a TensorDict as a critic uses: keys, values, get and set."""

    def __init__(self, **tensors: Tensor) -> None:
        self.tensors = tensors

    def get(self, key: str) -> Tensor:
        return self.tensors[key]

    def set(self, key: str, value: Tensor) -> None:
        self.tensors[key] = value

    def values(self) -> Any:
        return self.tensors.values()


class TorchRLValue(nn.Module):
    """A module with in_keys and out_keys that writes into the dictionary it is given."""

    in_keys, out_keys = ("observation", "action"), ("state_action_value",)

    def __init__(self) -> None:
        super().__init__()
        self.module = nn.Sequential(
            nn.Linear(OBS + ACTION, DIM), nn.ReLU(), nn.Linear(DIM, DIM), nn.ReLU(), nn.Linear(DIM, 1)
        )

    def forward(self, tensordict: Dictionary) -> Dictionary:
        value = self.module(torch.cat([tensordict.get(key) for key in self.in_keys], -1))
        tensordict.set(self.out_keys[0], value)
        return tensordict


def plain(outputs: int = 1, before_head: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(OBS + ACTION, DIM), nn.ReLU(), nn.Linear(DIM, DIM), before_head(), nn.Linear(DIM, outputs)
    )


class Listed(nn.Module):
    """An ensemble in a ModuleList."""

    def __init__(self, count: int = 3) -> None:
        super().__init__()
        self.critics = nn.ModuleList(plain() for _ in range(count))

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        return torch.stack([critic(torch.cat([obs, action], 1)) for critic in self.critics])


class BatchedLinear(nn.Module):
    def __init__(self, heads: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.3 * torch.randn(heads, inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(heads, 1, outputs))

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)


class Batched(nn.Module):
    """An ensemble in batched parameters; ``trunk`` puts an nn.Linear in front."""

    def __init__(self, *, trunk: bool) -> None:
        super().__init__()
        self.body: nn.Module = nn.Linear(OBS + ACTION, DIM) if trunk else BatchedLinear(2, OBS + ACTION, DIM)
        self.head = BatchedLinear(2, DIM, 1)

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        x = torch.cat([obs, action], 1)
        return self.head(torch.relu(self.body(x.expand(2, *x.shape))))


class Vmapped(nn.Module):
    """An ensemble by torch.func: one module, called with the stacked parameters of several."""

    def __init__(self) -> None:
        super().__init__()
        self.base = plain()
        self.stacked, _ = torch.func.stack_module_state([plain() for _ in range(3)])

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        x = torch.cat([obs, action], 1)
        return torch.vmap(lambda parameters: torch.func.functional_call(self.base, parameters, (x,)))(self.stacked)


class Dueling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(OBS + ACTION, DIM), nn.ReLU())
        self.value = nn.Sequential(nn.Linear(DIM, DIM), nn.ReLU(), nn.Linear(DIM, 1))
        self.advantage = nn.Sequential(nn.Linear(DIM, DIM), nn.ReLU(), nn.Linear(DIM, ACTIONS))

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        hidden = self.body(torch.cat([obs, action], 1))
        advantage = self.advantage(hidden)
        return self.value(hidden) + advantage - advantage.mean(-1, keepdim=True)


class Distributional(nn.Module):
    """One head for all atoms; returns logits, or probabilities if asked."""

    def __init__(self, *, probabilities: bool) -> None:
        super().__init__()
        self.net, self.probabilities = plain(ACTIONS * 5), probabilities

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        logits = self.net(torch.cat([obs, action], 1)).reshape(-1, ACTIONS, 5)
        return logits.softmax(-1) if self.probabilities else logits


@pytest.fixture(autouse=True)
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr(Watch, "warned", set())


def inputs(seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(ROWS, OBS, generator=generator), torch.randn(ROWS, ACTION, generator=generator)


def as_torchrl(obs: Tensor, action: Tensor) -> tuple[Dictionary]:
    return (Dictionary(observation=obs, action=action),)


STYLES: dict[str, tuple[type[nn.Module], Callable[..., tuple[Any, ...]], tuple[str, ...], Callable[[Any], Tensor]]] = {
    "CleanRL": (CleanRL, lambda *both: both, ("fc3",), lambda q: q),
    "Tianshou": (TianshouCritic, lambda *both: both, ("last.model.0",), lambda q: q),
    "Tianshou, discrete": (TianshouDiscrete, lambda *both: both, ("last.model.0",), lambda q: q[0]),
    "TorchRL": (TorchRLValue, as_torchrl, ("module.4",), lambda td: td.get("state_action_value")),
    "ModuleList": (Listed, lambda *both: both, tuple(f"critics.{i}.4" for i in range(3)), lambda q: q),
}


@pytest.mark.parametrize("style", STYLES)
def test_phi_is_found_and_peer_trains_what_is_below_it(style: str) -> None:
    kind, given, names, q_of = STYLES[style]
    critic = kind()
    target = copy.deepcopy(critic)
    check = check_critic(critic, *given(*inputs()), target=target)
    assert (check.heads, check.feature_dim, check.safe) == (names, DIM, True)
    assert "its parameters take gradients: run it under torch.no_grad()" in str(check)
    tap, target_tap = RepresentationTap(critic), RepresentationTap(target)
    with torch.no_grad():
        target(*given(*inputs(1)))
    q = q_of(critic(*given(*inputs())))
    heads = torch.stack([layer(phi) for layer, phi in zip(tap.heads, tap.phi.reshape(-1, ROWS, DIM), strict=True)])
    torch.testing.assert_close(heads.reshape(q.shape), q)
    peer_loss(tap.phi, target_tap.phi).backward()
    trained = {name for name, parameter in critic.named_parameters() if parameter.grad is not None}
    assert trained == {name for name, _ in critic.named_parameters()} - {
        f"{n}.{p}" for n in names for p in ("weight", "bias")
    }


def test_a_layer_norm_before_the_head_is_signed_and_gets_cosine_peer() -> None:
    critic = plain(before_head=lambda: nn.LayerNorm(DIM))
    check = check_critic(critic, torch.cat(inputs(), 1))
    assert check.is_linear
    assert (check.signed, check.before, check.recommended) == (True, "LayerNorm", "CosinePEER")
    tap = RepresentationTap(critic)
    critic(torch.cat(inputs(), 1))
    CosinePEER()(tap.phi, 2 * tap.phi.detach())


def test_both_streams_of_a_dueling_critic_are_phi() -> None:
    critic = Dueling()
    check = check_critic(critic, *inputs())
    assert not check.is_linear
    assert "both streams' last ones" in str(check)
    tap = RepresentationTap(critic, ["value.2", "advantage.2"])
    critic(*inputs())
    hidden = critic.body(torch.cat(inputs(), 1))
    streams = torch.cat([critic.value[:2](hidden), critic.advantage[:2](hidden)], -1)
    both = torch.ones(ROWS, 2 * DIM)
    torch.testing.assert_close(peer_loss(tap.phi, torch.ones(2, ROWS, DIM)), peer_loss(streams, both))
    with pytest.raises(RuntimeError, match="have different outputs, so there is no one head weight"):
        _ = tap.head_weight


def test_a_distributional_critic_is_linear_up_to_its_logits() -> None:
    check = check_critic(Distributional(probabilities=False), *inputs())
    assert check.is_linear
    assert check.outputs == ACTIONS * 5
    squashed = Distributional(probabilities=True)
    assert "NOT the critic's output (dueling, distributional, squashed, a minimum?)" in str(
        check_critic(squashed, *inputs())
    )
    tap = RepresentationTap(squashed)
    with pytest.warns(UncertainHeadWarning, match=r"'net\.4'.*give head="):
        squashed(*inputs())
    named = RepresentationTap(squashed, "net.4")  # what the warning asks for
    squashed(*inputs())
    assert torch.equal(tap.phi, named.phi)


def test_batched_parameters_are_refused_with_what_to_do() -> None:
    for refused in (RepresentationTap, lambda critic: check_critic(critic, *inputs())):
        with pytest.raises(
            TypeError, match=r"must have an nn\.Linear as its last layer.*return phi from the critic's forward"
        ):
            refused(Batched(trunk=False))
    with pytest.raises(TypeError, match=r"head must be an nn\.Linear.*not BatchedLinear.*return phi"):
        RepresentationTap(Batched(trunk=True), "head")
    said = str(check_critic(Batched(trunk=True), *inputs()))
    assert "made by head (BatchedLinear), which is no nn.Linear" in said
    assert "not with a tap" in said
    assert "safe" not in said


def test_a_vmapped_ensemble_is_refused_with_what_to_do() -> None:
    critic = Vmapped()
    with pytest.raises(RuntimeError, match=r"out of torch\.vmap by a hook: return it from the critic's forward"):
        check_critic(critic, *inputs())
    with RepresentationTap(critic), pytest.raises(RuntimeError, match=r"out of torch\.vmap by a hook"):
        critic(*inputs())
    assert critic(*inputs()).shape == (3, ROWS, 1)


def test_a_functional_call_has_its_own_weights() -> None:
    critic = plain()
    parameters = {name: torch.randn_like(value) for name, value in critic.named_parameters()}
    for tap in (RepresentationTap(critic), RepresentationTap(critic, "4")):
        q = torch.func.functional_call(critic, parameters, (torch.cat(inputs(), 1),))
        torch.testing.assert_close(tap.phi @ tap.head_weight + parameters["4.bias"], q.flatten())
        critic(torch.cat(inputs(), 1))
        assert torch.equal(tap.head_weight, critic[-1].weight[0])
        tap.remove()


@pytest.mark.parametrize("head", [None, "fc3"])
def test_a_critic_compiled_after_the_tap_works(head: str | None) -> None:
    critic = CleanRL()
    reference = copy.deepcopy(critic)
    tap = RepresentationTap(critic, head)
    compiled = torch.compile(critic, backend="aot_eager")
    phi_next = torch.ones(ROWS, DIM)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.compile's own
        for seed in range(3):
            critic.zero_grad()
            (compiled(*inputs(seed)).mean() + peer_loss(tap.phi, phi_next, 0.5)).backward()
    reference_tap = RepresentationTap(reference)
    (reference(*inputs(2)).mean() + peer_loss(reference_tap.phi, phi_next, 0.5)).backward()
    for one, other in zip(critic.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_a_critic_compiled_before_the_tap_is_refused() -> None:
    whole, in_place = CleanRL(), CleanRL()
    in_place.compile(backend="eager")
    for compiled in (torch.compile(whole, backend="eager"), in_place):
        for refused in (RepresentationTap, lambda critic: check_critic(critic, *inputs())):
            with pytest.raises(TypeError, match=r"make the tap before torch\.compile"):
                refused(compiled)


def test_a_target_that_is_none_is_refused() -> None:
    critic = CleanRL()
    with pytest.raises(ValueError, match=r"it is the critic itself: copy\.deepcopy"):
        check_critic(critic, *inputs(), target=critic)
    shares = copy.deepcopy(critic)
    shares.fc1 = critic.fc1
    with pytest.raises(ValueError, match="shares parameters with the critic"):
        check_critic(critic, *inputs(), target=shares)
    with pytest.raises(ValueError, match="must have the critic's layers"):
        check_critic(critic, *inputs(), target=plain(2))
    frozen = copy.deepcopy(critic).requires_grad_(False)
    assert check_critic(critic, *inputs(), target=frozen).target == "a network of its own that takes no gradients"


def test_a_target_that_carries_a_gradient_is_warned_of_once() -> None:
    critic = CleanRL()
    tap, target_tap = RepresentationTap(critic), RepresentationTap(copy.deepcopy(critic))
    critic(*inputs())
    target_tap.critic(*inputs(1))  # without torch.no_grad()
    regularizer = CosinePEER()
    with pytest.warns(TargetGradientWarning, match=r"compute it under torch\.no_grad\(\)"):
        regularizer(tap.phi, target_tap.phi)
    for _ in range(4):  # a second warning would be an error
        loss = regularizer(tap.phi, target_tap.phi)
    loss.backward()
    assert all(parameter.grad is None for parameter in target_tap.critic.parameters())
