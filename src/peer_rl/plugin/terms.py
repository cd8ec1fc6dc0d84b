"""The regularizers: each computes one scalar to add to a critic's loss.

Notation: phi is the critic's feature vector at (s, a), the input of its last layer; phi' is the *target*
network's at (s', a'), with the a' of the TD target; sg stops the gradient; a hat marks a unit vector. Every
term is an inner product over features, a mean over the batch and a sum over all leading axes (heads, views).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.compiler import is_compiling

from peer_rl.plugin.features import (
    DEFAULT_BETA,
    Features,
    Watch,
    check_beta,
    check_pair,
    heads_first,
    order_heads,
    per_row,
    safe_norm,
    squared_head_norm,
)


def mean_inner(x: Tensor, y: Tensor, scale: float | Tensor, weight: Tensor | None = None) -> Tensor:
    """Compute scale times the batch mean of weight <x, y>, summed over leading axes."""
    if x.dtype in (torch.float16, torch.bfloat16):
        # The sum over the batch, before it is divided, would leave the range of half precision.
        x, y = x.float(), y.float()
    if weight is not None:
        y = y * per_row(weight, y, "weight").unsqueeze(-1)
    # torch.dot is faster forwards, but its flattened gradient cannot be added to phi's in place.
    return (x * y).sum() * (scale / x.shape[-2])


class Regularizer(ABC):
    """A scalar term of the critic's loss: a subclass writes `loss`, calling the object checks the input too.

    Call it with `Features`, or with the tensors phi and phi_next. `needs` names the optional fields that it reads.
    Only `adapt` may change its state, because diagnostics call the object too; `state_dict` saves that state, so that
    a stopped run resumes from it.
    """

    name: ClassVar[str] = ""
    needs: frozenset[str] = frozenset()
    signed_is_safe: ClassVar[bool] = True

    def __init__(self, beta: float = DEFAULT_BETA) -> None:
        self._beta = check_beta(beta)
        self._watch = Watch()

    @property
    def beta(self) -> float:
        """Weight of the term."""
        return self._beta

    @beta.setter
    def beta(self, beta: float) -> None:
        self._beta = check_beta(beta)

    @property
    def is_off(self) -> bool:
        """Whether the term is 0, whatever the features."""
        return self._beta == 0

    @abstractmethod
    def loss(self, features: Features) -> Tensor:
        """Compute the term, beta included."""

    def adapt(self) -> dict[str, Tensor]:
        """Change the state by the latest call, once after each update; return what to log."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """State that `adapt` changes, as tensors and JSON values; empty for most."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        if state:
            raise ValueError(f"{self!r} keeps no state, but was given {', '.join(state)}")

    def __call__(
        self,
        features: Features | Tensor,
        phi_next: Tensor | None = None,
        *,
        head_axis: int | Sequence[int] | None = None,
    ) -> Tensor:
        """Check the input and compute the term; with beta 0 it is a plain 0 without a graph.

        Takes `Features`, or phi and phi_next; head_axis as in `peer_loss`.
        """
        if isinstance(features, Features):
            check_pair(features.phi, features.phi_next)
            features = order_heads(features, head_axis)
        else:
            if phi_next is None:
                raise ValueError("phi_next must be given with a phi tensor, not None")
            features = Features(*_checked_pair(features, phi_next, head_axis))
        if not is_compiling() and features.phi_next.is_inference():
            features = _out_of_inference(features)
        for name in self.needs:
            features.require(name)
        if self.is_off:
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
        return mean_inner(features.phi, features.phi_next.detach(), self.beta, features.weight)


class CosinePEER(Regularizer):
    """beta sg(|phi| |phi'|) cos(phi, sg phi'): the part of PEER's gradient that rotates phi.

    The value equals PEER's; the gradient at phi is beta (phi' - <phi^, phi'> phi^) / batch. A zero phi has no
    direction: its term is 0 and its gradient PEER's, so CosinePEER and FeatureNorm add up to it everywhere.
    """

    name = "cosine-peer"

    def loss(self, features: Features) -> Tensor:
        """Beta sg(|phi| |phi'|) cos(phi, sg phi'), with |phi'| cancelled."""
        norm = safe_norm(features.phi)
        turned = features.phi * (norm.detach() / norm).unsqueeze(-1)
        return mean_inner(turned, features.phi_next.detach(), self.beta, features.weight)


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
        return mean_inner(features.phi, share.unsqueeze(-1) * phi, self.beta, features.weight)


class DR3(Regularizer):
    """beta <phi(s, a), phi_online(s', a')>, gradient through both; a' as in the TD target (our reading)."""

    name = "dr3"
    needs = frozenset({"phi_next_online"})
    signed_is_safe = False

    def loss(self, features: Features) -> Tensor:
        """Beta <phi, phi_online'>."""
        phi_next = features.require("phi_next_online")
        check_pair(features.phi, phi_next, "phi_next_online")
        return mean_inner(features.phi, phi_next, self.beta, features.weight)


class BEER(Regularizer):
    """beta relu(cos(phi, sg phi') - sg bound): penalises only a cosine that the Bellman equation rules out.

    bound = (|phi|^2 + gamma^2 |phi'|^2 - r^2 / |w|^2) / (2 gamma |phi| |phi'|), gamma the row's discount.
    The mean leaves out rows without a bound: discount 0, zero head, zero phi or phi'; none left gives 0.
    `same_action` multiplies the cosine, and |w| is then the Frobenius norm.
    """

    name = "beer"
    needs = frozenset({"head_weight", "reward", "discount"})

    def loss(self, features: Features) -> Tensor:
        """Beta relu(cos - sg bound), averaged over the rows where the bound is defined."""
        excess, defined = self._excess(features)
        return self.beta * (excess.sum(-1) / defined.sum(-1).clamp(min=1)).sum()

    def _excess(self, features: Features, norm_next: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Per row: relu(cos - sg bound), and where the bound is defined; elsewhere the excess is 0."""
        phi, phi_next = features.phi, features.phi_next.detach()
        unit, unit_next = phi / safe_norm(phi).unsqueeze(-1), phi_next / safe_norm(phi_next).unsqueeze(-1)
        cosine = (unit * unit_next).sum(-1)  # (*leading, batch)
        if features.same_action is not None:
            cosine = cosine * per_row(features.same_action, phi, "same_action")
        with torch.no_grad():
            bound, defined = bellman_bound(features, norm_next)
        excess = torch.where(defined, torch.relu(cosine - bound), 0.0)
        if features.weight is not None:
            excess = excess * per_row(features.weight, phi, "weight")
        return excess, defined


class PublishedBEER(BEER):
    """BEER as its authors' code computes it, which differs from `BEER` in three ways.

    The bound's |phi'|^2 is that of the *online* critic at (s', pi(s')), given as phi_next_online; the product in the
    denominator stays the target's. gamma is 0.99 in every row, terminal ones too. The mean is over all rows.
    """

    name = "beer-published"
    needs = frozenset({"head_weight", "reward", "phi_next_online"})

    def __init__(self, beta: float = 1e-3, *, gamma: float = 0.99) -> None:
        super().__init__(beta)
        self.gamma = gamma

    def loss(self, features: Features) -> Tensor:
        """Beta relu(cos - sg bound), averaged over the batch."""
        online = features.require("phi_next_online")
        check_pair(features.phi, online, "phi_next_online")
        discount = features.phi.new_full(features.phi.shape[-2:-1], self.gamma)
        excess, _ = self._excess(replace(features, discount=discount), torch.linalg.vector_norm(online, dim=-1))
        return self.beta * excess.mean(-1).sum()


class NoRegularizer(Regularizer):
    """0: the plain backbone. Its beta is always 0."""

    name = "none"

    def __init__(self, beta: float = 0.0) -> None:
        check_beta(beta)
        super().__init__(0.0)

    def loss(self, features: Features) -> Tensor:
        """0."""
        return features.phi.new_zeros(())


def bellman_bound(features: Features, norm_above: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Compute BEER's bound per row, and where it is defined; elsewhere it reads 0. NaN input stays NaN.

    norm_above takes the place of |phi'| in the numerator.
    """
    phi = features.phi
    reward, gamma = (per_row(features.require(name), phi, name) for name in ("reward", "discount"))
    if not is_compiling() and phi.device.type == "cpu" and bool(((gamma < 0) | (gamma > 1)).any()):
        raise ValueError(f"discount must lie in [0, 1], not {gamma.min().item():g} to {gamma.max().item():g}")
    head = squared_head_norm(features.require("head_weight"), phi, features.same_action)
    norm = torch.linalg.vector_norm(phi, dim=-1)
    norm_next = torch.linalg.vector_norm(features.phi_next, dim=-1)
    twice = 2 * gamma * norm * norm_next  # (*leading, batch)
    defined = (twice != 0) & (head != 0)
    above = gamma * (norm_next if norm_above is None else norm_above)
    bound = (norm.square() + above.square() - reward.square() / head) / twice
    return torch.where(defined, bound, 0.0), defined


_peer_watch = Watch()


def _checked_pair(phi: Tensor, phi_next: Tensor, head_axis: int | Sequence[int] | None) -> tuple[Tensor, Tensor]:
    check_pair(phi, phi_next)
    if phi.dim() == 2 and head_axis is None:
        return phi, phi_next
    return heads_first(phi, head_axis), heads_first(phi_next, head_axis)


def _out_of_inference(features: Features) -> Features:
    """Copy what torch.inference_mode() made, which autograd refuses to keep for the backward pass."""
    given = {spec.name: getattr(features, spec.name) for spec in fields(features) if spec.name != "phi"}
    copies: dict[str, Any] = {name: None if value is None else value.clone() for name, value in given.items()}
    return replace(features, **copies)


def peer_loss(
    phi: Tensor, phi_next: Tensor, beta: float = DEFAULT_BETA, *, head_axis: int | Sequence[int] | None = None
) -> Tensor:
    """Compute PEER's term, beta <phi, sg phi'>, to be added to a critic's TD loss.

    phi: (*heads, batch, dim), from the critic at (s, a). Twin critics are stacked: (2, batch, dim).
    phi_next: of the same shape, from the target critic at (s', a'). No gradient flows into it.
    head_axis: for other layouts, the axis or axes of the heads: 1 for (batch, heads, dim), () for (batch, time, dim).
    The term is summed over heads and averaged over all other axes. A shape that may be batch-first raises ValueError.
    """
    if type(beta) is not float or not 0 <= beta < math.inf:
        beta = check_beta(beta)
    phi, phi_next = _checked_pair(phi, phi_next, head_axis)
    if beta == 0:
        return phi.new_zeros(())
    if not is_compiling() and phi_next.is_inference():
        phi_next = phi_next.clone()
    loss = mean_inner(phi, phi_next.detach(), beta)
    return _peer_watch(Features(phi, phi_next), loss, signed_is_safe=False)
