"""A sweep's TOML file as jobs: every combination of what its grids list, each run once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peer_rl.errors import ConfigError, PeerError
from peer_rl.launch.jobs import Job, merge
from peer_rl.settings import configure
from peer_rl.settings.environment import with_frames
from peer_rl.settings.fields import Checked, NotNegative, Positive, check_not_negative, check_positive
from peer_rl.settings.resolve import canonical, defaults, option_types, takes_list, with_values
from peer_rl.settings.run import AnyRunConfig
from peer_rl.settings.suggestions import meant
from peer_rl.training.rundir import flatten, read_toml

_PLURALS = {
    "agents": "agent",
    "tasks": "task",
    "betas": "beta",
    "regularizers": "regularizer",
    "profiles": "profile",
    "presets": "preset",
}
_NAMES = ("agent", "task", "profile", "preset", "regularizer")
_EXTRAS = ("checkpoint-seconds", "tensorboard", "wandb")
"""Options of ``peer-rl train`` that are no settings of a run: one value for a whole grid."""
_ELSEWHERE = {"runs": "--runs", "dry-run": "--dry-run", "quiet": "nothing: the runs of a sweep are quiet"}


@dataclass(frozen=True)
class SearchSettings(Checked):
    """The table [search] of a sweep's file: what ``--search beta`` does."""

    low: Positive[float] = 1e-6
    """Smallest beta."""
    high: float = 1.0
    """Largest beta."""
    trials: Positive[int] = 20
    """Betas tried for each agent and task."""
    round: Positive[int] = 4
    """Betas chosen at a time, before their scores are known: larger ones keep more workers busy."""
    seed: NotNegative[int] = 0
    """Seed of the sampler."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.high > self.low:
            raise ConfigError(f"high must be above low, but they are {self.high:g} and {self.low:g}")


@dataclass(frozen=True)
class Sweep:
    """What a file asks for."""

    jobs: list[Job]
    search: SearchSettings


def read_sweep(file: Path, runs: Path, *, block: str = "") -> Sweep:
    """Read and check a whole file before anything starts; every mistake is one sentence that names its place.

    Of a ledger, the blocks that are not on hold; or the one ``block``.
    """
    content = read_toml(file)
    try:
        search: SearchSettings = with_values(SearchSettings(), _table(content.pop("search", {})))
    except ConfigError as error:
        raise ConfigError(f"{file}, [search]: {error}") from error
    held = _blocks_on_hold(content.pop("ledger", {}))
    blocks = content.pop("grid", None)
    if blocks is not None and not (isinstance(blocks, list) and blocks and all(isinstance(b, dict) for b in blocks)):
        raise ConfigError(f"{file}: grids are written as tables, each under a line [[grid]]")
    common = flatten(content)
    jobs: list[Job] = []
    for index, grid in enumerate(blocks or [{}]):
        of = grid.pop("block", "")
        if of != block if block else of in held:
            continue
        try:
            jobs += _jobs({**_normal(common), **_normal(flatten(grid))}, runs)
        except PeerError as error:
            place = f"{file}, grid {index + 1}" if blocks else f"{file}"
            raise ConfigError(f"{place}: {error}") from error
    return Sweep(merge(jobs), search)


def _blocks_on_hold(ledger: Any) -> set[str]:
    """A ledger is a sweep with a plan of what its runs are compared for; blocks with a ``hold`` do not run yet."""
    blocks = ledger.get("block", []) if isinstance(ledger, dict) else []
    return {block["name"] for block in blocks if isinstance(block, dict) and block.get("hold") and "name" in block}


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError("it must be a table")
    return value


def _normal(flat: dict[str, Any]) -> dict[str, Any]:
    """One spelling of each option, as on the command line; ``seeds = 5`` are the seeds 0 to 4, as in reproduce."""
    block: dict[str, Any] = {}
    for written, value in flat.items():
        name = _PLURALS.get(written, written.replace("_", "-"))
        if written == "seeds":
            name, value = "seed", _seeds(value)
        if name in block:
            raise ConfigError(f"{written!r} gives {name} a second time")
        block[name] = value
    return block


def _seeds(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        check_positive("seeds", value)
        return list(range(value))
    return value


def _jobs(block: dict[str, Any], runs: Path) -> list[Job]:
    for name in ("agent", "task"):
        if name not in block:
            raise ConfigError(f"name the {name}s: {name}s = [...]")
    for name, instead in _ELSEWHERE.items():
        if name in block:
            raise ConfigError(f"{name} is not for the file; use {instead}")
    extra = _extra_words({name: block.pop(name) for name in _EXTRAS if name in block})
    order = sorted(block, key=lambda name: name not in _NAMES)  # outermost first
    names = {name: [_name(name, value) for value in _listed(name, block[name])] for name in order if name in _NAMES}
    rest = [name for name in order if name not in _NAMES]
    jobs = []
    for chosen in _products(names):
        types = _option_types(chosen)
        axes = {name: _alternatives(name, block[name], types, chosen["agent"]) for name in rest}
        jobs += [Job.of(_configure(chosen, values), runs, extra=extra) for values in _products(axes)]
    # seed by seed, so that a sweep stopped half-way has whole pairs, and agents that fail do so early
    return sorted(jobs, key=lambda job: job.config.seed)


def _products(axes: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    return (dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))


def _listed(name: str, value: Any) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise ConfigError(f"{name} is an empty list")
    return values


def _name(option: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{option} must be a name in quotation marks, but is {value!r}")
    if option == "regularizer" and ":" not in value:
        from peer_rl.plugin import make  # late: it imports torch

        try:
            make(value, 0.0)
        except ValueError as error:
            raise ConfigError(str(error)) from error
    return value


def _option_types(chosen: dict[str, str]) -> dict[str, Any]:
    base, _ = defaults(chosen["agent"], chosen["task"], preset=chosen.get("preset", ""), profile=_profile(chosen))
    return {**option_types(base), "frames": int}


def _profile(chosen: dict[str, str]) -> str:
    return chosen.get("profile", "paper")


def _alternatives(name: str, value: Any, types: dict[str, Any], agent: str) -> list[Any]:
    """The values that a sweep runs through; a single one where a list is one value, as for critic.hidden."""
    if name not in types:
        known = [*types, *_EXTRAS, *_PLURALS, "seeds"]
        raise ConfigError(f"{agent} has no option {name!r}{meant(name, known)}")
    values = _listed(name, value)
    if takes_list(types[name]) and not any(isinstance(item, list) for item in values):
        return [values]
    return values


def _configure(chosen: dict[str, str], values: dict[str, Any]) -> AnyRunConfig:
    given = {name.replace("-", "_"): value for name, value in values.items()}
    budgets = [name for name in ("steps", "episodes", "frames") if name in given]
    if len(budgets) > 1:
        raise ConfigError(f"give one budget, not {len(budgets)}: {' and '.join(budgets)}")
    frames = given.pop("frames", None)
    if frames is not None and (not isinstance(frames, int) or isinstance(frames, bool)):
        raise ConfigError(f"frames must be int, but is {frames!r}")
    config = configure(**{"profile": "paper", **chosen}, **given)
    return config if frames is None else canonical(with_frames(config, frames))


def _extra_words(extras: dict[str, Any]) -> tuple[str, ...]:
    words: list[str] = []
    for name, value in extras.items():
        if name == "checkpoint-seconds":
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise ConfigError(f"{name} must be a number, but is {value!r}")
            check_not_negative(name, value)
            words += [f"--{name}", str(value)]
        elif value is True:
            words.append(f"--{name}")
        elif name == "wandb" and isinstance(value, str) and value:
            words += [f"--{name}", value]
        elif value is not False:
            raise ConfigError(f"{name} must be true or false, but is {value!r}")
    return tuple(words)
