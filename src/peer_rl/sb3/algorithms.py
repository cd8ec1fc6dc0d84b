"""Stable-Baselines3's off-policy agents with PEER: change the import.

    from peer_rl.integrations.sb3 import TD3, RepresentationCallback

    model = TD3("MlpPolicy", "Pendulum-v1", beta=5e-4, tensorboard_log="runs")
    model.learn(10_000, callback=RepresentationCallback())

Constructors, ``learn``, ``save``, ``load``, policies, callbacks and loggers are Stable-Baselines3's own, and so is
``train``: ``hooks`` adds the regularizer. With beta 0 weights equal Stable-Baselines3's bit for bit.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from torch import Tensor

from peer_rl.errors import ConfigError
from peer_rl.packages import from_extra
from peer_rl.plugin import DEFAULT_BETA, NAMES, ConstrainedPEER, NoRegularizer, Regularizer, check_beta, make, wrap

with from_extra("sb3", "peer_rl.integrations.sb3"):
    import sb3_contrib
    import stable_baselines3
    from stable_baselines3 import HerReplayBuffer
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from peer_rl.sb3.callback import RepresentationCallback, representation
from peer_rl.sb3.hooks import NOT_IN_ZIP, CriticPasses, adapts, critic_and_target, last_layers

__all__ = [
    "DQN",
    "QRDQN",
    "SAC",
    "TD3",
    "TQC",
    "HerReplayBuffer",
    "Regularized",
    "RepresentationCallback",
    "representation",
]

BetaLike = float | str | Callable[[float], float] | None
RegularizerLike = str | Regularizer | type[Regularizer] | Callable[[Tensor, Tensor], Tensor]

_NO_TARGET = {"A2C", "ARS", "CrossQ", "MaskablePPO", "PPO", "RecurrentPPO", "TRPO"}


class Regularized(OffPolicyAlgorithm):
    """Base class that adds ``beta`` and ``regularizer``; put it first among the bases of an algorithm of your own.

    beta: the regularizer's weight; 0 is the plain algorithm. Default: the regularizer object's own, otherwise 5e-4.
        A function of the remaining progress (1 at the start, 0 at the end) is a schedule, as for learning_rate.
        "auto" adapts CosinePEER's weight, as `ConstrainedPEER` does, until the mean cosine is 0.9.
    regularizer: a name (``peer``, ``cosine-peer``, ``feature-norm``, ``none``), ``module:name``, a `Regularizer` or a
        function of (phi, phi_next), both (batch, dim). It is called once per critic; a `Regularizer` that adapts, such
        as `ConstrainedPEER`, once for all critics, (critics, batch, dim).
    Both may be changed between updates, for example by a callback. After construction the attribute ``regularizer``
    holds a name. A zip keeps that name and beta; a function or an object of your own must be passed to ``load`` again.
    """

    beta: Any
    regularizer: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if issubclass(cls, OnPolicyAlgorithm):
            raise ConfigError(f"{cls.__name__} is on-policy, without a target critic, so PEER has nothing to act on")

    def __init__(self, *args: Any, beta: BetaLike = None, regularizer: RegularizerLike = "peer", **kwargs: Any) -> None:
        # Before the parent's __init__, which calls _setup_model; load calls it after restoring the zip's values.
        self.beta, self.regularizer = beta, regularizer  # type: ignore[assignment]
        super().__init__(*args, **kwargs)

    def _setup_model(self) -> None:
        self._choose_regularizer()
        super()._setup_model()
        if self._weight() > 0 or callable(self.beta):
            for network in critic_and_target(self):
                last_layers(network)

    def _choose_regularizer(self) -> None:
        if isinstance(self.beta, str):
            if self.beta != "auto":
                raise ConfigError(f"beta must be a number, a function of the progress or 'auto', not {self.beta!r}")
            if self.regularizer not in ("peer", "cosine-peer", "auto"):
                raise ConfigError(
                    "beta 'auto' works with cosine-peer only: leave out regularizer, or give beta a number"
                )
            self.beta, self.regularizer = None, "auto"
        found, self.regularizer = _choose(self.regularizer)
        if callable(self.beta) and adapts(found):
            raise ConfigError(f"{found!r} adapts its beta itself: leave out the schedule")
        if self.beta is None:
            self.beta = found.beta
        elif isinstance(found, NoRegularizer):
            self.beta = 0.0
        weight = self._weight()
        if not callable(self.beta):
            self.beta = weight
        _weigh(found, weight)
        self._passes = CriticPasses(found, self.regularizer)

    def train(self, gradient_steps: int, *args: Any, **kwargs: Any) -> None:
        """Stable-Baselines3's own, with the regularizer added to the critic's gradient."""
        if self.regularizer != self._passes.name or isinstance(self.beta, str):
            self._choose_regularizer()
        weight = self._weight()
        if callable(self.beta):
            self.logger.record("regularizer/beta", weight)
        if weight == 0 or gradient_steps == 0:
            super().train(gradient_steps, *args, **kwargs)
            return
        passes = self._passes
        _weigh(passes.regularizer, weight)
        with passes.watch(*critic_and_target(self)):
            super().train(gradient_steps, *args, **kwargs)
        if not callable(self.beta):
            self.beta = passes.regularizer.beta  # which it may have adapted
        self.logger.record("train/regularizer", passes.total() / gradient_steps)
        for name, value in passes.adapted.items():
            self.logger.record(f"regularizer/{name}", float(value))

    def _weight(self) -> float:
        """Beta now; a schedule is read at the remaining progress."""
        return _checked_beta(self.beta(self._current_progress_remaining) if callable(self.beta) else self.beta)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_passes"]


class TD3(Regularized, stable_baselines3.TD3):
    """``stable_baselines3.TD3`` with ``beta`` and ``regularizer``."""


class SAC(Regularized, stable_baselines3.SAC):
    """``stable_baselines3.SAC`` with ``beta`` and ``regularizer``.

    Its critic loss has a factor 1/2 that the paper's has not: the same beta is twice as strong here.
    """


class DQN(Regularized, stable_baselines3.DQN):
    """``stable_baselines3.DQN`` with ``beta`` and ``regularizer``; phi depends on the state alone."""


class TQC(Regularized, sb3_contrib.TQC):
    """``sb3_contrib.TQC`` with ``beta`` and ``regularizer``."""


class QRDQN(Regularized, sb3_contrib.QRDQN):
    """``sb3_contrib.QRDQN`` with ``beta`` and ``regularizer``; phi depends on the state alone."""


def __getattr__(name: str) -> Any:
    if name in _NO_TARGET:
        raise ConfigError(
            f"{name} has no target critic, so PEER has nothing to act on: import it from Stable-Baselines3, or use one "
            "of TD3, SAC, TQC, DQN and QRDQN"
        )
    if name == "DDPG":
        raise ConfigError("DDPG is not here: class DDPG(Regularized, stable_baselines3.DDPG) defines it in one line")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _checked_beta(beta: float) -> float:
    try:
        return check_beta(beta)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _weigh(regularizer: Regularizer, beta: float) -> None:
    """Set a regularizer's beta to the agent's, unless that is 0."""
    if beta in (0, regularizer.beta):
        return
    try:
        regularizer.beta = beta
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _choose(given: RegularizerLike) -> tuple[Regularizer, str]:
    """The regularizer, and the name that a zip keeps."""
    if isinstance(given, str) and given.startswith(NOT_IN_ZIP):
        name = given.removeprefix(NOT_IN_ZIP)
        raise ConfigError(
            f"the zip does not contain your own regularizer {name}: pass it again, load(..., regularizer={name})"
        )
    try:
        found, name = _make(given)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if found.needs:
        raise ConfigError(
            f"regularizer {found.name or name!r} needs {', '.join(sorted(found.needs))}, which Stable-Baselines3's "
            "train does not compute: use peer, cosine-peer, feature-norm or a function of (phi, phi_next)"
        )
    return found, name


def _make(given: RegularizerLike) -> tuple[Regularizer, str]:
    if given == "auto":
        return ConstrainedPEER(), given
    if isinstance(given, str):
        return make(given), given
    if isinstance(given, Regularizer):
        # a copy, because beta is the agent's, and two agents may be given one object
        found = copy.copy(given)
    elif isinstance(given, type):
        if not issubclass(given, Regularizer):
            raise ValueError(f"regularizer must be a name, a Regularizer or a function, not the class {given.__name__}")
        found = given(DEFAULT_BETA)
    else:
        return wrap(given), NOT_IN_ZIP + getattr(given, "__name__", type(given).__name__)
    kind = type(found)
    return found, kind.name if NAMES.get(kind.name) is kind else NOT_IN_ZIP + kind.__name__
