"""Where Stable-Baselines3 keeps its critics, and how a regularizer enters their update without a line of it copied.

Every update of a critic runs two passes in one order: the target critic on (s', a'), without gradients, for the TD
target; then the critic on (s, a), with gradients. A hook on the target's last layer keeps phi', the layer's input. A
hook on the critic's last layer meets phi, takes phi' and asks autograd to add the regularizer's gradient to phi's when
the TD loss goes backwards. phi' is used up by that, so the actor's pass through the critic, which comes later, adds
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from peer_rl.errors import ConfigError, RunError
from peer_rl.plugin import PEER, Regularizer, check_pair

_PAIRS = (("critic", "critic_target"), ("q_net", "q_net_target"), ("quantile_net", "quantile_net_target"))


def critic_and_target(model: object) -> tuple[nn.Module, nn.Module]:
    """An agent's critic and target critic; ConfigError for an agent that has none, as PPO."""
    for names in _PAIRS:
        critic, target = (getattr(model, name, None) for name in names)
        if isinstance(critic, nn.Module) and isinstance(target, nn.Module):
            for network in (critic, target):
                if hasattr(network, "_orig_mod") or getattr(network, "_compiled_call_impl", None) is not None:
                    raise ConfigError("the critic is compiled, where hooks may be skipped: use it as it was before")
            return critic, target
    raise ConfigError(
        f"{type(model).__name__} has no critic with a target network, so there is no TD target and no phi': "
        "use one of TD3, DDPG, SAC, TQC, DQN and QRDQN"
    )


def last_layers(critic: nn.Module) -> list[nn.Linear]:
    """The last layer of each of a critic's networks; ConfigError if one is not linear."""
    single = [getattr(critic, name, None) for name in ("q_net", "quantile_net")]
    networks = getattr(critic, "q_networks", None) or [network for network in single if network is not None]
    if not networks:
        raise ConfigError(
            f"{type(critic).__name__} has none of q_networks, q_net and quantile_net, where critics are kept"
        )
    layers = []
    for network in networks:
        last = network[-1] if isinstance(network, nn.Sequential) and len(network) else network
        if not isinstance(last, nn.Linear):
            raise ConfigError(
                f"the last layer of {type(critic).__name__} must be an nn.Linear, for Q = <phi, w> to hold, "
                f"not {type(last).__name__}"
            )
        layers.append(last)
    return layers


class CriticPasses:
    """Adds a regularizer's gradient to the critics' updates that happen inside ``watch``.

    The regularizer is called head by head. One that adapts is called once for all heads, stacked, because it adapts
    once an update and goes by its latest call.
    """

    def __init__(self, regularizer: Regularizer, name: str) -> None:
        self.regularizer, self.name = regularizer, name
        self.adapted: dict[str, Tensor] = {}
        self._adapts = type(regularizer).adapt is not Regularizer.adapt
        self._pairs: list[tuple[Tensor, Tensor]] = []
        self._kept: dict[int, Tensor] = {}
        self._calls = 0
        self._sum: Tensor | float = 0.0

    @contextmanager
    def watch(self, critic: nn.Module, target: nn.Module) -> Iterator[None]:
        """Hooks on both critics' last layers for as long as the block runs; head i goes with target head i."""
        calls, self._sum = self._calls, 0.0
        heads = zip(last_layers(critic), last_layers(target), strict=True)
        handles = [
            layer.register_forward_pre_hook(partial(action, index))
            for index, (head, target_head) in enumerate(heads)
            for layer, action in ((target_head, self._keep), (head, self._add))
        ]
        try:
            yield
            if self._kept or self._calls == calls:
                raise RunError(
                    "train did not run the target critic and then, with gradients, the critic, "
                    f"so {self.regularizer!r} was not added: use beta=0 with this algorithm"
                )
        finally:
            self._kept.clear()
            self._pairs.clear()
            for handle in handles:
                handle.remove()

    def total(self) -> float:
        """The regularizer's values in the last ``watch``, added up over heads and gradient steps."""
        return float(self._sum)

    def _keep(self, index: int, _layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        phi_next: Tensor = inputs[0]
        if phi_next.requires_grad:
            raise RunError("the target critic ran with gradients: run it under torch.no_grad() in train")
        if index in self._kept:
            raise RunError("the target critic ran twice before the critic, so it is not clear which pass phi' is from")
        self._kept[index] = phi_next

    def _add(self, index: int, layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        if not torch.is_grad_enabled():
            return
        phi_next = self._kept.pop(index, None)
        if phi_next is None:
            return
        phi: Tensor = inputs[0]
        if not phi.requires_grad:
            raise ConfigError(
                f"no weight of the critic lies before its last layer, so {self.regularizer!r} has nothing to act on: "
                "give net_arch a hidden layer"
            )
        if self._adapts:
            self._pairs.append((phi, phi_next))
            if not self._kept:
                self._add_to_all()
            return
        value, direction, scale = self._differentiate(phi.detach(), phi_next)
        self._count(value)
        if direction is not None:
            # A plain linear layer's backward has just made phi's gradient, and nobody else holds it: no copy is needed.
            add = Tensor.add_ if type(layer) is nn.Linear else Tensor.add
            phi.register_hook(lambda gradient: add(gradient, direction, alpha=scale))  # type: ignore[no-untyped-call]

    def _add_to_all(self) -> None:
        """One call for the heads of an update, the last of which has just met its phi; then the regularizer adapts."""
        phi, phi_next = (torch.stack(tensors) for tensors in zip(*self._pairs, strict=True))
        value, gradients, _ = self._differentiate(phi.detach(), phi_next)
        self._count(value)
        if gradients is not None:
            for (head, _), gradient in zip(self._pairs, gradients, strict=True):
                head.register_hook(gradient.add)  # type: ignore[no-untyped-call]
        self._pairs.clear()
        self.adapted = self.regularizer.adapt()

    def _count(self, value: Tensor) -> None:
        self._calls += 1
        self._sum = self._sum + value

    def _differentiate(self, phi: Tensor, phi_next: Tensor) -> tuple[Tensor, Tensor | None, float]:
        """The regularizer's value, and its gradient at phi as a tensor (None for 0) and a factor."""
        regularizer = self.regularizer
        if type(regularizer) is PEER and self._calls & (self._calls + 1):
            # PEER's gradient is known: one fused addition instead of a graph. The calls 1, 2, 4, 8, ... and those with
            # NaN go through the regularizer, which checks what it is given.
            check_pair(phi, phi_next)
            scale = regularizer.beta / len(phi)
            value = torch.dot(phi.reshape(-1), phi_next.reshape(-1)) * scale
            if not value.is_cpu or math.isfinite(value.item()):
                return value, phi_next, scale
        loss = regularizer(phi.requires_grad_(), phi_next)
        if not loss.requires_grad:
            return loss, None, 0.0
        (gradient,) = torch.autograd.grad(loss, phi, allow_unused=True)
        return loss.detach(), gradient, 1.0
