"""The weight of the regularizer: which combinations of beta and regularizer are allowed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from peer_rl.errors import ConfigError
from peer_rl.settings.agents import find_agent
from peer_rl.settings.run import AnyRunConfig

AUTO: dict[str, Any] = {"beta": "auto", "regularizer": "cosine-peer", "beta_target": 0.9, "beta_rate": 0.001}
"""beta auto unless said otherwise. Ours: plain critics' cosines are 0.9 to 1.0 (docs/choosing-beta.md)."""
_ONLY_AUTO = ("beta_target", "beta_rate")


def check_beta(config: AnyRunConfig) -> None:
    """Refuse a regularizer for an agent that has nothing to regularize."""
    if find_agent(config.agent).td_target or (config.beta == 0 and config.regularizer in ("peer", "none")):
        return
    option = "--beta" if config.beta else "--regularizer"
    raise ConfigError(f"{config.agent} has no TD target, so PEER does not apply; leave out {option}")


def check_weight(config: AnyRunConfig, *, given: Collection[str]) -> None:
    """Refuse given settings that contradict each other or would have no effect."""
    if config.beta == "auto":
        if config.regularizer != "cosine-peer" and "regularizer" in given:
            leave = f"leave out --regularizer {config.regularizer}, or give beta a number"
            raise ConfigError(f"--beta auto works with cosine-peer only; {leave}")
        return
    for name in _ONLY_AUTO:
        if name in given:
            raise ConfigError(f"--{name.replace('_', '-')} needs --beta auto, but beta is {config.beta:g}")
    named = config.regularizer not in ("peer", "none")
    if named and find_agent(config.agent).td_target and not (config.beta or "beta" in given):
        raise ConfigError(
            f"{config.agent} is a baseline, whose beta is 0; give --beta with --regularizer {config.regularizer}"
        )


def settle_beta(config: AnyRunConfig) -> AnyRunConfig:
    """One spelling for each run: ``--regularizer none`` is ``--beta 0``, and ``--beta auto`` is cosine-peer's."""
    check_beta(config)
    if config.beta == "auto":
        target, rate = (getattr(config, name) for name in _ONLY_AUTO)
        target, rate = (AUTO["beta_target"] if target is None else target, AUTO["beta_rate"] if rate is None else rate)
        return replace(config, regularizer=AUTO["regularizer"], beta_target=target, beta_rate=rate)
    config = replace(config, beta_target=None, beta_rate=None)
    if config.regularizer == "none" or config.beta == 0:
        return replace(config, regularizer="peer", beta=0.0)
    return config


def describe_beta(config: AnyRunConfig) -> str:
    """A description of beta: a number, or the target of beta auto."""
    if config.beta != "auto":
        return f"{config.beta:g}"
    rate = "" if config.beta_rate == AUTO["beta_rate"] else f" at rate {config.beta_rate:g}"
    return f"auto for cosine {config.beta_target:g}{rate}"
