"""PEER for an unmodified critic: hooks record phi, the input of its last linear layer, during each forward pass.

`RepresentationTap` keeps it; `check_critic` shares the code that finds the heads.
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

RETURN_PHI = (
    "if the last layer is linear (batched or functional parameters), return phi from the critic's forward "
    "and give that to peer_loss"
)


class UncertainHeadWarning(UserWarning):
    """Which linear layers are the critic's heads had to be guessed."""


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """One linear layer's run inside a forward pass."""

    module: nn.Linear
    phi: Tensor
    output: Tensor
    weight: Tensor


class RepresentationTap:
    """Keeps phi, with its gradient, of the latest call of `critic`.

    head: the last layer, an nn.Linear or its name in the critic; several for twin critics in one module. By default
        the first forward pass finds the linear layers whose outputs are the critic's outputs.
    Calls of the critic's submodules do not count. A new call of the critic replaces the old phi.
    """

    def __init__(self, critic: nn.Module, head: str | nn.Module | Sequence[str | nn.Module] | None = None) -> None:
        check_hookable(critic)
        self.critic = critic
        # A critic that is one linear layer is its own head; hooks on it would see their own begin and end.
        self.heads = _resolve(critic, critic if head is None and isinstance(critic, nn.Linear) else head)
        layers = self.heads or _linears(critic)  # before any hook: a critic that is refused keeps none
        self._trace: list[Call] = []
        self._running = False
        self._taken: dict[nn.Module, Tensor] = {}
        self._weights: dict[nn.Module, Tensor] = {}
        self._handles: list[RemovableHandle] = [
            critic.register_forward_pre_hook(self._begin),
            critic.register_forward_hook(self._end, always_call=True),
        ]
        self._layer_handles = self._watch(layers)

    @property
    def phi(self) -> Tensor:
        """The features of the latest call: (batch, dim), or (heads, batch, dim) with several heads.

        All axes before a layer's features are its batch: (batch, time, dim) becomes (batch * time, dim).
        """
        if not self._taken:
            if not self._handles:
                raise RuntimeError("the tap has been removed; make a new RepresentationTap(critic)")
            name = type(self.critic).__name__
            raise RuntimeError(f"no phi yet: call the tapped {name} itself first, then read tap.phi")
        if len(self._taken) < len(self.heads):
            missing = [layer_name(self.critic, head) for head in self.heads if head not in self._taken]
            raise RuntimeError(f"the latest forward pass did not run the head {', '.join(missing)}")
        taken = [phi.flatten(0, -2) if phi.dim() > 2 else phi for phi in (self._taken[head] for head in self.heads)]
        return taken[0] if len(taken) == 1 else torch.stack(taken)

    @property
    def head_weight(self) -> Tensor:
        """The last layer's weight, detached, in the shape that `drd` and `BEER` expect for this phi.

        (dim,) for one output, (heads, 1, dim) for several heads; (actions, dim) or (heads, actions, dim) for
        a head with one output per action, which also needs same_action.
        """
        if not self.heads:
            raise RuntimeError("no head yet: call the tapped critic first, or name the layer with head=...")
        # As it was in the latest call: torch.func.functional_call puts other weights in a module's place.
        weights = [self._weights.get(head, head.weight).detach() for head in self.heads]
        if len({weight.shape for weight in weights}) > 1:
            raise RuntimeError(f"{', '.join(self.head_names)} have different outputs, so there is no one head weight")
        if len(weights) > 1:
            return torch.stack(weights)
        return weights[0][0] if weights[0].shape[0] == 1 else weights[0]

    @property
    def head_names(self) -> tuple[str, ...]:
        """The heads' names inside the critic; empty until they are known."""
        return tuple(layer_name(self.critic, head) for head in self.heads)

    def clear(self) -> None:
        """Let go of the captured phi and, with it, of its graph."""
        self._taken, self._weights = {}, {}
        self._trace = []

    def remove(self) -> None:
        """Take the hooks off the critic and let go of phi."""
        for handle in (*self._handles, *self._layer_handles):
            handle.remove()
        self._handles, self._layer_handles = [], []
        self.clear()

    def __getstate__(self) -> dict[str, Any]:
        # A copied critic copies its hooks and so this tap; phi, inside a graph, cannot be copied.
        return {**self.__dict__, "_taken": {}, "_weights": {}, "_trace": []}

    def __enter__(self) -> RepresentationTap:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _watch(self, layers: Iterable[nn.Linear]) -> list[RemovableHandle]:
        if self.heads:
            return [layer.register_forward_pre_hook(self._take, with_kwargs=True) for layer in layers]
        return [layer.register_forward_hook(self._record, with_kwargs=True) for layer in layers]

    def _begin(self, _module: nn.Module, _args: Any) -> None:
        self.clear()
        self._running = True

    def _take(self, module: nn.Linear, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._running:
            self._taken[module] = untransformed(args[0] if args else kwargs["input"])
            self._weights[module] = module.weight

    def _record(self, module: nn.Linear, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> None:
        if self._running:
            phi = untransformed(args[0] if args else kwargs["input"])
            self._trace.append(Call(module, phi, output, module.weight))

    def _end(self, _module: nn.Module, _args: Any, output: Any) -> None:
        self._running = False
        if output is None:  # the forward pass failed
            self.clear()
        if self.heads or output is None:
            return
        calls, certain = find_heads(self._trace, output)
        doubt = self._doubt(calls, certain, output)
        self._trace = []
        if doubt:
            warnings.warn(doubt, UncertainHeadWarning, stacklevel=4)
        self.heads = tuple(call.module for call in calls)
        self._taken = {call.module: call.phi for call in calls}
        self._weights = {call.module: call.weight for call in calls}
        for handle in self._layer_handles:
            handle.remove()
        self._layer_handles = self._watch(self.heads)

    def _doubt(self, calls: list[Call], certain: bool, output: Any) -> str | None:
        """What makes the heads a guess, and what to do about it."""
        names = [layer_name(self.critic, call.module) for call in calls]
        if certain:
            if looks_like_an_ensemble(names, calls):
                return None
            return f"{' and '.join(names)} have outputs of one shape and are taken for {ONE_Q.format(names[0])}"
        after = made_after(self.critic, self._trace, output)
        if after:
            return f"phi is now the input of {names[0]!r}, but the output is made by {after}: {RETURN_PHI}"
        return (
            "the critic's output is no nn.Linear's (a minimum, dueling, phi @ w?); phi is now the input of "
            f"{names[0]!r}, which is a guess: give head=..., or return phi from the critic's forward"
        )


ONE_Q = "an ensemble of critics: if only one is a Q value, or all read one phi, give head={!r} or a list of heads"


def looks_like_an_ensemble(names: list[str], calls: list[Call]) -> bool:
    """Whether several heads have names that differ in a number only (qf0, qf1) and a phi each, all with a gradient."""
    alike = len({re.sub(r"\d+", "0", name) for name in names}) == len({call.phi.requires_grad for call in calls}) == 1
    return len(names) == 1 or (alike and len({call.phi.data_ptr() for call in calls}) == len(calls))


def made_after(critic: nn.Module, trace: list[Call], output: Any) -> str | None:
    """The owners of parameters that act on the output after, or without, the linear layers that ran.

    Walks the autograd graph from the output back to those layers' outputs; finds nothing where there is no graph.
    """
    names = {id(parameter): name for name, parameter in critic.named_parameters()}
    seen = {call.output.grad_fn for call in trace}
    to_do = [tensor.grad_fn for tensor in tensors_in(output)]
    owners: dict[str, None] = {}
    while to_do:
        node = to_do.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        to_do.extend(before for before, _ in node.next_functions)
        name = names.get(id(getattr(node, "variable", None)))
        if name is not None:
            owner = name.rpartition(".")[0]
            kind = type(critic.get_submodule(owner)).__name__
            owners[f"{owner} ({kind})" if owner else f"the parameter {name}"] = None
    return ", ".join(owners) or None


def check_hookable(critic: nn.Module) -> None:
    """Raise TypeError, saying what to do instead, unless hooks will run inside this critic."""
    if not isinstance(critic, nn.Module):
        raise TypeError(f"critic must be an nn.Module, not {type(critic).__name__}")
    if isinstance(critic, nn.DataParallel):
        raise TypeError("critic must not be a DataParallel, whose replicas run elsewhere: tap the module inside it")
    for module in critic.modules():
        if isinstance(module, torch.jit.ScriptModule):
            raise TypeError("critic must not be scripted or traced, where hooks do not run: tap the Python module")
        if hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None:
            raise TypeError(
                "critic must not be compiled already, where new hooks may be skipped: make the tap before "
                "torch.compile and then call the compiled one, or return phi from its forward"
            )


def _resolve(critic: nn.Module, head: str | nn.Module | Sequence[str | nn.Module] | None) -> tuple[nn.Linear, ...]:
    if head is None:
        return ()
    wanted = [head] if isinstance(head, str | nn.Module) else list(head)
    if not wanted:
        raise ValueError("head must name at least one layer, not none")
    known = dict(critic.named_modules())
    found: list[nn.Linear] = []
    for item in wanted:
        if isinstance(item, str) and item not in known:
            names = ", ".join(layer_name(critic, layer) for layer in _linears(critic)) or "none"
            raise ValueError(f"head {item!r} is not a layer of the critic; its linear layers: {names}")
        module = known[item] if isinstance(item, str) else item
        if not isinstance(module, nn.Linear):
            raise TypeError(
                f"head must be an nn.Linear, for Q = <phi, w> to hold, not {type(module).__name__}: {RETURN_PHI}"
            )
        if not any(module is layer for layer in known.values()):
            raise ValueError(f"head must be a layer of the critic, which this {module} is not")
        found.append(module)
    if len({layer.in_features for layer in found}) > 1:
        raise ValueError(f"head must name layers with equally many inputs, not {', '.join(map(str, found))}")
    return tuple(found)


def _linears(critic: nn.Module) -> list[nn.Linear]:
    layers = [module for module in critic.modules() if isinstance(module, nn.Linear)]
    if not layers:
        name = type(critic).__name__
        raise TypeError(f"critic must have an nn.Linear as its last layer, and {name} has none: {RETURN_PHI}")
    return layers


def layer_name(critic: nn.Module, layer: nn.Module) -> str:
    """Return the name of a layer inside the critic."""
    return next((name for name, module in critic.named_modules() if module is layer), "?") or "(the module itself)"


def untransformed(phi: Tensor) -> Tensor:
    """Return phi; raise RuntimeError inside torch.vmap, which phi could not leave."""
    if torch._C._functorch.is_batchedtensor(phi):
        raise RuntimeError(
            "phi cannot be taken out of torch.vmap by a hook: return it from the critic's forward, together with Q, "
            "and give it to peer_loss"
        )
    return phi


def tensors_in(output: Any) -> Iterator[Tensor]:
    """Yield all tensors in a critic's input or output, whatever its nesting."""
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, Mapping) or hasattr(output, "values"):
        for value in output.values():
            yield from tensors_in(value)
    elif isinstance(output, list | tuple):
        for value in output:
            yield from tensors_in(value)
    elif dataclasses.is_dataclass(output):
        for spec in dataclasses.fields(output):
            yield from tensors_in(getattr(output, spec.name))


def find_heads(trace: list[Call], output: Any) -> tuple[list[Call], bool]:
    """Find the calls whose outputs are the critic's, and True; False if unsure, with the last call if there is none."""
    if not trace:
        raise RuntimeError("the forward pass ran no linear layer: name the last layer with head=...")
    outputs = list(tensors_in(output))
    calls = [call for call in trace if any(holds(whole, call.output) for whole in outputs)]
    if not calls:
        return [trace[-1]], False
    # An output that holds both features and Q values may match a hidden layer; heads have the last one's shape.
    shape = calls[-1].module.weight.shape
    heads = {call.module: call for call in calls if call.module.weight.shape == shape}
    # The smaller of two heads may be the same one in the whole batch; another layer of its shape gives that away.
    twins = {call.module for call in trace if call.module.weight.shape == shape}
    return list(heads.values()), len(twins) == len(heads)


def holds(whole: Tensor, part: Tensor) -> bool:
    """Whether an output is a head's output, reshaped, or holds it along one axis, stacked or concatenated."""
    part, whole = part.detach(), whole.detach()
    if whole.numel() < part.numel() or whole.dtype != part.dtype or whole.device != part.device:
        return False
    flat = part.reshape(-1)
    if whole.numel() == part.numel():
        return bool(torch.allclose(whole.reshape(-1), flat, rtol=1e-4, atol=1e-6))
    if whole.numel() % part.numel():
        return False
    count = whole.numel() // part.numel()
    pieces = (piece for axis, size in enumerate(whole.shape) if size % count == 0 for piece in whole.chunk(count, axis))
    return any(torch.allclose(piece.reshape(-1), flat, rtol=1e-4, atol=1e-6) for piece in pieces)
