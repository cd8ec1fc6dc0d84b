"""What a regularizer may look at, and what is refused or warned about before it is used.

Shapes, dtype and device are checked on every call. NaN and infinity on every call on the CPU, through the scalar
loss alone (0.3 us); on an accelerator, where reading it would wait for the device, at calls 1, 2, 4, 8, ... The sign
of the features, and whether phi_next carries a gradient, at calls 1, 2, 4, 8, ... everywhere. Inside
``torch.compile`` shapes only.
"""

from __future__ import annotations

import numbers
import warnings
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import ClassVar

import torch
from torch import Tensor
from torch.compiler import is_compiling

DEFAULT_BETA = 5e-4
"""The paper's beta, for every backbone."""


class SignedFeaturesWarning(UserWarning):
    """Features with negative entries make a raw inner product unbounded below; `CosinePEER` is bounded."""


class TargetGradientWarning(UserWarning):
    """phi_next carries a gradient, so it was not computed as a TD target is, or not by the target critic."""


_SIGNED = (
    "phi has negative entries (no ReLU before the last layer?), so the raw inner product is "
    "unbounded below and can inflate the features; CosinePEER, which only turns them, is safe"
)
_TARGET = (
    "phi_next carries a gradient, which is stopped here; compute it under torch.no_grad() beside the TD target, "
    "with the target critic, not with the one that is trained"
)


@dataclass(slots=True, eq=False)
class Features:
    """What a regularizer may look at: phi and phi_next, (*leading, batch, dim); the rest is optional.

    phi_next_online: the online network's features at (s', a'), shaped like phi.
    head_weight: the last layer's weight, broadcasting against phi, e.g. (dim,) or (heads, 1, dim); beside
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


def safe_norm(x: Tensor) -> Tensor:
    """Norms over the last axis, with 1 in place of 0: a zero vector divided by it stays zero."""
    norm = torch.linalg.vector_norm(x, dim=-1)
    return torch.where(norm == 0, torch.ones_like(norm), norm)


class Watch:
    """Finds NaN, infinity, signed features and a target with a gradient cheaply; the module's docstring says when."""

    warned: ClassVar[set[type[UserWarning]]] = set()
    """What this process has been warned of, once each."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, features: Features, loss: Tensor, *, signed_is_safe: bool) -> Tensor:
        """Return the loss, if there is nothing wrong with it."""
        if is_compiling():
            return loss
        self.calls = calls = self.calls + 1
        due = not calls & (calls - 1)
        if (due or loss.is_cpu) and not isfinite(loss.item()):
            raise ValueError(_blame(features))
        if due:
            self._look(features, signed_is_safe)
        return loss

    def _look(self, features: Features, signed_is_safe: bool) -> None:
        if features.phi_next.requires_grad:
            _warn_once(TargetGradientWarning, _TARGET)
        if not signed_is_safe and SignedFeaturesWarning not in self.warned and bool((features.phi < 0).any()):
            _warn_once(SignedFeaturesWarning, _SIGNED)


def _warn_once(kind: type[UserWarning], words: str) -> None:
    if kind not in Watch.warned:
        Watch.warned.add(kind)
        warnings.warn(words, kind, stacklevel=5)  # the caller of the regularizer


def _blame(features: Features) -> str:
    for spec in fields(features):
        value = getattr(features, spec.name)
        if value is not None and not bool(torch.isfinite(value).all()):
            return f"{spec.name} must be finite, but holds NaN or infinity"
    return f"phi and phi_next are too large for {features.phi.dtype}: the regularizer's loss is not finite"
