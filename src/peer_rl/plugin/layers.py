"""What every hidden layer of a network computes on a batch: dormant units, ranks, norms and signs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from peer_rl.plugin.diagnostics import dormant_fraction, effective_rank

_MOST_ROWS = 4_096
"""Rows of a convolution's output (batch times places) of which singular values are computed."""
_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


@dataclass(frozen=True)
class LayerHealth:
    """One hidden layer on one batch; its features are what the next layer reads.

    name: of the layer that made the features. units: how many there are (channels of a convolution).
    weight_norm: Frobenius norm of its weights. feature_norm: mean norm of a row of features.
    dormant_fraction, positive_fraction: of units and of entries.
    effective_rank: srank with delta 0.01 (Kumar et al., 2021). entropy_rank: exp of the entropy of the normalised
        singular values (Roy and Vetterli, 2007). Both are of the features, not centred.
    """

    name: str
    units: int
    weight_norm: float
    feature_norm: float
    dormant_fraction: float
    positive_fraction: float
    effective_rank: float
    entropy_rank: float

    def as_dict(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


@dataclass
class _Call:
    name: str
    layer: nn.Module
    given: Tensor
    made: Tensor
    consumed: bool = False


def entropy_rank(phi: Tensor) -> float:
    """Compute exp(H(sigma / sum sigma)) of the singular values of phi (batch, dim); 0 for features that are all 0."""
    sigma = torch.linalg.svdvals(phi.detach().to("cpu", torch.float64))  # (*leading, min(batch, dim))
    share = sigma / sigma.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
    rank = torch.special.entr(share).sum(-1).exp() * (sigma[..., 0] > 0)
    return float(rank.mean())


def layer_health(network: nn.Module, *example_inputs: Any) -> list[LayerHealth]:
    """Run network(*example_inputs) once, in evaluation mode and without gradients; describe its hidden layers.

    Linear and convolutional layers count, in the order in which they run; the last layer's output is no feature.
    """
    calls: list[_Call] = []
    names = {module: name for name, module in network.named_modules()}

    def record(layer: nn.Module, args: tuple[Any, ...], made: Any) -> None:
        if args and isinstance(args[0], Tensor) and isinstance(made, Tensor):
            calls.append(_Call(names[layer], layer, args[0], made))

    with _hooked(network, record), torch.no_grad():
        network(*example_inputs)
    found = []
    for index, call in enumerate(calls):
        if any(call.given is given for given in example_inputs):
            continue
        source = _source_of(call, calls[:index])
        if source is not None:
            source.consumed = True
            found.append(_describe(source, call.given[..., : _width(source, call)]))
    return found


@contextmanager
def _hooked(network: nn.Module, record: Any) -> Iterator[None]:
    modes = [(module, module.training) for module in network.modules()]
    handles = [layer.register_forward_hook(record) for layer in network.modules() if isinstance(layer, _LAYERS)]
    network.eval()
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode


def _source_of(call: _Call, before: list[_Call]) -> _Call | None:
    """The layer whose features a layer reads: the nearest earlier one that is unread and fits.

    It fits with as many entries, or as the first entries of what is read: an encoder's features followed by an action.
    """
    for other in reversed(before):
        if other.consumed:
            continue
        if other.made[0].numel() == call.given[0].numel():
            return other
        width = other.made.shape[-1]
        first = call.given[..., :width]
        if first.shape == other.made.shape and any(
            torch.equal(first, made) for made in (other.made, other.made.relu())
        ):
            return other
    return None


def _width(source: _Call, call: _Call) -> int:
    """How much of what a layer reads its source has made."""
    same = source.made[0].numel() == call.given[0].numel()
    return call.given.shape[-1] if same else source.made.shape[-1]


def _describe(source: _Call, features: Tensor) -> LayerHealth:
    weight: Any = source.layer.weight
    norm = torch.linalg.vector_norm(features.flatten(1).double(), dim=-1).mean().item()
    channels = source.made.shape[1] if source.made.dim() > 2 else features.shape[-1]
    rows = features
    if source.made.dim() > 2 and not isinstance(source.layer, nn.Linear):  # a unit of a convolution is a channel
        rows = features.reshape(source.made.shape).movedim(1, -1).reshape(-1, channels)
    rows = rows.reshape(-1, rows.shape[-1])
    sampled = rows[:: max(1, len(rows) // _MOST_ROWS)]
    return LayerHealth(
        name=source.name,
        units=rows.shape[-1],
        weight_norm=torch.linalg.vector_norm(weight.double()).item(),
        feature_norm=norm,
        dormant_fraction=dormant_fraction(rows),
        positive_fraction=(rows > 0).double().mean().item(),
        effective_rank=effective_rank(sampled),
        entropy_rank=entropy_rank(sampled),
    )
