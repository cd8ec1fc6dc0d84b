"""`check_critic`: runs a critic once and reports where its phi is and whether PEER is safe to use on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from peer_rl.plugin.tap import (
    ONE_Q,
    RETURN_PHI,
    Call,
    check_hookable,
    find_heads,
    layer_name,
    looks_like_an_ensemble,
    made_after,
    tensors_in,
    untransformed,
)


@dataclass(frozen=True)
class CriticCheck:
    """What one forward pass in training mode showed; `str` is the report.

    heads: names of the last layers. feature_dim: length of phi. outputs: of each head (1: one Q value).
    rows: in the example batch. before: the module that made phi, None if it was a function.
    signed_fraction: fraction of phi's entries below 0. is_linear: whether head(phi) is the critic's output.
    is_ensemble: whether several heads are surely critics of one ensemble; True for one head.
    has_gradient: whether some head's phi depends on weights of the critic.
    zero_heads: heads whose weights are all 0. dead: whether phi is 0 throughout.
    last_layer: what made the output, if not an nn.Linear. target: findings about the target.
    """

    heads: tuple[str, ...]
    feature_dim: int
    outputs: int
    rows: int
    before: str | None
    signed_fraction: float
    is_linear: bool
    is_ensemble: bool
    has_gradient: bool
    zero_heads: tuple[str, ...]
    dead: bool
    last_layer: str | None = None
    target: str | None = None

    @property
    def signed(self) -> bool:
        """Whether phi has negative entries."""
        return self.signed_fraction > 0

    @property
    def safe(self) -> bool:
        """Whether PEER's inner product is bounded below and the heads are known for certain."""
        return self.is_linear and self.is_ensemble and self.has_gradient and not self.signed

    @property
    def recommended(self) -> str:
        """Name of the regularizer to use: PEER, or CosinePEER for signed features."""
        return "CosinePEER" if self.signed else "PEER"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        count = "one head" if len(self.heads) == 1 else f"{len(self.heads)} heads" + ", an ensemble" * self.is_ensemble
        yield f"head:      {', '.join(self.heads)} ({count}), {self.feature_dim} features -> {self.outputs}"
        if self.last_layer:
            yield f"output:    made by {self.last_layer}, which is no nn.Linear, so the head is a guess"
            yield f"PEER:      not with a tap; {RETURN_PHI}"
            return
        origin = self.before or "a function inside forward, not a module"
        sign = f"signed: {self.signed_fraction:.0%} of the entries are negative" if self.signed else "non-negative"
        yield f"phi:       {self.feature_dim} features made by {origin}; {sign} in this batch, in training mode"
        if self.is_linear:
            yield "output:    head(phi) is the critic's output, so Q = <phi, w> + bias"
        else:
            yield "output:    head(phi) is NOT the critic's output (dueling, distributional, squashed, a minimum?);"
            yield "           name the layer, or both streams' last ones, with RepresentationTap(critic, head=...);"
            yield "           for a functional layer (phi @ w) return phi from the critic's forward"
        if not self.is_ensemble:
            yield f"heads:     taken for {ONE_Q.format(self.heads[0])}"
        if self.outputs > 1:
            yield f"actions:   {self.outputs} outputs: for one Q value per action, DRD and BEER need same_action;"
            yield "           for atoms, quantiles or two-hot bins they are not defined"
        if self.zero_heads:
            yield f"zero head: the weights of {', '.join(self.zero_heads)} are all 0, so DRD is undefined"
        if self.target:
            yield f"target:    {self.target}"
        if self.dead:
            yield "dead:      phi is 0 throughout this batch; PEER has nothing to act on"
        if not self.has_gradient:
            yield "gradient:  phi depends on no weight of the critic (detached?), so PEER has nothing to act on"
        yield f"PEER:      {self._verdict()}"
        if self.is_linear and self.has_gradient:
            call = "CosinePEER()(tap.phi, target_tap.phi)" if self.signed else "peer_loss(tap.phi, target_tap.phi)"
            head = "" if self.is_ensemble else ", head=..."
            taps = f"RepresentationTap(critic{head}), RepresentationTap(critic_target{head})"
            yield f"use:       tap, target_tap = {taps}"
            yield f"           critic_loss = td_loss + {call}"

    def _verdict(self) -> str:
        if not self.has_gradient:
            return "no effect: phi carries no gradient"
        if self.signed:
            return "not safe: the inner product is unbounded below; use CosinePEER"
        if self.is_linear and self.is_ensemble:
            return "safe to use"
        return "safe only if the heads above are the ones you mean"


def check_critic(critic: nn.Module, *example_inputs: Any, target: nn.Module | None = None) -> CriticCheck:
    """Run critic(*example_inputs) once, as it trains, and report what PEER would act on.

    A critic in evaluation mode is put into training mode, where batch normalisation makes another phi. Afterwards
    parameters, their .grad, buffers, modes and torch's random state are as before.
    target: the target critic, to be inspected but not run.
    Raises TypeError for a critic that hooks cannot see into, ValueError for inputs or features that are not
    finite and for a target that is the critic itself or shares its parameters.
    """
    check_hookable(critic)
    about_target = _check_target(critic, target) if target is not None else None
    if not all(bool(x.isfinite().all()) for x in tensors_in(example_inputs) if x.is_floating_point()):
        raise ValueError("example_inputs must be finite, but hold NaN or infinity")
    ran, output = _run(critic, example_inputs)
    trace = [Call(module, phi, made, module.weight) for module, phi, made in ran if isinstance(module, nn.Linear)]
    if not trace:
        name = type(critic).__name__
        raise TypeError(f"critic must have an nn.Linear as its last layer, and {name} ran none: {RETURN_PHI}")
    heads, certain = find_heads(trace, output)
    names = tuple(layer_name(critic, head.module) for head in heads)
    phi = torch.stack([head.phi.detach() for head in heads])  # (heads, *leading, dim)
    if not bool(phi.isfinite().all()):
        raise ValueError("phi must be finite, but this critic's features hold NaN or infinity")
    makers = [type(module).__name__ for module, _, made in ran if made is heads[-1].phi]
    return CriticCheck(
        heads=names,
        feature_dim=phi.shape[-1],
        outputs=heads[0].module.out_features,
        rows=phi[0, ..., 0].numel(),
        before=makers[-1] if makers else None,
        signed_fraction=(phi < 0).double().mean().item(),
        is_linear=certain,
        is_ensemble=looks_like_an_ensemble(list(names), heads),
        has_gradient=any(head.phi.requires_grad for head in heads),
        zero_heads=tuple(name for name, head in zip(names, heads, strict=True) if not bool(head.module.weight.any())),
        dead=not bool(phi.any()),
        last_layer=None if certain else made_after(critic, trace, output),
        target=about_target,
    )


def _run(critic: nn.Module, inputs: tuple[Any, ...]) -> tuple[list[tuple[nn.Module, Tensor, Any]], Any]:
    """The leaf modules that ran, with input and output, and the critic's output."""
    ran: list[tuple[nn.Module, Tensor, Any]] = []

    def record(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if args and isinstance(args[0], Tensor):
            ran.append((module, untransformed(args[0]), output))

    # A linear layer with a parametrization, weight normalisation for example, has it as a child and is no leaf.
    layers = [module for module in critic.modules() if isinstance(module, nn.Linear) or not any(module.children())]
    handles = [layer.register_forward_hook(record) for layer in layers]
    try:
        with _untouched(critic), torch.enable_grad():
            return ran, critic(*inputs)
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise ValueError(
            "example_inputs must have at least 2 rows: batch normalisation in training mode needs them"
        ) from error
    finally:
        for handle in handles:
            handle.remove()


def _check_target(critic: nn.Module, target: nn.Module) -> str:
    """What is to be known about the target; raises ValueError if it is no network of its own."""
    check_hookable(target)
    own = {id(parameter) for parameter in critic.parameters()}
    if target is critic or any(id(parameter) in own for parameter in target.parameters()):
        shared = "is the critic itself" if target is critic else "shares parameters with the critic"
        raise ValueError(f"target must be a network of its own, and it {shared}: copy.deepcopy(critic) makes one")
    if any(is_lazy(parameter) for network in (critic, target) for parameter in network.parameters()):
        raise ValueError("target must be made after the critic's first forward pass, which gives lazy layers weights")
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
    """Run the block in training mode with a gradient to every weight; restore modes, buffers and random states."""
    modes = [(module, module.training) for module in critic.modules()]
    frozen = [parameter for parameter in critic.parameters() if not parameter.requires_grad]
    buffers = [
        (module, name, buffer, buffer.clone())
        for module in critic.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None and not is_lazy(buffer)
    ]
    gpus = {tensor.device.index for tensor in critic.parameters() if tensor.device.type == "cuda"}
    with torch.random.fork_rng(devices=[gpu for gpu in gpus if gpu is not None]):
        if not critic.training:
            critic.train()
        for parameter in frozen:
            parameter.requires_grad_(parameter.is_floating_point())
        try:
            yield
        finally:
            for parameter in frozen:
                parameter.requires_grad_(False)
            for module, mode in modes:
                module.training = mode
            for module, name, buffer, before in buffers:
                buffer.data.copy_(before)
                module._buffers[name] = buffer
