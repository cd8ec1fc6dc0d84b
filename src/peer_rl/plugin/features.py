"""What a regularizer reads, and what it refuses or warns about first.

Every call checks shapes, dtype and device. On the CPU every call also finds NaN and infinity, through the scalar loss
(0.3 us); an accelerator would have to wait for that, so there it happens at calls 1, 2, 4, 8, ... The same calls look
at the features' values for misuse, and every call at their gradients (``_SUSPICIONS``). Inside ``torch.compile`` only
shapes are checked.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from typing import ClassVar

import torch
from torch import Tensor
from torch.compiler import is_compiling

DEFAULT_BETA = 5e-4
"""The paper's beta, for every backbone."""


class SignedFeaturesWarning(UserWarning):
    """phi has negative entries, so a raw inner product is unbounded below; `CosinePEER` is bounded."""


class TargetGradientWarning(UserWarning):
    """phi_next carries a gradient, so it was not computed like a TD target."""


class NoGradientWarning(UserWarning):
    """phi carries no gradient, so the term is a constant that changes no weight."""


class SingleFeatureWarning(UserWarning):
    """phi has one feature per row: probably Q values were passed for phi."""


class SamePairWarning(UserWarning):
    """phi_next equals phi, so the target was probably evaluated at (s, a) instead of (s', a')."""


def _has_no_gradient(features: Features) -> bool:
    return torch.is_grad_enabled() and not features.phi.requires_grad


def _is_one_pair(features: Features) -> bool:
    phi, phi_next = features.phi.detach(), features.phi_next.detach()
    return bool(phi.any()) and bool(((phi - phi_next).norm(dim=-1) <= 1e-3 * phi.norm(dim=-1)).all())


_Suspicions = dict[type[UserWarning], tuple[Callable[["Features"], bool], str]]
_OF_GRADIENTS: _Suspicions = {
    TargetGradientWarning: (
        lambda features: features.phi_next.requires_grad,
        "phi_next carries a gradient, which is stopped here: compute it under torch.no_grad(), with the target critic",
    ),
    NoGradientWarning: (
        _has_no_gradient,
        "phi carries no gradient, so the term is a constant: pass phi as the critic computed it, not detached and "
        "not from torch.no_grad() or torch.inference_mode()",
    ),
}
_SUSPICIONS: _Suspicions = {
    SingleFeatureWarning: (
        lambda features: features.phi.shape[-1] == 1,
        "phi has 1 feature per row, as Q values have: pass the input of the critic's last layer, not its output",
    ),
    SamePairWarning: (
        _is_one_pair,
        "phi_next equals phi in every row: evaluate the target critic at the next pair (s', a'), not at (s, a)",
    ),
}
_SIGNED: _Suspicions = {
    SignedFeaturesWarning: (
        lambda features: bool((features.phi < 0).any()),
        "phi has negative entries (no ReLU before the last layer?), so the inner product is unbounded below and can "
        "inflate the features: use CosinePEER, which only rotates them",
    )
}


@dataclass(slots=True, eq=False)
class Features:
    """What a regularizer may read: phi and phi_next, (*heads, batch, dim); the other fields are optional.

    phi_next_online: the online network's features at (s', a'), shaped like phi.
    head_weight: the last layer's weight, broadcasting against phi, e.g. (dim,) or (heads, 1, dim); with
        `same_action` the whole matrix (actions, dim), whose Frobenius norm then counts.
    reward: (batch,), the reward or the n-step return. discount: (batch,), gamma^n (1 - terminated).
    same_action: (batch,), 1 where a = a'. With one output per action the theorem's features are
        phi(s) (x) e_a, so the similarity is the cosine of the phi times [a = a'].
    weight: (batch,), a factor of each row's term before the mean; 1 if not given. Rows with 0 are not diagnosed.
    """

    phi: Tensor
    phi_next: Tensor
    phi_next_online: Tensor | None = field(default=None, kw_only=True)
    head_weight: Tensor | None = field(default=None, kw_only=True)
    reward: Tensor | None = field(default=None, kw_only=True)
    discount: Tensor | None = field(default=None, kw_only=True)
    same_action: Tensor | None = field(default=None, kw_only=True)
    weight: Tensor | None = field(default=None, kw_only=True)

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
    if not (isfinite(beta) and beta >= 0):
        raise ValueError(f"beta must be finite and at least 0, not {beta!r}")
    return float(beta)


def check_pair(phi: Tensor, phi_next: Tensor, next_name: str = "phi_next") -> None:
    """Raise ValueError unless both are floating-point tensors, non-empty and of one (..., batch, dim) shape."""
    if not (isinstance(phi, Tensor) and isinstance(phi_next, Tensor)):
        name, given = (next_name, phi_next) if isinstance(phi, Tensor) else ("phi", phi)
        raise ValueError(f"{name} must be a tensor, not {type(given).__name__}")
    if phi.dim() < 2 or not phi.numel():
        raise ValueError(f"phi must have a non-empty shape (..., batch, dim), not {tuple(phi.shape)}")
    if not phi.is_floating_point():
        raise ValueError(f"phi must be floating point, not {phi.dtype}")
    if phi.shape != phi_next.shape:
        raise ValueError(f"{next_name} must have phi's shape {tuple(phi.shape)}, not {tuple(phi_next.shape)}")
    if phi.dtype != phi_next.dtype or phi.device != phi_next.device:
        given = f"{phi.dtype} on {phi.device}, not {phi_next.dtype} on {phi_next.device}"
        raise ValueError(f"{next_name} must have phi's dtype and device, {given}")


MOST_HEADS = 10
"""An axis longer than this (REDQ's ensemble has 10 critics) is not taken for heads unless `head_axis` says so."""


def heads_first(phi: Tensor, head_axis: int | Sequence[int] | None, *, name: str = "phi") -> Tensor:
    """Return phi as (*heads, batch, dim).

    head_axis: the axis, or axes, that number the heads; all others but the last are flattened into the batch, so that
        () makes one batch of a sequence critic's (batch, time, dim). None: phi is (*heads, batch, dim) already.
    Raises ValueError if that is None and an axis before the batch is longer than 10.
    """
    if head_axis is None:
        if phi.dim() > 2 and max(phi.shape[:-2]) > MOST_HEADS:
            raise ValueError(
                f"{name} of shape {tuple(phi.shape)} would be summed over {tuple(phi.shape[:-2])} heads and averaged "
                f"over {phi.shape[-2]} rows: pass head_axis=() if it has no heads (batch, time, dim), head_axis=1 "
                "for (batch, heads, dim), head_axis=0 to confirm (heads, batch, dim)"
            )
        return phi
    axes = [head_axis] if isinstance(head_axis, int) else list(head_axis)
    heads = sorted({axis % phi.dim() for axis in axes if -phi.dim() <= axis < phi.dim()})
    if len(heads) < len(axes) or phi.dim() - 1 in heads or len(heads) > phi.dim() - 2:
        raise ValueError(
            f"head_axis must leave out the last axis and one for the batch of {name} {tuple(phi.shape)}, "
            f"not be {head_axis!r}"
        )
    return phi.movedim(heads, list(range(len(heads)))).flatten(len(heads), -2)


def order_heads(features: Features, head_axis: int | Sequence[int] | None) -> Features:
    """Return the features with their heads first; see `heads_first`.

    A reward, discount, same_action or weight with all of phi's axes but the last follows phi. Without head_axis, a
    head_weight with a row for each head confirms that phi's leading axes are heads.
    """
    phi, weight = features.phi, features.head_weight
    if phi.dim() == 2 and head_axis is None:
        return features
    if head_axis is None:
        if weight is None or weight.shape[:-2] != phi.shape[:-2]:
            heads_first(phi, None)
        return features
    moved = {name: heads_first(getattr(features, name), head_axis) for name in ("phi", "phi_next")}
    if features.phi_next_online is not None:
        moved["phi_next_online"] = heads_first(features.phi_next_online, head_axis)
    for name in ("reward", "discount", "same_action", "weight"):
        value = getattr(features, name)
        if value is not None and value.shape == phi.shape[:-1]:
            moved[name] = heads_first(value.unsqueeze(-1), head_axis).squeeze(-1)
    return replace(features, **moved)


def per_row(value: Tensor, phi: Tensor, name: str) -> Tensor:
    """Return `value` in phi's dtype; raise ValueError unless it is (batch,) or phi.shape[:-1]."""
    rows = phi.shape[:-1]
    if value.dim() == 0 or value.shape[-1] != rows[-1] or not _broadcasts(value.shape, rows):
        raise ValueError(f"{name} must have shape ({rows[-1]},) or {tuple(rows)}, not {tuple(value.shape)}")
    return value.to(phi.dtype)


def squared_head_norm(head_weight: Tensor, phi: Tensor, same_action: Tensor | None) -> Tensor:
    """Compute |w|^2, or |W|_F^2 with `same_action`; the result broadcasts against phi.shape[:-1]."""
    shape = tuple(head_weight.shape)
    if head_weight.dim() == 0 or shape[-1] != phi.shape[-1]:
        raise ValueError(f"head_weight must have {phi.shape[-1]} entries on its last axis, not shape {shape}")
    if same_action is not None:
        if head_weight.dim() < 2 or not _broadcasts(shape[:-2], phi.shape[:-2]):
            raise ValueError(f"head_weight must be the (actions, dim) matrix with same_action, not shape {shape}")
        return head_weight.square().sum((-2, -1)).unsqueeze(-1)
    if (head_weight.dim() > 1 and shape[-2] != 1) or not _broadcasts(shape, phi.shape):
        raise ValueError(
            f"head_weight must broadcast against phi {tuple(phi.shape)} with one row per head, not have shape {shape}: "
            "one Q value per action needs same_action too; atoms, quantiles and two-hot bins have no DRD and no bound"
        )
    return head_weight.square().sum(-1)


def _broadcasts(shape: tuple[int, ...], onto: tuple[int, ...]) -> bool:
    return len(shape) <= len(onto) and all(a in (1, b) for a, b in zip(shape[::-1], onto[::-1], strict=False))


def safe_norm(x: Tensor) -> Tensor:
    """Norms over the last axis, with 1 in place of 0: a zero vector divided by it stays zero."""
    norm = torch.linalg.vector_norm(x, dim=-1)
    return torch.where(norm == 0, torch.ones_like(norm), norm)


class Watch:
    """Finds NaN, infinity and suspicious features cheaply; the module's docstring says when."""

    warned: ClassVar[set[type[UserWarning]]] = set()
    """Kinds of warning that this process has issued; each is issued once."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, features: Features, loss: Tensor, *, signed_is_safe: bool) -> Tensor:
        """Return the loss; raise ValueError if it is not finite."""
        if is_compiling():
            return loss
        self.calls = calls = self.calls + 1
        due = not calls & (calls - 1)
        if (due or loss.is_cpu) and not isfinite(loss.item()):
            raise ValueError(_blame(features))
        if features.phi_next.requires_grad or not features.phi.requires_grad:
            _look_for(_OF_GRADIENTS, features)
        if due:
            _look_for(_SUSPICIONS, features)
            if not signed_is_safe:
                _look_for(_SIGNED, features)
        return loss


def warn_of_one_pair(features: Features) -> None:
    """Issue `SamePairWarning` once, where phi_next equals phi."""
    _look_for({SamePairWarning: _SUSPICIONS[SamePairWarning]}, features)


def _look_for(suspicions: _Suspicions, features: Features) -> None:
    for kind, (found, words) in suspicions.items():
        if kind not in Watch.warned and found(features):
            Watch.warned.add(kind)
            warnings.warn(words, kind, stacklevel=4)  # the caller of the regularizer or of diagnose


def _blame(features: Features) -> str:
    for spec in fields(features):
        value = getattr(features, spec.name)
        if value is not None and not bool(torch.isfinite(value).all()):
            return f"{spec.name} must be finite, but holds NaN or infinity"
    return f"phi and phi_next are too large for {features.phi.dtype}: the regularizer's loss is not finite"
