"""Run directories as records: what a report reads, and which of them it cannot use and why."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from peer_rl.errors import PeerError, RunError
from peer_rl.settings import find_agent, variant
from peer_rl.settings.beta import describe_beta
from peer_rl.settings.custom import is_custom
from peer_rl.settings.resolve import canonical
from peer_rl.settings.run import AnyRunConfig
from peer_rl.settings.tasks import find_task
from peer_rl.training.files import read_json_lines
from peer_rl.training.rundir import LOGS, SCHEMA, check_files, check_logs, read_config, read_json, read_status, run_path
from peer_rl.training.stopping import is_written
from peer_rl.version import __version__

Row = dict[str, Any]
Key = tuple[str, str, str]
"""(profile, task, variant): what the runs of one group share; they differ in the seed alone."""
_PROFILES = ("paper", "small", "smoke")
_PAPER = ("gridworld", "pybullet", "mujoco", "dmc", "atari")
"""The suites of the paper."""


@dataclass(frozen=True)
class RunRecord:
    """One run directory as it was found."""

    path: Path
    variant: str
    """AGENT[+VARIANT] by the config; the folder's name where the config cannot be read."""
    config: AnyRunConfig | None = None
    state: str = "damaged"
    """finished, running, stopped (on the way), missing, empty, damaged, other version, or duplicate."""
    problem: str = ""
    """Why the run cannot be used; empty if it can."""
    manifest: Row = field(default_factory=dict)
    status: Row = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    """The rows of each log: metrics, eval, diagnostics, timing."""

    @property
    def usable(self) -> bool:
        """Whether numbers may come from this run: it is whole and has spent its budget."""
        return self.state == "finished" and not self.problem

    @property
    def seed(self) -> int | None:
        """The run's seed, if its config can be read."""
        return self.config.seed if self.config else None

    @property
    def command(self) -> str:
        """The command that began the run, ready for a shell."""
        command = self.manifest.get("command")
        return shlex.join(str(word) for word in command) if isinstance(command, list) else ""

    @property
    def place(self) -> str:
        """The path to print: below the working directory where possible, always printable."""
        resolved = self.path.resolve()
        shown = resolved.relative_to(Path.cwd()) if resolved.is_relative_to(Path.cwd()) else self.path
        return os.fsencode(shown).decode("utf-8", "replace")

    def count(self, name: str) -> int | None:
        """A counter of status.json: step, frame, episode, done or total."""
        value = self.status.get(name)
        return value if isinstance(value, int) else None


@dataclass(frozen=True)
class Group:
    """All runs of one variant on one task: one row of a table, one line of a figure."""

    key: Key
    label: str
    """The variant's name in tables: ``PEER (beta = 0.0005)``."""
    config: AnyRunConfig
    """The config of one of the runs; the others differ in the seed."""
    records: tuple[RunRecord, ...]
    """Sorted by seed."""
    common: frozenset[str] = frozenset()
    """Settings that differ from their defaults in every variant of the task: no label repeats them."""

    @property
    def profile(self) -> str:
        """paper, small or smoke."""
        return self.key[0]

    @property
    def task(self) -> str:
        """SUITE/NAME."""
        return self.key[1]

    @property
    def anchor(self) -> str:
        """The id of the group's runs on a page."""
        return f"runs-{sha256(json.dumps(self.key).encode()).hexdigest()[:12]}"

    @property
    def full_label(self) -> str:
        """The label with the agent's name in it, for tables that put several tasks together."""
        return label(self.config, several=True, common=self.common)

    @property
    def finished(self) -> list[RunRecord]:
        """The runs that numbers come from."""
        return [record for record in self.records if record.usable]

    @property
    def seeds(self) -> list[int]:
        """Seeds of the runs that numbers come from."""
        return [record.config.seed for record in self.finished if record.config]

    @property
    def budget(self) -> str:
        """What the runs were trained for, in the config's own counter."""
        if self.config.steps is not None:
            return f"{self.config.steps:,} agent steps"
        return f"{self.config.episodes or 0:,} episodes"

    def mean_count(self, name: str) -> float:
        """A final counter of the finished runs, on average; NaN if they have none."""
        counts = [count for record in self.finished if (count := record.count(name)) is not None]
        return sum(counts) / len(counts) if counts else math.nan

    @property
    def backbone(self) -> Key | None:
        """The group this one is compared with: the same settings without the regularizer."""
        return None if self.config.beta == 0 else (self.profile, self.task, _variant(_backbone(self.config)))


def find_runs(paths: Iterable[Path]) -> list[RunRecord]:
    """Every run directory at or below ``paths``, in the order of their paths; unusable ones say why."""
    found: dict[Path, RunRecord] = {}
    for path in paths:
        if not path.is_dir():
            raise RunError(f"there is no folder {path}; name a run directory, or a folder that holds some")
        for folder in run_folders(path):
            found.setdefault(folder.resolve(), read_run(folder))
    return _mark_duplicates(list(found.values()))


def run_folders(top: Path) -> list[Path]:
    """Folders with a config.toml, and seed folders that never got one; nothing inside a run is looked at."""
    folders = []
    for name, inner, files in os.walk(top):
        folder = Path(name)
        if "config.toml" in files or re.fullmatch(r"seed\d+", folder.name):
            folders.append(folder)
            inner.clear()
    return sorted(folders)


def missing_runs(records: Sequence[RunRecord], planned: Iterable[AnyRunConfig], runs: Path) -> list[RunRecord]:
    """A record for each planned run that none of ``records`` is, so that a report shows it as missing."""
    places = {record.path.resolve() for record in records}
    absent = [config for config in planned if run_path(config, runs).resolve() not in places]
    return [RunRecord(run_path(config, runs), _variant(config), config, "missing") for config in absent]


def read_run(path: Path) -> RunRecord:
    """One run directory; whatever is wrong with it becomes its ``problem``."""
    record = RunRecord(path, variant=path.resolve().parent.name)
    try:
        if not any((path / name).exists() for name in ("manifest.json", *(f"{log}.jsonl" for log in LOGS))):
            problem = "nothing was written yet: the run has only begun, or was stopped as it began"
            record = replace(record, state="empty", problem=problem)
        manifest = {} if record.problem else _read_object(path / "manifest.json")
        if not record.problem and manifest.get("schema") != SCHEMA:
            problem = f"written in version {manifest.get('schema')} of the format; this peer-rl reads version {SCHEMA}"
            return replace(record, state="other version", problem=problem)
        record = replace(record, manifest=manifest)
        config = read_config(path)
        record = replace(record, config=config, variant=_variant(config))
        return record if record.problem else _read_logs(record)
    except PeerError as error:
        return replace(record, problem=record.problem or " ".join(str(error).split()) + _writer(record))
    except OSError as error:
        return replace(record, problem=f"cannot be read: {error.strerror}")


def _writer(record: RunRecord) -> str:
    """Who wrote a run that cannot be read, if it was another peer-rl."""
    packages = record.manifest.get("packages")
    version = packages.get("peer-rl") if isinstance(packages, dict) else None
    return f" (written by peer-rl {version}; this is {__version__})" if version not in (None, __version__) else ""


def _read_times(path: Path) -> list[Row]:
    """The whole lines of timing.jsonl. A kill may leave half a line in the middle: no other number depends on it."""
    rows = []
    for line in path.read_bytes().split(b"\n") if path.is_file() else []:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def _read_logs(record: RunRecord) -> RunRecord:
    rows = {log: read_json_lines(record.path / f"{log}.jsonl") for log in LOGS}
    rows["timing"] = _read_times(record.path / "timing.jsonl")
    status = read_status(record.path)
    check_files(record.path, status)
    if status.get("state") == "finished":
        check_logs(record.path, status)
    return replace(record, rows=rows, status=status, state=state_of(record.path, status))


def state_of(path: Path, status: Row) -> str:
    """finished, running or stopped: a run that no process writes is stopped, whatever its status.json says."""
    if status.get("state") == "finished":
        return "finished"
    return "running" if is_written(path) else "stopped"


def _read_object(path: Path) -> Row:
    content = read_json(path)
    if not isinstance(content, dict):
        raise RunError(f"{path} is damaged: it is not an object")
    return content


def _key(record: RunRecord) -> Key | None:
    return (record.config.profile, record.config.task, record.variant) if record.config else None


def _mark_duplicates(records: list[RunRecord]) -> list[RunRecord]:
    """Two copies of one run are one seed, not two: the first finished one counts."""
    kept: dict[tuple[Key, int], RunRecord] = {}
    for record in sorted(records, key=lambda record: not record.usable):
        key = _key(record)
        if key and record.config and not record.problem:
            kept.setdefault((key, record.config.seed), record)
    marked = []
    for record in records:
        key = _key(record)
        other = kept.get((key, record.config.seed)) if key and record.config else None
        if other and other is not record and not record.problem:
            record = replace(record, state="duplicate", problem=f"the same settings and seed as {other.place}")
        marked.append(record)
    return marked


def group_runs(records: Sequence[RunRecord]) -> list[Group]:
    """The runs by profile, task and variant; those without a readable config are in no group."""
    members: dict[Key, list[RunRecord]] = {}
    for record in records:
        key = _key(record)
        if key and record.state != "duplicate":
            members.setdefault(key, []).append(record)
    configs = {key: next(record.config for record in found if record.config) for key, found in members.items()}
    together: dict[tuple[str, str], list[AnyRunConfig]] = {}
    for key, config in configs.items():
        together.setdefault(key[:2], []).append(config)
    groups = []
    for key, found in members.items():
        found.sort(key=lambda record: (record.seed or 0, record.path))
        others = together[key[:2]]
        common = frozenset.intersection(*map(frozenset, map(_changes, others))) if len(others) > 1 else frozenset()
        several = len({config.agent for config in others}) > 1
        shown = label(configs[key], several=several, common=common)
        groups.append(Group(key, shown, configs[key], tuple(found), common))
    return sorted(groups, key=_order)


def _order(group: Group) -> tuple[int, str, str, float, str]:
    config = group.config
    beta = math.inf if config.beta == "auto" else config.beta
    return _PROFILES.index(group.profile), group.task, config.agent, beta, group.key[2]


def _variant(config: AnyRunConfig) -> str:
    """AGENT[+VARIANT], found once for all seeds: it takes comparing every setting with its default."""
    return _variant_of_any_seed(replace(config, seed=0))


@lru_cache(maxsize=1024)
def _variant_of_any_seed(config: AnyRunConfig) -> str:
    return variant(config)


def _plain(config: AnyRunConfig) -> AnyRunConfig:
    return canonical(replace(config, beta=0.0))


def _backbone(config: AnyRunConfig) -> AnyRunConfig:
    """Without a regularizer nothing is learned from the features that it reads: one backbone serves all of them."""
    if getattr(config.settings, "features", "") == "conv":
        config = replace(config, settings=replace(config.settings, features="penultimate"))
    return _plain(config)


def _changes(config: AnyRunConfig) -> list[str]:
    """Settings that differ from the task's defaults, the regularizer and its beta aside."""
    return [word for word in _variant(_plain(config)).split("+")[1:] if word != "beta0"]


def label(config: AnyRunConfig, *, several: bool, common: Collection[str] = ()) -> str:
    """The method and its beta, then what else differs from the task's defaults and is not ``common``."""
    regularizer = "PEER" if config.regularizer == "peer" else config.regularizer
    if find_agent(config.agent).scripted:
        return _scripted_label(config, regularizer)
    agent = config.agent.rpartition(":")[2] if is_custom(config.agent) else config.agent.upper()
    name = agent if config.beta == 0 else regularizer
    if several and config.beta:
        name = f"{agent} + {regularizer}"
    others = [word for word in _changes(config) if word not in common]
    shown = f"{name} (beta = {describe_beta(config)})" if find_agent(config.agent).td_target else name
    return ", ".join([shown, *(["+".join(others)] if others else [])])


def _scripted_label(config: AnyRunConfig, regularizer: str) -> str:
    """Of a user's agent: what it was given, since the rest is the script's own."""
    if config.settings.control:
        return "LayerNorm critic" if config.settings.control == "layer-norm" else config.settings.control
    return "stock agent" if config.beta == 0 else f"{regularizer} (beta = {describe_beta(config)})"


def describe(groups: Sequence[Group]) -> str:
    """Where the numbers of a table come from, for its caption."""
    seeds = sorted({seed for group in groups for seed in group.seeds})
    budgets = " or ".join(dict.fromkeys(group.budget for group in groups))
    shared = shared_settings(groups)
    about = f"{terms(groups).capitalize()}; task {groups[0].task}; seeds {seed_list(seeds)}; trained for {budgets}."
    return f"{about} {shared}".strip()


def terms(groups: Sequence[Group]) -> str:
    """The groups' profile, for a title; only runs of the paper's tasks with its settings are of profile paper."""
    if groups[0].profile != "paper":
        return f"profile {groups[0].profile}"
    if any(_changes(group.config) for group in groups):
        return "own settings"
    theirs = all(find_task(group.task).suite in _PAPER for group in groups)
    return "profile paper" if theirs else "default settings"


def shared_settings(groups: Sequence[Group]) -> str:
    """The settings that all groups share, as a sentence; empty if there are none."""
    common = sorted(groups[0].common)
    return f"All of them with {', '.join(common)}." if common else ""


def seed_list(seeds: Iterable[int]) -> str:
    """``0, 1, 2``, or a dash."""
    return ", ".join(str(seed) for seed in seeds) or "-"
