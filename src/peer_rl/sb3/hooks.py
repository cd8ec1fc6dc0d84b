"""Adds a regularizer's gradient to Stable-Baselines3's own critic update, by hooks on the critics' last layers.

Every critic update runs the target critic on (s', a') without gradients, then the critic on (s, a) with gradients. A
hook on the target's last layer keeps phi', the layer's input. A hook on the critic's last layer takes phi and phi', and
has autograd add the regularizer's gradient to phi's during the TD loss's backward pass. Each phi' is used once, so the
actor's later pass through the critic adds nothing.
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
from peer_rl.plugin import PEER, Features, Regularizer, check_pair

NOT_IN_ZIP = "not in the zip: "
"""Precedes the name of a regularizer of the user's own."""
_PAIRS = (("critic", "critic_target"), ("q_net", "q_net_target"), ("quantile_net", "quantile_net_target"))


def critic_and_target(model: object) -> tuple[nn.Module, nn.Module]:
    """An agent's critic and target critic; ConfigError for an agent without a target critic, such as PPO."""
    for names in _PAIRS:
        critic, target = (getattr(model, name, None) for name in names)
        if isinstance(critic, nn.Module) and isinstance(target, nn.Module):
            for network in (critic, target):
                if hasattr(network, "_orig_mod") or getattr(network, "_compiled_call_impl", None) is not None:
                    raise ConfigError(
                        "the critic is compiled, which may skip hooks: use the critic as it was before torch.compile"
                    )
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


def adapts(regularizer: Regularizer) -> bool:
    """Whether a regularizer changes itself while training."""
    return type(regularizer).adapt is not Regularizer.adapt


class GradientMeter:
    """Measures the norm of the regularizer's gradient over that of the TD loss's, in one update of a critic."""

    def __init__(self, critic: nn.Module) -> None:
        self._parameters = [parameter for parameter in critic.parameters() if parameter.requires_grad]
        self._added: dict[Tensor, Tensor] = {}
        self._total: dict[Tensor, Tensor] = {}
        self._handles = [
            parameter.register_post_accumulate_grad_hook(self._accumulated)  # type: ignore[no-untyped-call]
            for parameter in self._parameters
        ]

    def add(self, phi: Tensor, direction: Tensor, scale: float) -> None:
        """Carry the regularizer's gradient at one head's phi on to the critic's weights."""
        if self._total:  # the update to measure is over
            return
        found = torch.autograd.grad(phi, self._parameters, direction * scale, retain_graph=True, allow_unused=True)
        for parameter, gradient in zip(self._parameters, found, strict=True):
            if gradient is not None:
                self._added[parameter] = self._added.get(parameter, 0) + gradient

    def _accumulated(self, parameter: Tensor) -> None:
        if self._added and parameter not in self._total and parameter.grad is not None:
            self._total[parameter] = parameter.grad.clone()

    def ratio(self) -> float:
        """|regularizer's gradient| / |TD loss's gradient| over the critic's weights; NaN if nothing was measured."""
        for handle in self._handles:
            handle.remove()
        squares = {p: (total - self._added.get(p, 0)).double().square().sum() for p, total in self._total.items()}
        td = sum(value.item() for value in squares.values())
        added = sum(gradient.double().square().sum().item() for gradient in self._added.values())
        return math.sqrt(added / td) if td else math.nan


class CriticPasses:
    """Adds a regularizer's gradient to the critics' updates that happen inside ``watch``.

    The regularizer is called once per head. A regularizer that adapts does so once per update, by its latest call, so
    it is called once with all heads stacked.

    measure: set it to have the next update's gradient ratio measured; the latest is in gradient_ratio.
    """

    def __init__(self, regularizer: Regularizer, name: str) -> None:
        self.regularizer, self.name = regularizer, name
        self.adapted: dict[str, Tensor] = {}
        self._adapts = adapts(regularizer)
        self._pairs: list[tuple[Tensor, Tensor]] = []
        self._kept: dict[int, Tensor] = {}
        self._calls = 0
        self._sum: Tensor | float = 0.0
        self.measure = False
        self.gradient_ratio: float | None = None
        self._meter: GradientMeter | None = None

    @contextmanager
    def watch(self, critic: nn.Module, target: nn.Module) -> Iterator[None]:
        """Hook both critics' last layers while the block runs; head i is paired with target head i."""
        calls, self._sum = self._calls, 0.0
        self._meter = GradientMeter(critic) if self.measure else None
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
            if self._meter is not None:
                self.gradient_ratio, self.measure, self._meter = self._meter.ratio(), False, None
            self._kept.clear()
            self._pairs.clear()
            for handle in handles:
                handle.remove()

    def total(self) -> float:
        """Sum of the regularizer's values over heads and gradient steps of the last ``watch``."""
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
            if self._meter is not None:
                self._meter.add(phi, direction, scale)
            # A plain linear layer's backward pass makes phi's gradient, which nothing else holds: no copy is needed.
            add = Tensor.add_ if type(layer) is nn.Linear else Tensor.add
            phi.register_hook(lambda gradient: add(gradient, direction, alpha=scale))  # type: ignore[no-untyped-call]

    def _add_to_all(self) -> None:
        """Call the regularizer once for all heads of an update, then let it adapt."""
        phi, phi_next = (torch.stack(tensors) for tensors in zip(*self._pairs, strict=True))
        value, gradients, _ = self._differentiate(phi.detach(), phi_next)
        self._count(value)
        if gradients is not None:
            for (head, _), gradient in zip(self._pairs, gradients, strict=True):
                if self._meter is not None:
                    self._meter.add(head, gradient, 1.0)
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
            # PEER's gradient is known: one fused addition instead of a graph. Calls 1, 2, 4, 8, ... and those with NaN
            # go through the regularizer, which checks its input.
            check_pair(phi, phi_next)
            scale = regularizer.beta / len(phi)
            value = torch.dot(phi.reshape(-1), phi_next.reshape(-1)) * scale
            if not value.is_cpu or math.isfinite(value.item()):
                return value, phi_next, scale
        loss = regularizer(Features(phi.requires_grad_(), phi_next))
        if not loss.requires_grad:
            return loss, None, 0.0
        (gradient,) = torch.autograd.grad(loss, phi, allow_unused=True)
        return loss.detach(), gradient, 1.0
