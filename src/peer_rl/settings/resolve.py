"""Settings in layers: agent defaults < suite < task < --preset < profile < what the user says."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from functools import cache
from hashlib import sha256
from typing import Any

from peer_rl.errors import ConfigError
from peer_rl.settings.agents import find_agent
from peer_rl.settings.beta import AUTO, check_weight, settle_beta
from peer_rl.settings.custom import is_custom
from peer_rl.settings.environment import check_environment, table_layer
from peer_rl.settings.fields import origins_of
from peer_rl.settings.run import AnyRunConfig, RunConfig
from peer_rl.settings.suggestions import meant
from peer_rl.settings.suites import (
    Frames,
    Layer,
    Value,
    agents_of,
    preset_layer,
    presets_of,
    profile_layers,
    suite_layers,
)
from peer_rl.settings.tasks import Task, find_task

Origins = dict[str, str]
_BUDGETS = ("steps", "episodes")
_SECTIONS = ("settings", "learning", "protocol")
_LONGEST_VARIANT = 120
_EXACT = 1e15
"""Whole numbers up to here are exact as floats."""


def as_dict(config: Any) -> dict[str, Any]:
    """Every setting by its dotted path, None left out, tuples as lists: what config.toml holds, flattened."""
    flat: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            flat |= {f"{field.name}.{path}": inner for path, inner in as_dict(value).items()}
        elif value is not None:
            flat[field.name] = list(value) if isinstance(value, tuple) else value
    return flat


def from_dict(flat: dict[str, Any]) -> AnyRunConfig:
    """The config whose ``as_dict`` is ``flat``; an unknown or ill-typed setting is an error.

    A setting that is not there was added to peer-rl after the run began: it has its agent's default, and a default is
    chosen so that it changes nothing in older runs.
    """
    for name in ("agent", "task"):
        if not isinstance(flat.get(name), str):
            raise ConfigError(f"the configuration names no {name}")
    if not any(budget in flat for budget in _BUDGETS):
        raise ConfigError("the configuration names no budget: steps or episodes")
    return apply(_blank(flat["agent"], flat["task"]), {path: Value(value, "") for path, value in flat.items()}, {})


def _blank(agent: str, task: str) -> AnyRunConfig:
    """The agent's defaults, with a budget that the first layer replaces."""
    entry = find_agent(agent)
    sections = {"settings": entry.settings(), "learning": entry.learning(), "protocol": entry.protocol()}
    return RunConfig(agent=agent, task=task, beta=entry.beta, steps=1, **sections)


def apply(config: AnyRunConfig, layer: Layer, origins: Origins, *, repeat: int | None = None) -> AnyRunConfig:
    """``config`` with the layer's values; notes each one's origin. A budget replaces the other kind of budget.

    Values in environment frames are divided by ``repeat``, or by the action repeat so far.
    """
    changes = {path: value.value for path, value in layer.items()}
    repeat = repeat or changes.get("action_repeat") or config.action_repeat or 1
    changes |= {path: value.steps(repeat) for path, value in changes.items() if isinstance(value, Frames)}
    for given, other in (_BUDGETS, _BUDGETS[::-1]):
        if changes.get(given) is not None and other not in changes:
            changes[other] = None
            origins.pop(other, None)
    origins |= {path: value.origin for path, value in layer.items()}
    return typing.cast(AnyRunConfig, with_values(config, changes))


@cache
def _annotations(kind: Any) -> dict[str, Any]:
    """Evaluated once for a class: plans of thousands of runs ask for them again and again."""
    return typing.get_type_hints(kind)


def with_values(config: Any, changes: dict[str, Any], prefix: str = "") -> Any:
    """A frozen dataclass with values at dotted paths replaced, each checked against its field's type.

    Not by cattrs or pydantic: the errors' sentences would take as many lines of hooks as this and ``_coerce``.
    """
    annotations = _annotations(config.__class__)
    own: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for path, value in changes.items():
        name, _, rest = path.partition(".")
        if name not in annotations or (rest and not dataclasses.is_dataclass(getattr(config, name))):
            known = [prefix + setting for setting in as_dict(config)]
            raise ConfigError(f"unknown setting {prefix + path!r}{meant(prefix + path, known)}")
        if rest:
            inner.setdefault(name, {})[rest] = value
        else:
            own[name] = _coerce(prefix + name, value, annotations[name])
    for name, nested in inner.items():
        own[name] = with_values(getattr(config, name), nested, f"{prefix}{name}.")
    return dataclasses.replace(config, **own)


def _coerce(path: str, value: Any, annotation: Any) -> Any:
    """``value`` as the annotation wants it: whole numbers pass for floats and back, lists for tuples, nothing else."""
    options = typing.get_args(annotation) if _is_union(annotation) else (annotation,)
    for option in options:
        origin = typing.get_origin(option)
        if option is type(None) and value is None:
            return None
        if option is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if option is int and isinstance(value, int) and not isinstance(value, bool):
            return value
        if option is int and isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
            return int(value)  # 1e5, which TOML reads as a float
        if option is str and isinstance(value, str):
            return value
        if option is bool and isinstance(value, bool):
            return value
        if origin is typing.Literal and value in typing.get_args(option):
            return value
        if origin is tuple and isinstance(value, list | tuple):
            element = typing.get_args(option)[0]
            return tuple(_coerce(path, item, element) for item in value)
    wanted = " or ".join(_in_words(option) for option in options if option is not type(None))
    raise ConfigError(f"setting {path} must be {wanted}, but is {value!r}")


def _in_words(option: Any) -> str:
    """A readable type: ``float``, ``'auto'``, ``tuple[int, ...]``."""
    if typing.get_origin(option) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(option)))
    return str(option) if typing.get_origin(option) else option.__name__


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)


def configure(agent: str, task: str, *, preset: str = "", profile: str = "paper", **given: Any) -> AnyRunConfig:
    """The settings of one run; ``given`` names them as the command line does: ``seed=3, beta=0, gamma=0.9``.

    Nested ones are named by their path: ``**{"critic.hidden": (64, 64)}``.
    """
    config, origins = defaults(agent, task, preset=preset, profile=profile)
    layer = {_full_path(config, name): Value(value, "given") for name, value in given.items()}
    wanted = apply(config, layer, origins)
    check_weight(wanted, given=given)
    return canonical(wanted)


def _full_path(config: AnyRunConfig, name: str) -> str:
    """``gamma`` is ``learning.gamma``: sections are how we sort settings, not something to remember."""
    first = name.partition(".")[0]
    return next((f"{section}.{name}" for section in _SECTIONS if hasattr(getattr(config, section), first)), name)


def defaults(agent: str, task: str, *, preset: str = "", profile: str = "paper") -> tuple[AnyRunConfig, Origins]:
    """The settings before the user says anything."""
    config, row = _blank(agent, task), find_task(task)
    suite = row.suite
    fitting = agents_of(suite)
    if agent not in fitting and not (is_custom(agent) or find_agent(agent).scripted):
        raise ConfigError(f"{agent} has no settings for the suite {suite!r}; agents that have: {', '.join(fitting)}")
    origins: Origins = {"beta": find_agent(agent).beta_origin}
    for section in _SECTIONS:
        origins |= origins_of(getattr(config, section), f"{section}.")
    layers = [table_layer(agent, row), *suite_layers(agent, suite, task)]
    if is_custom(agent):
        layers.insert(0, {"steps": Value(20_000, "ours: a first look at an agent of your own")})
    if preset:
        layers.append(_named_preset(agent, row, preset))
    if profile not in ("paper", "small", "smoke"):
        raise ConfigError(f"unknown profile {profile!r}; there are: paper, small, smoke")
    repeat = next((layer["action_repeat"].value for layer in reversed(layers) if "action_repeat" in layer), None)
    for layer in layers:
        config = apply(config, layer, origins, repeat=repeat)
    for layer in profile_layers(agent, suite, profile):
        config = apply(config, _of_agent(config, layer), origins)
    return apply(config, {"preset": Value(preset, ""), "profile": Value(profile, "")}, {}), origins


def _of_agent(config: AnyRunConfig, layer: Layer) -> Layer:
    """What a profile says about a setting that the run does not have is left out.

    A suite's profile is for all of its agents, and an agent's for all suites, those that draw it no frames too.
    """
    known = as_dict(config)
    return {path: value for path, value in layer.items() if path in known or path in _BUDGETS}


def _named_preset(agent: str, task: Task, preset: str) -> Layer:
    known = presets_of(agent)
    if preset not in known:
        raise ConfigError(f"{agent} has no preset {preset!r}; there are: {', '.join(known) or 'none'}")
    return preset_layer(agent, task.suite, task.name, preset)


def canonical(config: AnyRunConfig) -> AnyRunConfig:
    """One spelling for each run, so that equal runs have equal configs."""
    config = settle_beta(config)
    check_environment(config)
    return dataclasses.replace(config, mujoco_version=None) if config.mujoco_version == "v5" else config


def variant(config: AnyRunConfig) -> str:
    """``AGENT[+VARIANT]``: the settings that differ from the task's defaults, sorted, so experiments share runs."""
    base, _ = defaults(config.agent, config.task, profile=config.profile)
    normal, mine = as_dict(base), as_dict(config)
    if config.beta == "auto":
        normal |= {name: value for name, value in AUTO.items() if name != "beta"}
    elsewhere = {"agent", "task", "seed", "profile", "preset", "device", "threads", "settings.digest"}
    words = [_word(path, value) for path, value in mine.items() if path not in elsewhere and normal.get(path) != value]
    name = "+".join([re.sub(r"[^A-Za-z0-9_.-]", "-", config.agent), *sorted(words)])
    if len(name) > _LONGEST_VARIANT:
        name = f"{config.agent}+{sha256(name.encode()).hexdigest()[:12]}"
    return name


def option_name(path: str) -> str:
    """A setting's name on the command line: learning.batch_size is --batch-size."""
    return re.sub(rf"^({'|'.join(_SECTIONS)})\.", "", path).replace("_", "-")


def option_types(config: Any, prefix: str = "") -> dict[str, Any]:
    """Every option by its name on the command line, with the type of its value."""
    found: dict[str, Any] = {}
    for name, annotation in typing.get_type_hints(type(config)).items():
        value = getattr(config, name)
        if dataclasses.is_dataclass(value):
            found |= option_types(value, prefix + ("" if name in _SECTIONS else f"{name}."))
        else:
            found[option_name(prefix + name)] = annotation
    return found


def takes_list(annotation: Any) -> bool:
    """Whether one value of this type is a list in TOML, as the sizes of hidden layers are."""
    options = typing.get_args(annotation) if _is_union(annotation) else (annotation,)
    return any(typing.get_origin(option) is tuple for option in options)


def _word(path: str, value: Any) -> str:
    key = option_name(path)
    if path == "settings.options":  # of an agent of the user's own: hidden=64 is hidden64
        return "+".join(re.sub(r"[^A-Za-z0-9_.-]", "", item) for item in value)
    if isinstance(value, list):
        return f"{key}{'x'.join(str(item) for item in value)}"
    if isinstance(value, str) and value != "auto":
        return f"{key}-{re.sub(r'[^A-Za-z0-9_.-]', '-', value)}"
    return f"{key}{int(value) if value == round(value) else value}" if isinstance(value, float) else f"{key}{value}"
