"""What an experiment still needs: runs done, to do and not available, and the time, memory and disk they take."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from peer_rl.envs.simulators import MODULES
from peer_rl.errors import ConfigError, nearest
from peer_rl.launch.cost import duration
from peer_rl.launch.estimate import PROGRAM_BYTES, amount, estimate_memory, find_paces, kind_of
from peer_rl.launch.jobs import Job, merge
from peer_rl.packages import absent
from peer_rl.paper.catalogue import BETA, Experiment, Part, System
from peer_rl.replay.memory import available_memory
from peer_rl.report.runs import Group, Key
from peer_rl.settings import AGENTS, configure, variant
from peer_rl.settings.run import AnyRunConfig
from peer_rl.settings.tasks import find_task


@dataclass(frozen=True)
class Planned:
    """One run of an experiment; ``absent`` says why there is no config for it."""

    system: System
    task: str
    seed: int
    config: AnyRunConfig | None
    absent: str = ""


@dataclass(frozen=True)
class Choice:
    """What part of an experiment is wanted."""

    profile: str = "paper"
    seeds: int | None = None
    """None for the profile's number."""
    betas: tuple[float, ...] = ()
    """PEER's, in the grid world; empty for the paper's."""
    tasks: tuple[str, ...] = ()
    """Empty for the profile's."""
    agents: tuple[str, ...] = ()
    """Empty for all."""


def choose(experiment: Experiment, choice: Choice) -> Experiment:
    """The experiment with the chosen betas, tasks and agents; a choice that it does not have is an error."""
    parts = experiment.parts
    if choice.betas:
        if experiment.name != "gridworld":
            raise ConfigError(f"--betas is for gridworld; {experiment.name} has the paper's beta (see: beta-study)")
        backbone, peer, *_ = parts[0].systems
        betas = sorted({beta for beta in choice.betas if beta})
        more = [
            replace(peer, label="PEER" if beta == BETA else f"PEER, beta {beta:g}", options={"beta": beta})
            for beta in betas
        ]
        parts = (replace(parts[0], systems=(backbone, *more)),)
    tasks = choice.tasks or experiment.reduction(choice.profile).tasks
    _check_known("task", choice.tasks, {task for part in parts for task in part.tasks}, experiment.name)
    _check_known("agent", choice.agents, {one.agent for part in parts for one in part.systems}, experiment.name)
    chosen = [
        Part(
            tuple(one for one in part.systems if not choice.agents or one.agent in choice.agents),
            tuple(task for task in part.tasks if not tasks or task in tasks),
        )
        for part in parts
    ]
    return replace(experiment, parts=tuple(chosen))


def _check_known(what: str, given: Sequence[str], known: set[str], experiment: str) -> None:
    for name in given:
        if name not in known:
            hint = nearest(name, sorted(known)) or f"; it has: {', '.join(sorted(known))}"
            raise ConfigError(f"{experiment} has no {what} {name!r}{hint}")


def planned_runs(experiment: Experiment, choice: Choice) -> list[Planned]:
    """Every run of the chosen part, seed by seed, so that a plan that is stopped half-way has whole pairs."""
    reduction = experiment.reduction(choice.profile)

    def seeds(system: System) -> int:
        full = system.seeds if choice.profile == "paper" and system.seeds else reduction.seeds
        return choice.seeds or full

    own = experiment.paper_options if choice.profile == "paper" else {}
    first = [
        _planned(system, task, choice.profile, {**own, **system.options})
        for part in choose(experiment, choice).parts
        for task in part.tasks
        for system in part.systems
    ]
    most = max((seeds(run.system) for run in first), default=0)
    return [_with_seed(run, seed) for seed in range(most) for run in first if seed < seeds(run.system)]


def _with_seed(run: Planned, seed: int) -> Planned:
    return replace(run, seed=seed, config=replace(run.config, seed=seed) if run.config else None)


def _planned(system: System, task: str, profile: str, options: Mapping[str, Any]) -> Planned:
    absent = _absence(system.agent, task)
    if not absent:
        try:
            return Planned(system, task, 0, configure(system.agent, task, profile=profile, **options))
        except ConfigError as error:
            absent = str(error)
    return Planned(system, task, 0, None, absent)


def _absence(agent: str, task: str) -> str:
    """Why an agent cannot run a task here; empty if it can."""
    if agent not in AGENTS:
        return f"peer-rl has no agent {agent} yet"
    extra = find_task(task).extra
    if missing := absent(AGENTS[agent].packages):
        return f"{agent} needs {' and '.join(missing)}: pip install 'peer-rl[sb3]'"
    if missing := absent(MODULES.get(extra, ())):
        return f"{task} needs {' and '.join(missing)}: pip install 'peer-rl[{extra}]'"
    return ""


@dataclass(frozen=True)
class Plan:
    """An experiment's runs, and what is left of them."""

    experiment: Experiment
    choice: Choice
    runs: list[Planned]
    jobs: list[Job]
    """Each run directory once; two systems may share one."""

    @property
    def missing(self) -> list[Job]:
        """What is still to do."""
        return [job for job in self.jobs if not job.finished()]


def make_plan(experiment: Experiment, choice: Choice, runs: Path) -> Plan:
    """The plan; nothing is measured yet."""
    planned = planned_runs(experiment, choice)
    return Plan(experiment, choice, planned, merge([Job.of(run.config, runs) for run in planned if run.config]))


def stand_ins(planned: Sequence[Planned], groups: Sequence[Group]) -> int:
    """How many planned runs finished ones stand for: the same settings however often they log, whatever the seed."""
    seeds: dict[Key, set[int]] = {}
    for group in groups:
        seeds.setdefault(_same_result(group.config), set()).update(group.seeds)
    wanted = Counter((run.system.label, _same_result(run.config)) for run in planned if run.config)
    return sum(min(count, len(seeds.get(key, ()))) for (_, key), count in wanted.items())


def _same_result(config: AnyRunConfig) -> Key:
    """What runs with the same scores share: logs and diagnostics change nothing that is learned."""
    intervals = {name: 1 for name in ("diagnose_every", "log_every") if hasattr(config.protocol, name)}
    unlogged = replace(config.protocol, **intervals)
    return config.profile, config.task, variant(replace(config, seed=0, protocol=unlogged))


@dataclass(frozen=True)
class Requirements:
    """What the missing runs take."""

    hours: float | None
    """All of them, one after the other, divided by the workers; None if it was not measured."""
    lines: list[str]
    """The same as lines of text."""


def describe(plan: Plan) -> list[str]:
    """How much there is, what is left out and why."""
    experiment, choice, missing = plan.experiment, plan.choice, plan.missing
    lines = [
        f"{experiment.name}, profile {choice.profile}: {len(plan.jobs)} runs, {len(plan.jobs) - len(missing)} done, "
        f"{len(missing)} to do"
    ]
    absent: dict[str, dict[str, None]] = {}
    for run in plan.runs:
        if run.absent:
            absent.setdefault(run.absent, {})[run.system.label] = None
    lines += [f"  not available: {', '.join(labels)} ({reason})" for reason, labels in absent.items()]
    lines += [f"  {line}" for line in reductions(plan)]
    return lines


def reductions(plan: Plan) -> list[str]:
    """How the plan differs from the paper's experiment."""
    experiment, choice = plan.experiment, plan.choice
    all_tasks = {task for part in experiment.parts for task in part.tasks}
    tasks = {run.task for run in plan.runs}
    seeds = len({run.seed for run in plan.runs})
    full = max([experiment.seeds, *(system.seeds for system in experiment.systems)])
    words = ["shorter runs and smaller settings"] if choice.profile != "paper" else []
    words += [f"{name} {value:,}" for name, value in experiment.paper_options.items() if choice.profile == "paper"]
    words += [f"{len(tasks)} of {len(all_tasks)} tasks"] if tasks != all_tasks else []
    words += [f"{seeds} of {full} seeds"] if seeds < full else []
    words += [f"agents {', '.join(choice.agents)} only"] if choice.agents else []
    return [f"not the paper's whole experiment: {'; '.join(words)}"] if words else []


def estimate_plan(plan: Plan, runs: Path, workers: int) -> Requirements:
    """Time, memory and disk of what is missing. The smoke profile takes minutes by design: nothing is measured."""
    missing = plan.missing
    if not missing:
        return Requirements(0.0, [])
    if plan.choice.profile == "smoke":
        return Requirements(None, ["  time: a minute or a few (smoke is not measured)"])
    paces = find_paces([job.config for job in missing], runs)
    seconds, unknown = 0.0, set()
    for job in missing:
        pace = paces[kind_of(job.config)]
        if pace is None:
            unknown.add(job.config.agent)
        else:
            seconds += pace.seconds(job.config) * (1 - job.share())
    hours = seconds / 3600 / min(workers, len(missing))
    lines = [f"  time: about {duration(3600 * hours)}, {workers} at a time if they do not slow one another down"]
    lines += [
        f"    {agent} on {suite}: {1000 * pace.train_seconds:.1f} ms a step, {pace.source}"
        for (agent, suite, _), pace in paces.items()
        if pace
    ]
    lines += [f"    not known for {', '.join(sorted(unknown))}: it could not be tried here"] if unknown else []
    return Requirements(hours, lines + _room(missing, runs, workers))


def _room(missing: Sequence[Job], runs: Path, workers: int) -> list[str]:
    """Memory of the largest runs at a time; disk for the checkpoints, which hold the replay."""
    estimate_memory(missing)
    largest = sorted((job.memory for job in missing), reverse=True)[:workers]
    available = available_memory()
    memory = f"  memory: up to {amount(sum(largest))} with {len(largest)} at a time"
    memory += f"; {amount(available)} available" if available is not None else ""
    if available is not None and sum(largest) > available:
        fitting = max(1, int(available / largest[0]))
        memory += f": more than there is, take --workers {fitting}"
    disk = sum(max(0, job.memory - PROGRAM_BYTES) for job in missing)
    there = next(folder for folder in (runs, *runs.absolute().parents) if folder.exists())
    free = shutil.disk_usage(there).free
    words = f"  disk: up to {amount(disk)} in checkpoints; {amount(free)} free"
    return [memory, words + (": more than there is" if disk > free else "")]
