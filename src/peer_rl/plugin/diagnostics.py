"""Diagnostics of a critic's representation: the paper's DRD, Bellman gap, cosine, norms, rank, dormant units.

Computed in float64 on the CPU, without gradients or side effects. Undefined values are NaN in tensors and floats and
None in `Report.as_dict`; means leave them out. docs/theory.md says what DRD shows and what it does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from peer_rl.plugin import Features, bellman_bound, check_pair, heads_first, per_row, squared_head_norm
from peer_rl.plugin.features import warn_of_one_pair

RANK_DELTA = 0.01
"""srank: the smallest k whose k largest singular values hold 1 - delta of their sum (Kumar et al., 2021)."""

DORMANT_THRESHOLD = 0.025
"""A unit is dormant if its mean |activation|, over the layer's mean, is at most this (Sokar et al., 2023)."""


@dataclass(frozen=True)
class Report:
    """A batch's diagnosis: means over rows and heads. For one head of an ensemble, pass phi[0], phi_next[0].

    drd: cos(phi, phi') - (1/gamma - r^2 / (2 |w|^2)); the paper's property asks for at most 0.
    drd_share_positive: fraction of rows with a DRD above 0, among the drd_rows where it is defined.
    bellman_gap: the cosine minus the sharp bound for unnormalised features (BEER's); above 0, no exact Q
        function has these features, this head and this reward.
    cosine, inner_product: of phi and phi', as they are; `same_action` enters drd and bellman_gap only.
    feature_norm, next_feature_norm, head_norm: mean |phi|, mean |phi'|, mean |w| over the heads.
    effective_rank: srank of phi with delta 0.01.
    dormant_fraction: fraction of units whose normalised activation is at most 0.025.
    signed_fraction: fraction of the entries of phi below 0; above 0, use `CosinePEER`.
    rows, drd_rows: number of rows times heads; number of them with a DRD.
    """

    drd: float
    drd_share_positive: float
    bellman_gap: float
    cosine: float
    inner_product: float
    feature_norm: float
    next_feature_norm: float
    head_norm: float
    effective_rank: float
    dormant_fraction: float
    signed_fraction: float
    rows: int
    drd_rows: int

    def as_dict(self) -> dict[str, float | int | None]:
        """Return the fields for JSON, with None for NaN."""
        return {name: None if math.isnan(value) else value for name, value in asdict(self).items()}

    def __str__(self) -> str:
        return "\n".join(f"{name:<18} {value:.4g}" for name, value in asdict(self).items())


def drd(
    phi: Tensor,
    phi_next: Tensor,
    *,
    head_weight: Tensor,
    reward: Tensor,
    gamma: float | Tensor,
    same_action: Tensor | None = None,
) -> Tensor:
    """Compute the paper's discrepancy, cos(phi, phi') - (1/gamma - r^2 / (2 |w|^2)), per row.

    The result has shape phi.shape[:-1]. head_weight broadcasts against phi. gamma is a float in (0, 1], or
    one discount gamma^n (1 - terminated) per row, the reward then being the n-step return. NaN where it is
    undefined: discount 0, a zero head, a zero phi or phi'. For a head with one output per action give
    same_action, [a = a'] per row, and the whole weight matrix: cos [a = a'] and |W|_F take the places of cos
    and |w|. Not defined for distributional heads.
    """
    features = _checked(phi, phi_next, head_weight, reward, gamma, same_action)
    return _drd(features)


def diagnose(
    phi: Tensor,
    phi_next: Tensor,
    *,
    head_weight: Tensor | None = None,
    reward: Tensor | None = None,
    gamma: float | Tensor | None = None,
    same_action: Tensor | None = None,
    head_axis: int | Sequence[int] | None = None,
) -> Report:
    """Compute the health of a batch's representation; see `Report` for the numbers and `drd` for the arguments.

    Without head_weight, reward or gamma (for a distributional critic, for example) drd and bellman_gap are NaN.
    head_axis: as in `peer_loss`; it also applies to a reward, gamma or same_action with all axes of phi but the last.
    """
    check_pair(phi, phi_next)
    rows: dict[str, Any] = {"reward": reward, "gamma": gamma, "same_action": same_action}
    if head_axis is not None:
        for name, value in rows.items():
            if isinstance(value, Tensor) and value.shape == phi.shape[:-1]:
                rows[name] = heads_first(value.unsqueeze(-1), head_axis).squeeze(-1)
    phi, phi_next = heads_first(phi, head_axis), heads_first(phi_next, head_axis)
    features = _checked(phi, phi_next, head_weight, rows["reward"], rows["gamma"], rows["same_action"])
    warn_of_one_pair(features)
    return _report(features)


def _report(features: Features) -> Report:
    phi, phi_next = features.phi, features.phi_next
    head_weight, reward, gamma = features.head_weight, features.reward, features.discount
    discrepancy = gap = torch.full(phi.shape[:-1], math.nan, dtype=torch.float64)
    if head_weight is not None and reward is not None and gamma is not None:
        discrepancy, gap = _drd(features), _bellman_gap(features)
    head_norm = math.nan
    if features.head_weight is not None:
        head_norm = squared_head_norm(features.head_weight, phi, features.same_action).sqrt().mean().item()
    defined = ~discrepancy.isnan()
    drd_rows = int(defined.sum())
    return Report(
        drd=discrepancy.nanmean().item(),
        drd_share_positive=int((discrepancy > 0).sum()) / drd_rows if drd_rows else math.nan,
        bellman_gap=gap.nanmean().item(),
        cosine=_cosine(phi, phi_next).nanmean().item(),
        inner_product=(phi * phi_next).sum(-1).mean().item(),
        feature_norm=torch.linalg.vector_norm(phi, dim=-1).mean().item(),
        next_feature_norm=torch.linalg.vector_norm(phi_next, dim=-1).mean().item(),
        head_norm=head_norm,
        effective_rank=effective_rank(phi),
        dormant_fraction=dormant_fraction(phi),
        signed_fraction=(phi < 0).double().mean().item(),
        rows=defined.numel(),
        drd_rows=drd_rows,
    )


def diagnose_features(features: Features) -> Report:
    """Compute the health of the features that a regularizer reads, without the rows of weight 0."""
    f = _weighed(features)
    return _report(_checked(f.phi, f.phi_next, f.head_weight, f.reward, f.discount, f.same_action))


def _weighed(features: Features) -> Features:
    """The rows whose weight is not 0."""
    if features.weight is None or bool((features.weight != 0).all()):
        return features
    kept = features.weight != 0
    rows = {name: getattr(features, name) for name in ("reward", "discount", "same_action", "weight")}
    chosen = {name: None if value is None else value[..., kept] for name, value in rows.items()}
    phi, phi_next = features.phi[..., kept, :], features.phi_next[..., kept, :]
    return Features(phi, phi_next, head_weight=features.head_weight, **chosen)


def effective_rank(phi: Tensor, delta: float = RANK_DELTA) -> float:
    """Compute srank: the smallest k with sigma_1 + ... + sigma_k >= (1 - delta) of the sum; mean over heads.

    sigma are the singular values of phi (batch, dim), largest first. Features that are all 0 have rank 0.
    """
    sigma = torch.linalg.svdvals(phi.detach().to("cpu", torch.float64))  # (*leading, min(batch, dim))
    held = sigma.cumsum(-1)
    short = held < (1 - delta) * held[..., -1:]
    rank: Tensor = (short.sum(-1) + 1) * (held[..., -1] > 0)
    return float(rank.double().mean())


def dormant_fraction(phi: Tensor, threshold: float = DORMANT_THRESHOLD) -> float:
    """Compute the fraction of units whose mean |activation| is at most threshold times the mean over units."""
    activity = phi.detach().to("cpu", torch.float64).abs().mean(-2)  # (*leading, dim)
    return (activity <= threshold * activity.mean(-1, keepdim=True)).double().mean().item()


def gradient_ratio(td_loss: Tensor, regularizer_loss: Tensor, parameters: Iterable[Tensor]) -> float:
    """Compute |grad regularizer_loss| / |grad td_loss| over the parameters, leaving their .grad alone.

    `gradient_verdict` says what it means. A ratio of 0 / 0 is NaN. Both graphs are kept, so that the caller can still
    call backward. Raises ValueError where neither loss carries a gradient.
    """
    if not (td_loss.requires_grad or regularizer_loss.requires_grad):
        raise ValueError("td_loss and regularizer_loss carry no gradient: compute them outside torch.no_grad()")
    parameters = [parameter for parameter in parameters if parameter.requires_grad]
    if not parameters:
        raise ValueError("parameters must hold at least one tensor that requires a gradient, not none")
    over, under = (_gradient_norm(loss, parameters) for loss in (regularizer_loss, td_loss))
    if under == 0:
        return math.nan if over == 0 else math.inf
    return over / under


_VERDICTS = ((0.001, "too small to matter"), (0.01, "weak"), (0.1, "mild"), (0.5, "strong"))


def gradient_verdict(ratio: float, name: str = "PEER") -> str:
    """Say what a gradient ratio means for beta, in one line."""
    size = next((words for below, words in _VERDICTS if ratio < below), "competes with learning, try a smaller beta")
    return f"{name}'s gradient is {100 * ratio:.2g} % of the TD loss's: {size}"


def _gradient_norm(loss: Tensor, parameters: list[Tensor]) -> float:
    if not loss.requires_grad:
        return 0.0
    try:
        gradients = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        if "donated buffer" not in str(error):
            raise
        raise RuntimeError(
            "gradient_ratio keeps the graph for a second gradient, but torch.compile has donated its buffers: set "
            "torch._functorch.config.donated_buffer = False before compiling, or measure with the uncompiled critic"
        ) from error
    return math.sqrt(sum(g.double().square().sum().item() for g in gradients if g is not None))


def _checked(
    phi: Tensor,
    phi_next: Tensor,
    head_weight: Tensor | None,
    reward: Tensor | None,
    gamma: float | Tensor | None,
    same_action: Tensor | None,
) -> Features:
    """Return everything in float64 on the CPU; raise ValueError for what is not finite or out of range."""
    check_pair(phi, phi_next)
    if isinstance(gamma, Tensor):
        if bool(((gamma < 0) | (gamma > 1) | gamma.isnan()).any()):
            raise ValueError(f"gamma must lie in [0, 1], not {gamma.min().item():g} to {gamma.max().item():g}")
    elif gamma is not None:
        if isinstance(gamma, bool) or not 0 < gamma <= 1:
            raise ValueError(f"gamma must lie in (0, 1], not {gamma!r}")
        gamma = torch.full(phi.shape[-2:-1], gamma, dtype=torch.float64)
    given = {
        "phi": phi,
        "phi_next": phi_next,
        "head_weight": head_weight,
        "reward": reward,
        "discount": gamma,
        "same_action": same_action,
    }
    moved: dict[str, Tensor] = {}
    for name, value in given.items():
        if value is None:
            continue
        moved[name] = value.detach().to("cpu", torch.float64)
        if not bool(moved[name].isfinite().all()):
            raise ValueError(f"{name} must be finite, but holds NaN or infinity")
        if name in ("reward", "discount", "same_action"):
            moved[name] = per_row(moved[name], moved["phi"], "gamma" if name == "discount" else name)
    return Features(moved.pop("phi"), moved.pop("phi_next"), **moved)


def _cosine(phi: Tensor, phi_next: Tensor) -> Tensor:
    """Cosine per row; 0 / 0, and so NaN, for a zero vector."""
    unit, unit_next = (x / torch.linalg.vector_norm(x, dim=-1, keepdim=True) for x in (phi, phi_next))
    cosine: Tensor = (unit * unit_next).sum(-1)
    return cosine


def _similarity(features: Features) -> Tensor:
    cosine = _cosine(features.phi, features.phi_next)
    return cosine if features.same_action is None else cosine * features.same_action


def _drd(features: Features) -> Tensor:
    head = squared_head_norm(features.require("head_weight"), features.phi, features.same_action)
    gamma = features.require("discount")
    bound = 1 / gamma - features.require("reward").square() / (2 * head)
    value = _similarity(features) - bound
    return torch.where((gamma == 0) | (head == 0), math.nan, value)


def _bellman_gap(features: Features) -> Tensor:
    bound, defined = bellman_bound(features)
    return torch.where(defined, _similarity(features) - bound, math.nan)
