"""`check_critic`: one forward pass through a critic, and in words what PEER would do to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from peer_rl.tap import Call, check_hookable, find_heads, layer_name, tensors_in


@dataclass(frozen=True)
class CriticCheck:
    """What one forward pass showed; `str` says it in words.

    heads: names of the last layers. feature_dim: length of phi. outputs: of each head (1: one Q value).
    rows: in the example batch. before: the module that made phi, None if it was no module.
    signed: whether phi has negative entries. is_linear: whether head(phi) is the critic's output.
    zero_heads: heads whose weights are all 0. dead: whether phi is 0 throughout.
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
        else:
            yield "output:    head(phi) is NOT the critic's output (dueling, distributional or squashed?);"
            yield "           name the layer yourself with RepresentationTap(critic, head=...)"
        if self.outputs > 1:
            yield f"actions:   {self.outputs} outputs; if one per action, DRD and BEER need same_action"
        if self.zero_heads:
            yield f"zero head: the weights of {', '.join(self.zero_heads)} are all 0, so DRD is undefined"
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


def check_critic(critic: nn.Module, *example_inputs: Any) -> CriticCheck:
    """Run critic(*example_inputs) once, in evaluation mode, without a gradient; report what PEER would meet.

    Afterwards parameters, their .grad, buffers, train or eval mode and torch's random state are as before.
    Raises TypeError for a critic that hooks cannot see into, ValueError for inputs or features that are not
    finite.
    """
    check_hookable(critic)
    if not all(bool(x.isfinite().all()) for x in tensors_in(example_inputs) if x.is_floating_point()):
        raise ValueError("example_inputs must be finite, but hold NaN or infinity")
    ran: list[tuple[nn.Module, Tensor, Any]] = []

    def record(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if args and isinstance(args[0], Tensor):
            ran.append((module, args[0], output))

    leaves = [module for module in critic.modules() if not any(module.children())]
    handles = [leaf.register_forward_hook(record) for leaf in leaves]
    try:
        with _untouched(critic), torch.no_grad():
            output = critic(*example_inputs)
    finally:
        for handle in handles:
            handle.remove()
    trace = [Call(module, phi, made) for module, phi, made in ran if isinstance(module, nn.Linear)]
    if not trace:
        raise TypeError(f"critic must have an nn.Linear as its last layer, and {type(critic).__name__} ran none")
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
    )


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
