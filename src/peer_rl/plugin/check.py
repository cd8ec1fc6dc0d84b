"""`check_critic`: one forward pass through a critic, and in words what PEER would do to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from peer_rl.plugin.tap import (
    RETURN_PHI,
    Call,
    check_hookable,
    find_heads,
    holds,
    layer_name,
    tensors_in,
    untransformed,
)


@dataclass(frozen=True)
class CriticCheck:
    """What one forward pass showed; `str` says it in words.

    heads: names of the last layers. feature_dim: length of phi. outputs: of each head (1: one Q value).
    rows: in the example batch. before: the module that made phi, None if it was no module.
    signed: whether phi has negative entries. is_linear: whether head(phi) is the critic's output.
    zero_heads: heads whose weights are all 0. dead: whether phi is 0 throughout.
    last_layer: the layer that made the output, if it is no nn.Linear. target: what was found about the target.
    """

    heads: tuple[str, ...]
    feature_dim: int
    outputs: int
    rows: int
    before: str | None
    signed: bool
    is_linear: bool
    zero_heads: tuple[str, ...]
    dead: bool
    last_layer: str | None = None
    target: str | None = None

    @property
    def safe(self) -> bool:
        """Whether PEER's raw inner product is bounded below and the head is the right one."""
        return self.is_linear and not self.signed

    @property
    def recommended(self) -> str:
        """The name of the regularizer to use: PEER, or CosinePEER for signed features."""
        return "CosinePEER" if self.signed else "PEER"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        count = "one head" if len(self.heads) == 1 else f"{len(self.heads)} heads, an ensemble"
        yield f"head:      {', '.join(self.heads)} ({count}), {self.feature_dim} features -> {self.outputs}"
        origin = self.before or "a function inside forward, not a module"
        sign = "signed: some entries are negative" if self.signed else "non-negative in this batch"
        yield f"phi:       {self.feature_dim} features made by {origin}; {sign}"
        if self.is_linear:
            yield "output:    head(phi) is the critic's output, so Q = <phi, w> + bias holds"
        elif self.last_layer:
            yield f"output:    made by {self.last_layer}, which is no nn.Linear, so the head above is not it"
            yield f"PEER:      not with a tap; {RETURN_PHI}"
            return
        else:
            yield "output:    head(phi) is NOT the critic's output (dueling, distributional, squashed, a minimum?);"
            yield "           name the layer, or both streams' last ones, with RepresentationTap(critic, head=...)"
        if self.outputs > 1:
            yield f"actions:   {self.outputs} outputs; if one per action, DRD and BEER need same_action"
        if self.zero_heads:
            yield f"zero head: the weights of {', '.join(self.zero_heads)} are all 0, so DRD is undefined"
        if self.target:
            yield f"target:    {self.target}"
        if self.dead:
            yield "dead:      phi is 0 throughout this batch; PEER has nothing to act on"
        if self.signed:
            yield "PEER:      not safe: the raw inner product is unbounded below; use CosinePEER"
        elif self.is_linear:
            yield "PEER:      safe to use"
        else:
            yield "PEER:      safe only if the layer above is the one you mean"
        call = "peer_loss(tap.phi, target_tap.phi)"
        if self.signed:
            call = "CosinePEER()(tap.phi, target_tap.phi)"
        yield "use:       tap, target_tap = RepresentationTap(critic), RepresentationTap(critic_target)"
        yield f"           critic_loss = td_loss + {call}"


def check_critic(critic: nn.Module, *example_inputs: Any, target: nn.Module | None = None) -> CriticCheck:
    """Run critic(*example_inputs) once, in evaluation mode, without a gradient; report what PEER would meet.

    Afterwards parameters, their .grad, buffers, train or eval mode and torch's random state are as before.
    target: the target critic, if it is to be looked at too; it is not run.
    Raises TypeError for a critic that hooks cannot see into, ValueError for inputs or features that are not
    finite and for a target that is the critic itself or shares its parameters.
    """
    check_hookable(critic)
    about_target = _check_target(critic, target) if target is not None else None
    if not all(bool(x.isfinite().all()) for x in tensors_in(example_inputs) if x.is_floating_point()):
        raise ValueError("example_inputs must be finite, but hold NaN or infinity")
    ran: list[tuple[nn.Module, Tensor, Any]] = []

    def record(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if args and isinstance(args[0], Tensor):
            ran.append((module, untransformed(args[0]), output))

    # A linear layer with a parametrization, weight normalisation say, has that as a child and is no leaf.
    layers = [module for module in critic.modules() if isinstance(module, nn.Linear) or not any(module.children())]
    handles = [layer.register_forward_hook(record) for layer in layers]
    try:
        with _untouched(critic), torch.no_grad():
            output = critic(*example_inputs)
    finally:
        for handle in handles:
            handle.remove()
    trace = [Call(module, phi, made, module.weight) for module, phi, made in ran if isinstance(module, nn.Linear)]
    if not trace:
        name = type(critic).__name__
        raise TypeError(f"critic must have an nn.Linear as its last layer, and {name} ran none: {RETURN_PHI}")
    heads, certain = find_heads(trace, output)
    phi = torch.stack([head.phi for head in heads])  # (heads, *leading, dim)
    if not bool(phi.isfinite().all()):
        raise ValueError("phi must be finite, but this critic's features hold NaN or infinity")
    makers = [type(module).__name__ for module, _, made in ran if made is heads[-1].phi]
    return CriticCheck(
        heads=tuple(layer_name(critic, head.module) for head in heads),
        feature_dim=phi.shape[-1],
        outputs=heads[0].module.out_features,
        rows=phi[0, ..., 0].numel(),
        before=makers[-1] if makers else None,
        signed=bool((phi < 0).any()),
        is_linear=certain,
        zero_heads=tuple(layer_name(critic, h.module) for h in heads if not bool(h.module.weight.any())),
        dead=not bool(phi.any()),
        last_layer=None if certain else _last_layer(critic, ran, output),
        target=about_target,
    )


def _last_layer(critic: nn.Module, ran: list[tuple[nn.Module, Tensor, Any]], output: Any) -> str | None:
    """The name and kind of a layer with parameters that made the output, though it is no nn.Linear."""
    wholes = list(tensors_in(output))
    for module, _, made in reversed(ran):
        trained = not isinstance(module, nn.Linear) and any(True for _ in module.parameters(recurse=False))
        if trained and isinstance(made, Tensor) and any(holds(whole, made) for whole in wholes):
            return f"{layer_name(critic, module)} ({type(module).__name__})"
    return None


def _check_target(critic: nn.Module, target: nn.Module) -> str:
    """What is to be known about the target; raises ValueError if it is no network of its own."""
    check_hookable(target)
    own = {id(parameter) for parameter in critic.parameters()}
    if target is critic or any(id(parameter) in own for parameter in target.parameters()):
        shared = "is the critic itself" if target is critic else "shares parameters with the critic"
        raise ValueError(f"target must be a network of its own, and it {shared}: copy.deepcopy(critic) makes one")
    shapes = [[parameter.shape for parameter in network.parameters()] for network in (critic, target)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            "target must have the critic's layers, for phi and phi_next to be of one kind, and it has others"
        )
    if any(parameter.requires_grad for parameter in target.parameters()):
        return "its parameters take gradients: run it under torch.no_grad(), as for the TD target"
    return "a network of its own that takes no gradients"


@contextmanager
def _untouched(critic: nn.Module) -> Iterator[None]:
    """Run the block in evaluation mode; put modes, buffers and random states back afterwards."""
    modes = [(module, module.training) for module in critic.modules()]
    buffers = [(buffer, buffer.clone()) for buffer in critic.buffers()]
    gpus = {tensor.device.index for tensor in critic.parameters() if tensor.device.type == "cuda"}
    with torch.random.fork_rng(devices=[gpu for gpu in gpus if gpu is not None]):
        critic.eval()
        try:
            yield
        finally:
            for module, mode in modes:
                module.training = mode
            for buffer, before in buffers:
                buffer.data.copy_(before)
