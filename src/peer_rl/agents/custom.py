"""An agent of the user's own, named as module:Class: imported, checked and built with the options it was given.

Its constructor is called as ``MyAgent(spec, regularizer=..., rng=..., device=..., **options)``.
"""

from __future__ import annotations

import ast
import inspect
from typing import Any

import torch

from peer_rl.agents import Agent
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError, nearest
from peer_rl.objects import load_object
from peer_rl.plugin import Regularizer
from peer_rl.rng import Stream
from peer_rl.settings.custom import CustomConfig

_METHODS = ("act", "value", "temporal_difference", "critic_parameters", "update", "state_dict", "load_state_dict")
_GIVEN = ("regularizer", "rng", "device")


def build(
    name: str, settings: CustomConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device
) -> Agent:
    """The agent, freshly made."""
    kind = load_object(name)
    missing = [method for method in _METHODS if not callable(getattr(kind, method, None))]
    if missing:
        raise ConfigError(
            f"{name} is not an agent: it has no {', '.join(missing)}; docs/your-own-agent.md has a complete one"
        )
    agent: Agent = kind(spec, regularizer=regularizer, rng=rng, device=device, **_options(name, kind, settings.options))
    lacking = [attribute for attribute in ("regularizer", "device") if not hasattr(agent, attribute)]
    if lacking:
        raise ConfigError(f"{name} must keep {' and '.join(lacking)} as an attribute of that name")
    return agent


def _options(name: str, kind: Any, written: tuple[str, ...]) -> dict[str, Any]:
    """The options as values of the types that the constructor's defaults have."""
    try:
        parameters = inspect.signature(kind).parameters
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name} cannot be called: {error}") from error
    absent = [given for given in _GIVEN if given not in parameters]
    if absent:
        raise ConfigError(
            f"{name} must take {', '.join(absent)}: {name.rpartition(':')[2]}(spec, *, regularizer, rng, device)"
        )
    defaults = {key: one.default for key, one in parameters.items() if one.default is not inspect.Parameter.empty}
    found = {}
    for option in written:
        key, _, text = option.partition("=")
        if key not in defaults:
            hint = nearest(key, defaults) or f"; there are: {', '.join(defaults) or 'none'}"
            raise ConfigError(f"{name} has no option {key!r}{hint}")
        found[key] = _value(name, key, text, defaults[key])
    return found


def _value(name: str, key: str, text: str, default: Any) -> Any:
    if isinstance(default, str):
        return text
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = text
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    if default is not None and type(value) is not type(default):
        raise ConfigError(f"option {key} of {name} is {type(default).__name__}, as {default!r}, but was given {text!r}")
    return value
