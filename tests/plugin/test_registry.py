"""Regularizers of the user's: what may be named, what is refused, each in one sentence."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from running import REGULARIZED, command, final, interrupted_at, leavings, peer_rl, tiny_run
from torch import Tensor

from peer_rl.errors import ConfigError, RunError
from peer_rl.plugin import PEER, Features, NoRegularizer, make, wrap

OWN = """
from functools import partial

import torch
from torch import nn

from peer_rl.plugin import PEER, Regularizer


def inner(phi, phi_next):
    return (phi * phi_next).sum(-1).mean(-1).sum()


class Plain:
    def __call__(self, phi, phi_next):
        return inner(phi, phi_next)


class Module(nn.Module):
    def forward(self, phi, phi_next):
        return inner(phi, phi_next)


class Subclass(Regularizer):
    def loss(self, features):
        return self.beta * inner(features.phi, features.phi_next.detach())


def scaled(phi, phi_next, scale):
    return scale * inner(phi, phi_next)


instance = Plain()
part = partial(scaled, scale=1.0)
ready = PEER(0.1)
number = 3
three = scaled
no_scalar = lambda phi, phi_next: (phi * phi_next).sum(-1)
a_float = lambda phi, phi_next: 1.0
no_gradient = lambda phi, phi_next: inner(phi.detach(), phi_next)


def raises(phi, phi_next):
    return phi @ phi_next


class NeedsArguments:
    def __init__(self, scale):
        self.scale = scale


class NotCallable:
    pass


class OtherBeta(Regularizer):
    def __init__(self, beta, scale):
        super().__init__(beta)

    def loss(self, features):
        return features.phi.sum()
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module of the user's, on the path."""
    name = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(OWN)
    (tmp_path / f"{name}_broken.py").write_text("1 / 0")
    (tmp_path / f"{name}_syntax.py").write_text("def")
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)


def features() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    phi, phi_next = (torch.rand(2, 4, 3, generator=generator) for _ in range(2))
    return phi.requires_grad_(), phi_next


@pytest.mark.parametrize("attribute", ["inner", "Plain", "Module", "Subclass", "instance", "part"])
def test_functions_classes_and_instances_go_where_peer_goes(own: str, attribute: str) -> None:
    phi, phi_next = features()
    regularizer = make(f"{own}:{attribute}", 0.1)
    loss = regularizer(phi, phi_next)
    torch.testing.assert_close(loss, PEER(0.1)(phi, phi_next))
    loss.backward()
    torch.testing.assert_close(phi.grad, 0.1 * phi_next / 4)
    assert regularizer.beta == 0.1
    assert regularizer.state_dict() == regularizer.adapt() == {}


@pytest.mark.parametrize(
    ("attribute", "message"),
    {
        "missing": "cannot be loaded: module '.*' has no attribute 'missing'; is its folder on PYTHONPATH",
        "number": "must be a callable of .phi, phi_next., not 3",
        "ready": "is a regularizer already",
        "three": "scaled.phi, phi_next, scale. must be callable with two arguments.*missing.*'scale'",
        "NeedsArguments": "cannot be made without arguments.*'scale'",
        "OtherBeta": "cannot be made with beta alone.*'scale'",
        "NotCallable": "must be a callable of .phi, phi_next.",
    }.items(),
)
def test_what_is_no_regularizer_is_refused_when_it_is_made(own: str, attribute: str, message: str) -> None:
    for beta in (0.1, 0.0):
        with pytest.raises(ValueError, match=f"^regularizer '{own}:{attribute}'.*{message}") as caught:
            make(f"{own}:{attribute}", beta)
        assert "\n" not in str(caught.value)


def test_what_cannot_be_imported_is_refused(own: str) -> None:
    for path, message in {
        "not_there:X": "No module named 'not_there'; is its folder on PYTHONPATH",
        f"{own}_broken:X": "importing it raised ZeroDivisionError",
        f"{own}_syntax:X": "importing it raised SyntaxError",
    }.items():
        with pytest.raises(ValueError, match=f"regularizer '{path}' cannot be loaded: {message}"):
            make(path)


@pytest.mark.parametrize(
    ("attribute", "message"),
    {
        "no_scalar": r"must return a scalar tensor, not shape \(2, 4\)",
        "a_float": "must return a scalar tensor, not float",
        "no_gradient": "must return a tensor with a gradient to phi",
        "raises": r"raises failed: RuntimeError: .*\(own_.*\.py, line \d+\)",
    }.items(),
)
def test_what_it_returns_is_checked(own: str, attribute: str, message: str) -> None:
    regularizer = make(f"{own}:{attribute}", 0.1)
    with pytest.raises(ValueError, match=message):
        regularizer(*features())


def test_without_a_gradient_to_lose_none_is_asked_for(own: str) -> None:
    phi, phi_next = features()
    regularizer = make(f"{own}:no_gradient", 0.1)
    with torch.no_grad():
        assert regularizer(phi, phi_next) > 0
    with torch.no_grad():
        assert regularizer(phi, phi_next) > 0


def test_beta_0_is_the_backbone(own: str, tmp_path: Path) -> None:
    assert isinstance(make(f"{own}:Plain", 0.0), NoRegularizer)
    assert tiny_run("dqn", tmp_path, regularizer=f"{own}:Plain", beta=0.0) == tiny_run("dqn", tmp_path, beta=0.0)


def test_a_wrapped_function_gets_a_detached_target() -> None:
    phi, phi_next = features()
    seen: list[Tensor] = []
    wrap(lambda a, b: (seen.append(b), (a * b).sum())[1], 1.0)(phi, (phi_next * phi).detach())
    assert not seen[0].requires_grad
    with pytest.raises(ValueError, match="function must be a callable"):
        wrap(3)  # type: ignore[arg-type]
    assert wrap(torch.dot).beta == 5e-4  # written in C, without a signature to look at


def floats(tree: dict[str, Any]) -> Iterator[Tensor]:
    for _, value in sorted(tree.items(), key=lambda item: str(item[0])):
        if isinstance(value, dict):
            yield from floats(value)
        elif isinstance(value, Tensor) and value.is_floating_point():
            yield value


def test_row_weights_enter_a_wrapped_mean() -> None:
    phi, phi_next = (torch.rand(2, 6, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    weight = torch.tensor([1.0, 0.5, 0.0, 0.25, 0.5, 1.0], dtype=torch.float64)
    features = Features(phi, phi_next.detach(), weight=weight)
    mine = wrap(lambda a, b: (a * b).sum(-1).mean(-1).sum(), 0.3)
    grads = [torch.autograd.grad(term(features), phi)[0] for term in (mine, PEER(0.3))]
    torch.testing.assert_close(*grads)
    torch.testing.assert_close(mine(features), PEER(0.3)(features))


@pytest.mark.filterwarnings("ignore::peer_rl.plugin.features.SignedFeaturesWarning")  # TD-MPC's ELU
@pytest.mark.parametrize("agent", REGULARIZED)
def test_every_agent_trains_with_a_wrapped_function(agent: str, tmp_path: Path) -> None:
    """PEER's formula, as a function of the user's, trains what PEER trains; without it something else comes out."""
    short = {"steps": 110, "protocol.eval_every": 0, "protocol.diagnose_every": 0}
    runs = {
        "own": {"regularizer": "toy_envs:mean_inner_product", "beta": 0.1},
        "peer": {"regularizer": "peer", "beta": 0.1},
        "none": {"beta": 0.0},
    }
    left = {name: final(tiny_run(agent, tmp_path, **short, **run)).components["agent"] for name, run in runs.items()}
    own, peer, none = (list(floats(left[name])) for name in runs)
    for one, other in zip(own, peer, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
    assert any(not torch.allclose(one, other, rtol=1e-3, atol=1e-5) for one, other in zip(own, none, strict=True))


class Moving(PEER):
    """A regularizer of the user's that changes while training."""

    def __init__(self, beta: float) -> None:
        super().__init__(beta)
        self.updates = 0

    def adapt(self) -> dict[str, Tensor]:
        self.updates += 1
        self.beta = min(1.0, 1.01 * self.beta)
        return {"own_beta": torch.tensor(self.beta)}

    def state_dict(self) -> dict[str, object]:
        return {"updates": self.updates, "beta": self.beta}

    def load_state_dict(self, state: dict[str, object]) -> None:
        self.updates, self.beta = state["updates"], state["beta"]


def test_one_that_changes_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "moving", sys.modules[__name__])
    whole = leavings(tiny_run("dqn", tmp_path / "whole", regularizer="moving:Moving"))
    assert b"own_beta" in whole["metrics"]
    with interrupted_at(200):
        tiny_run("dqn", tmp_path / "broken", checkpoint_seconds=0.0, regularizer="moving:Moving")
    assert leavings(tiny_run("dqn", tmp_path / "broken", regularizer="moving:Moving")) == whole


def test_on_the_command_line(own: str, tmp_path: Path) -> None:
    common = ("train", "dqn", "--task", "gridworld/paper", "--steps", "210", "--start-steps", "200", "--quiet")
    done = peer_rl(*common, "--regularizer", f"{own}:Plain", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob(f"runs/paper/gridworld-paper/dqn+regularizer-{own}-Plain+*"))
    bad = command(*common, "--regularizer", f"{own}:no_scalar", cwd=tmp_path)
    assert bad.returncode == 2
    assert "must return a scalar tensor" in bad.stderr
    assert len(bad.stderr.strip().splitlines()) == 1


def test_from_python_the_errors_are_ours(own: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="must return a scalar tensor"):
        tiny_run("dqn", tmp_path, regularizer=f"{own}:no_scalar")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        tiny_run("dqn", tmp_path, regularizer=f"{own}:missing")
