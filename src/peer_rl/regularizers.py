"""PEER and its relatives: one scalar to add to a critic's loss. Needs torch and nothing else of ours.

Notation: phi is the critic's feature vector at (s, a), the input of its last layer; phi' is the *target*
network's at (s', a'), with the a' of the TD target; sg stops the gradient; a hat marks a unit vector. Every
term is an inner product over features, a mean over the batch and a sum over all leading axes (heads, views).

What is checked when: shapes, dtype and device on every call. NaN and infinity on every call on the CPU,
through the scalar loss alone (0.3 us); on an accelerator, where reading it would wait for the device, at
calls 1, 2, 4, 8, ... The sign of the features at calls 1, 2, 4, 8, ... everywhere. Inside ``torch.compile``
shapes only.
"""

from __future__ import annotations

import difflib
import importlib
import math
import numbers
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import ClassVar

import torch
from torch import Tensor

DEFAULT_BETA = 5e-4
"""The paper's beta, for every backbone."""


class SignedFeaturesWarning(UserWarning):
    """Features with negative entries make a raw inner product unbounded below; `CosinePEER` is bounded."""


@dataclass(slots=True, eq=False)
class Features:
    """What a regularizer may look at: phi and phi_next, (*leading, batch, dim); the rest is optional.

    phi_next_online: the online network's features at (s', a'), shaped like phi.
    head_weight: the last layer's weight, broadcasting against phi, e.g. (dim,) or (heads, 1, dim); beside
        `same_action` the whole matrix (actions, dim), whose Frobenius norm then counts.
    reward: (batch,), the reward or the n-step return. discount: (batch,), gamma^n (1 - terminated).
    same_action: (batch,), 1 where a = a'. With one output per action the theorem's features are
        phi(s) (x) e_a, so the similarity is the cosine of the phi times [a = a'].
    """

    phi: Tensor
    phi_next: Tensor
    phi_next_online: Tensor | None = field(default=None, kw_only=True)
    head_weight: Tensor | None = field(default=None, kw_only=True)
    reward: Tensor | None = field(default=None, kw_only=True)
    discount: Tensor | None = field(default=None, kw_only=True)
    same_action: Tensor | None = field(default=None, kw_only=True)

    def require(self, name: str) -> Tensor:
        """Return an optional field; raise ValueError if it was not given."""
        value: Tensor | None = getattr(self, name)
        if value is None:
            raise ValueError(f"{name} must be given to this regularizer, not None")
        return value


def check_beta(beta: float) -> float:
    """Return beta as a float; raise ValueError unless it is a finite number of at least 0."""
    if isinstance(beta, bool) or not isinstance(beta, numbers.Real):
        raise ValueError(f"beta must be a number, not {beta!r}")
    if not (math.isfinite(beta) and beta >= 0):
        raise ValueError(f"beta must be finite and at least 0, not {beta!r}")
    return float(beta)


def check_pair(phi: Tensor, phi_next: Tensor, next_name: str = "phi_next") -> None:
    """Raise ValueError unless both are floating point, non-empty and of one (..., batch, dim) shape."""
    if phi.dim() < 2 or not phi.numel():
        raise ValueError(f"phi must have a non-empty shape (..., batch, dim), not {tuple(phi.shape)}")
    if not phi.is_floating_point():
        raise ValueError(f"phi must be floating point, not {phi.dtype}")
    if phi.shape != phi_next.shape:
        raise ValueError(f"{next_name} must have phi's shape {tuple(phi.shape)}, not {tuple(phi_next.shape)}")
    if phi.dtype != phi_next.dtype or phi.device != phi_next.device:
        given = f"{phi.dtype} on {phi.device}, not {phi_next.dtype} on {phi_next.device}"
        raise ValueError(f"{next_name} must have phi's dtype and device, {given}")


def per_row(value: Tensor, phi: Tensor, name: str) -> Tensor:
    """Return `value` in phi's dtype; raise ValueError unless it is (batch,) or phi.shape[:-1]."""
    rows = phi.shape[:-1]
    if value.dim() == 0 or value.shape[-1] != rows[-1] or not _broadcasts(value.shape, rows):
        raise ValueError(f"{name} must have shape ({rows[-1]},) or {tuple(rows)}, not {tuple(value.shape)}")
    return value.to(phi.dtype)


def squared_head_norm(head_weight: Tensor, phi: Tensor, same_action: Tensor | None) -> Tensor:
    """Compute |w|^2, or |W|_F^2 beside `same_action`; the result broadcasts against phi.shape[:-1]."""
    shape = tuple(head_weight.shape)
    if head_weight.dim() == 0 or shape[-1] != phi.shape[-1]:
        raise ValueError(f"head_weight must have {phi.shape[-1]} entries on its last axis, not shape {shape}")
    if same_action is not None:
        if head_weight.dim() < 2 or not _broadcasts(shape[:-2], phi.shape[:-2]):
            raise ValueError(f"head_weight must be the (actions, dim) matrix beside same_action, not shape {shape}")
        return head_weight.square().sum((-2, -1)).unsqueeze(-1)
    if (head_weight.dim() > 1 and shape[-2] != 1) or not _broadcasts(shape, phi.shape):
        raise ValueError(
            f"head_weight must broadcast against phi {tuple(phi.shape)} with one row per head, "
            f"not have shape {shape} (one row per action needs same_action)"
        )
    return head_weight.square().sum(-1)


def _broadcasts(shape: tuple[int, ...], onto: tuple[int, ...]) -> bool:
    return len(shape) <= len(onto) and all(a in (1, b) for a, b in zip(shape[::-1], onto[::-1], strict=False))


def _mean_inner(x: Tensor, y: Tensor, scale: float) -> Tensor:
    """Compute scale times the batch mean of <x, y>, summed over leading axes."""
    if x.dtype in (torch.float16, torch.bfloat16):
        # The sum over the batch, before it is divided, would leave the range of half precision.
        x, y = x.float(), y.float()
    # torch.dot is quicker forwards, but its flattened gradient cannot be added to phi's in place.
    return (x * y).sum() * (scale / x.shape[-2])


def safe_norm(x: Tensor) -> Tensor:
    """Norms over the last axis, with 1 in place of 0: a zero vector divided by it stays zero."""
    norm = torch.linalg.vector_norm(x, dim=-1)
    return torch.where(norm == 0, torch.ones_like(norm), norm)


class _Watch:
    """Finds NaN, infinity and signed features cheaply; the module's docstring says when."""

    warned: ClassVar[bool] = False

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, features: Features, loss: Tensor, *, signed_is_safe: bool) -> Tensor:
        if torch.compiler.is_compiling():
            return loss
        self.calls += 1
        due = self.calls & (self.calls - 1) == 0
        if (due or loss.is_cpu) and not math.isfinite(loss.item()):
            raise ValueError(_blame(features))
        if not due:
            return loss
        if not signed_is_safe and not _Watch.warned and bool((features.phi < 0).any()):
            _Watch.warned = True
            warnings.warn(
                "phi has negative entries (no ReLU before the last layer?), so the raw inner product is "
                "unbounded below and can inflate the features; CosinePEER, which only turns them, is safe",
                SignedFeaturesWarning,
                stacklevel=3,
            )
        return loss


def _blame(features: Features) -> str:
    for spec in fields(features):
        value = getattr(features, spec.name)
        if value is not None and not bool(torch.isfinite(value).all()):
            return f"{spec.name} must be finite, but holds NaN or infinity"
    return f"phi and phi_next are too large for {features.phi.dtype}: the regularizer's loss is not finite"


class Regularizer(ABC):
    """A scalar term of the critic's loss: a subclass writes `loss`, calling the object checks the input too.

    Call it with `Features`, or with the tensors phi and phi_next. `needs` names the optional fields it reads.
    """

    name: ClassVar[str] = ""
    needs: frozenset[str] = frozenset()
    signed_is_safe: ClassVar[bool] = True

    def __init__(self, beta: float = DEFAULT_BETA) -> None:
        self.beta = check_beta(beta)
        self._watch = _Watch()

    @abstractmethod
    def loss(self, features: Features) -> Tensor:
        """Compute the term, beta included."""

    def __call__(self, features: Features | Tensor, phi_next: Tensor | None = None) -> Tensor:
        """Check the input and compute the term; with beta 0 it is a plain 0 without a graph."""
        if isinstance(features, Tensor):
            if phi_next is None:
                raise ValueError("phi_next must be given beside a phi tensor, not None")
            features = Features(features, phi_next)
        check_pair(features.phi, features.phi_next)
        for name in self.needs:
            features.require(name)
        if self.beta == 0:
            return features.phi.new_zeros(())
        return self._watch(features, self.loss(features), signed_is_safe=self.signed_is_safe)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(beta={self.beta:g})"


class PEER(Regularizer):
    """beta <phi, sg phi'>, the paper's term. Its gradient at phi is beta phi' / batch."""

    name = "peer"
    signed_is_safe = False

    def loss(self, features: Features) -> Tensor:
        """Beta <phi, sg phi'>."""
        return _mean_inner(features.phi, features.phi_next.detach(), self.beta)


class CosinePEER(Regularizer):
    """beta sg(|phi| |phi'|) cos(phi, sg phi'): the part of PEER's gradient that turns phi.

    The value equals PEER's; the gradient at phi is beta (phi' - <phi^, phi'> phi^) / batch. A zero phi has no
    direction: its term is 0 and its gradient PEER's, so CosinePEER and FeatureNorm add up to it everywhere.
    """

    name = "cosine-peer"

    def loss(self, features: Features) -> Tensor:
        """Beta sg(|phi| |phi'|) cos(phi, sg phi'), with |phi'| cancelled."""
        norm = safe_norm(features.phi)
        turned = features.phi * (norm.detach() / norm).unsqueeze(-1)
        return _mean_inner(turned, features.phi_next.detach(), self.beta)


class FeatureNorm(Regularizer):
    """beta <phi, sg[<phi^, phi'> phi^]>: the part of PEER's gradient that shrinks phi; 0 for a zero phi."""

    name = "feature-norm"
    signed_is_safe = False

    def loss(self, features: Features) -> Tensor:
        """Beta <phi, sg[<phi^, phi'> phi^]>."""
        phi = features.phi.detach()
        norm = safe_norm(phi)
        # Divided twice: the square of a small norm would underflow, and an overflow must not end as 0.
        share = (phi * features.phi_next.detach()).sum(-1) / norm / norm  # (*leading, batch)
        return _mean_inner(features.phi, share.unsqueeze(-1) * phi, self.beta)


class DR3(Regularizer):
    """beta <phi(s, a), phi_online(s', a')>, gradient through both; a' as in the TD target (our reading)."""

    name = "dr3"
    needs = frozenset({"phi_next_online"})
    signed_is_safe = False

    def loss(self, features: Features) -> Tensor:
        """Beta <phi, phi_online'>."""
        phi_next = features.require("phi_next_online")
        check_pair(features.phi, phi_next, "phi_next_online")
        return _mean_inner(features.phi, phi_next, self.beta)


class BEER(Regularizer):
    """beta relu(cos(phi, sg phi') - sg bound): only a cosine that the Bellman equation forbids costs.

    bound = (|phi|^2 + gamma^2 |phi'|^2 - r^2 / |w|^2) / (2 gamma |phi| |phi'|), gamma the row's discount.
    The mean leaves out rows without a bound: discount 0, zero head, zero phi or phi'; none left gives 0.
    `same_action` multiplies the cosine, and |w| is then the Frobenius norm.
    """

    name = "beer"
    needs = frozenset({"head_weight", "reward", "discount"})

    def loss(self, features: Features) -> Tensor:
        """Beta relu(cos - sg bound), averaged over the rows where the bound is defined."""
        phi, phi_next = features.phi, features.phi_next.detach()
        unit, unit_next = phi / safe_norm(phi).unsqueeze(-1), phi_next / safe_norm(phi_next).unsqueeze(-1)
        cosine = (unit * unit_next).sum(-1)  # (*leading, batch)
        if features.same_action is not None:
            cosine = cosine * per_row(features.same_action, phi, "same_action")
        with torch.no_grad():
            bound, defined = bellman_bound(features)
        excess = torch.where(defined, torch.relu(cosine - bound), 0.0)
        return self.beta * (excess.sum(-1) / defined.sum(-1).clamp(min=1)).sum()


class NoRegularizer(Regularizer):
    """0: the plain backbone. Its beta is always 0."""

    name = "none"

    def __init__(self, beta: float = 0.0) -> None:
        check_beta(beta)
        super().__init__(0.0)

    def loss(self, features: Features) -> Tensor:
        """0."""
        return features.phi.new_zeros(())


def bellman_bound(features: Features) -> tuple[Tensor, Tensor]:
    """Compute BEER's bound per row, and where it is defined; elsewhere it reads 0. NaN input stays NaN."""
    phi = features.phi
    reward, gamma = (per_row(features.require(name), phi, name) for name in ("reward", "discount"))
    if not torch.compiler.is_compiling() and phi.device.type == "cpu" and bool(((gamma < 0) | (gamma > 1)).any()):
        raise ValueError(f"discount must lie in [0, 1], not {gamma.min().item():g} to {gamma.max().item():g}")
    head = squared_head_norm(features.require("head_weight"), phi, features.same_action)
    norm = torch.linalg.vector_norm(phi, dim=-1)
    norm_next = torch.linalg.vector_norm(features.phi_next, dim=-1)
    twice = 2 * gamma * norm * norm_next  # (*leading, batch)
    defined = (twice != 0) & (head != 0)
    bound = (norm.square() + (gamma * norm_next).square() - reward.square() / head) / twice
    return torch.where(defined, bound, 0.0), defined


_peer_watch = _Watch()


def peer_loss(phi: Tensor, phi_next: Tensor, beta: float = DEFAULT_BETA) -> Tensor:
    """Compute PEER's term, beta <phi, sg phi'>, to be added to a critic's TD loss.

    phi is (*leading, batch, dim), from the critic at (s, a); phi_next, of the same shape, from the target
    critic at (s', a'). Mean over the batch, sum over leading axes (twin critics: stack them). No gradient
    flows into phi_next.
    """
    if type(beta) is not float or not 0 <= beta < math.inf:
        beta = check_beta(beta)
    check_pair(phi, phi_next)
    if beta == 0:
        return phi.new_zeros(())
    loss = _mean_inner(phi, phi_next.detach(), beta)
    return _peer_watch(Features(phi, phi_next), loss, signed_is_safe=False)


class _Wrapped(Regularizer):
    def __init__(self, function: Callable[[Tensor, Tensor], Tensor], beta: float) -> None:
        super().__init__(beta)
        self.function = function
        self.label = getattr(function, "__name__", type(function).__name__)

    def loss(self, features: Features) -> Tensor:
        value = self.function(features.phi, features.phi_next.detach())
        if not isinstance(value, Tensor) or value.dim() != 0:
            shown = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(f"{self.label} must return a scalar tensor, not {shown}")
        return self.beta * value

    def __repr__(self) -> str:
        return f"wrap({self.label}, beta={self.beta:g})"


def wrap(function: Callable[[Tensor, Tensor], Tensor], beta: float = DEFAULT_BETA) -> Regularizer:
    """Make a regularizer, beta times function(phi, sg phi'), of a function that returns a scalar tensor."""
    if not callable(function):
        raise ValueError(f"function must be a callable of (phi, phi_next), not {function!r}")
    return _Wrapped(function, beta)


NAMES: dict[str, type[Regularizer]] = {
    kind.name: kind for kind in (PEER, CosinePEER, FeatureNorm, DR3, BEER, NoRegularizer)
}


def make(name: str, beta: float = DEFAULT_BETA) -> Regularizer:
    """Make a regularizer of a name in NAMES, ``module:Class`` or ``module:function``; beta 0 gives none."""
    beta = check_beta(beta)
    if ":" in name:
        found = _load(name)
    elif name in NAMES:
        found = NAMES[name]
    else:
        near = difflib.get_close_matches(name, NAMES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(NAMES)} and module:name"
        raise ValueError(f"regularizer {name!r} is unknown: {hint}")
    if isinstance(found, type) and not issubclass(found, Regularizer):
        raise ValueError(f"regularizer {name!r} must be a subclass of Regularizer or a function of (phi, phi_next)")
    if beta == 0:
        return NoRegularizer()
    return found(beta) if isinstance(found, type) else wrap(found, beta)


def _load(path: str) -> type[Regularizer] | Callable[[Tensor, Tensor], Tensor]:
    module_name, _, attribute = path.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (ModuleNotFoundError, AttributeError, ValueError) as error:
        raise ValueError(f"regularizer {path!r} cannot be loaded: {error}") from error
    if not callable(found):
        raise ValueError(f"regularizer {path!r} must be a class or a function, not {type(found).__name__}")
    return found  # type: ignore[no-any-return]
