"""Regularizers by name: the built-in ones, and classes or functions of the user's, as ``module:name``."""

from __future__ import annotations

import difflib
import importlib
import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from peer_rl.plugin.features import DEFAULT_BETA, Features, check_beta
from peer_rl.plugin.terms import BEER, DR3, PEER, CosinePEER, FeatureNorm, NoRegularizer, Regularizer

Function = Callable[[Tensor, Tensor], Tensor]

NAMES: dict[str, type[Regularizer]] = {
    kind.name: kind for kind in (PEER, CosinePEER, FeatureNorm, DR3, BEER, NoRegularizer)
}


class _Wrapped(Regularizer):
    def __init__(self, function: Function, beta: float) -> None:
        super().__init__(beta)
        self.function = function
        self.label = getattr(function, "__name__", type(function).__name__)

    def loss(self, features: Features) -> Tensor:
        """Beta times the function's value; rows of different weights are evaluated apart, as parts of one mean."""
        phi, phi_next, weight = features.phi, features.phi_next.detach(), features.weight
        if weight is None:
            return self.beta * self._value(phi, phi_next)
        total = phi.new_zeros(())
        for one in torch.unique(weight[weight != 0]):
            rows = weight == one
            total = total + one * rows.double().mean().to(phi.dtype) * self._value(
                phi[..., rows, :], phi_next[..., rows, :]
            )
        return self.beta * total

    def _value(self, phi: Tensor, phi_next: Tensor) -> Tensor:
        try:
            value = self.function(phi, phi_next)
        except Exception as error:
            raise ValueError(f"{self.label} failed: {type(error).__name__}: {error}{_place(error)}") from error
        if not isinstance(value, Tensor) or value.dim() != 0:
            shown = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(f"{self.label} must return a scalar tensor, not {shown}")
        if torch.is_grad_enabled() and phi.requires_grad and not value.requires_grad:
            raise ValueError(f"{self.label} must return a tensor with a gradient to phi: is phi detached in it?")
        return value

    def __repr__(self) -> str:
        return f"wrap({self.label}, beta={self.beta:g})"


def _place(error: Exception) -> str:
    """File and line of the exception in the user's function; the first frame is ours."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    return f" ({Path(frames[0].filename).name}, line {frames[0].lineno})" if frames else ""


def wrap(function: Function, beta: float = DEFAULT_BETA) -> Regularizer:
    """Make a regularizer, beta times function(phi, sg phi'), of a callable that returns a scalar tensor."""
    if isinstance(function, Regularizer):
        raise ValueError(f"function must be a callable of (phi, phi_next), and {function!r} is a regularizer already")
    if not callable(function):
        raise ValueError(f"function must be a callable of (phi, phi_next), not {function!r}")
    try:
        signature = inspect.signature(function)
    except ValueError:  # a function written in C has no signature
        return _Wrapped(function, beta)
    try:
        signature.bind("phi", "phi_next")
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise ValueError(f"{name}{signature} must be callable with two arguments, phi and phi_next: {error}") from error
    return _Wrapped(function, beta)


def make(name: str, beta: float = DEFAULT_BETA) -> Regularizer:
    """Make a regularizer from a name in NAMES or from ``module:name``; beta 0 makes `NoRegularizer`.

    ``module:name`` may be a subclass of Regularizer, made with beta; another class, made without arguments; or any
    callable. All but the first are wrapped: beta times what they return.
    """
    beta = check_beta(beta)
    if ":" in name:
        made = _own(name, beta)
    elif name in NAMES:
        made = NAMES[name](beta)
    else:
        near = difflib.get_close_matches(name, NAMES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(NAMES)} and module:name"
        raise ValueError(f"regularizer {name!r} is unknown: {hint}")
    return NoRegularizer() if beta == 0 else made


def _own(path: str, beta: float) -> Regularizer:
    found = _load(path)
    if isinstance(found, type):
        ours = issubclass(found, Regularizer)
        try:
            found = found(beta) if ours else found()
        except Exception as error:
            given = "with beta alone" if ours else "without arguments"
            raise ValueError(f"regularizer {path!r} cannot be made {given}: {error}") from error
        if ours:
            made: Regularizer = found
            return made
    try:
        return wrap(found, beta)
    except ValueError as error:
        raise ValueError(f"regularizer {path!r} cannot be used: {error}") from error


def _load(path: str) -> Any:
    module_name, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"regularizer {path!r} cannot be loaded: {error}; is its folder on PYTHONPATH?") from error
    except Exception as error:
        problem = f"importing it raised {type(error).__name__}: {error}"
        raise ValueError(f"regularizer {path!r} cannot be loaded: {problem}") from error
