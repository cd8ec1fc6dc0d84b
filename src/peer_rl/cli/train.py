"""``peer-rl train AGENT --task SUITE/NAME``: train one run, or continue it."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from tyro.conf import arg

from peer_rl.cli.options import parse
from peer_rl.errors import ConfigError
from peer_rl.settings import AGENTS, Origins, RunConfig, as_dict, find_agent
from peer_rl.settings.beta import AUTO, check_weight, describe_beta
from peer_rl.settings.environment import with_frames
from peer_rl.settings.fields import check_not_negative
from peer_rl.settings.resolve import apply, canonical, defaults, option_name
from peer_rl.settings.run import AnyRunConfig
from peer_rl.settings.suites import Value
from peer_rl.settings.tasks import find_task
from peer_rl.training.loggers import PROJECT, Mirror, TensorBoard, WandB
from peer_rl.training.rundir import option_words

Run = TypeVar("Run")
_CHOICES = {"preset": "", "profile": "paper"}
"""Options that choose defaults, and what they are if not given."""
_EXAMPLE_TASKS = {"discrete": "gym/CartPole-v1", "continuous": "pybullet/hopper", "either": "mujoco/hopper"}


@dataclass(frozen=True)
class TrainOptions(Generic[Run]):
    """Train one run. The same command resumes it if it was stopped."""

    run: Annotated[Run, arg(name="")]
    config: Path | None = None
    """Take the settings from this TOML file, such as the config.toml of a run; other options override it."""
    frames: int | None = None
    """Environment frames to train for, instead of --steps: agent steps x action repeat."""
    runs: Path = Path("runs")
    """Folder of the run directories."""
    checkpoint_seconds: float = 60.0
    """A checkpoint is taken at the first episode end this long after the last one."""
    extend: bool = False
    """Continue a run that has the same settings and a smaller budget; the result is as if it had this one."""
    dry_run: bool = False
    """Only show the run directory and every setting with its origin, and whether this machine can run it."""
    quiet: bool = False
    """No progress bar; only the run directory is printed, at the end."""
    tensorboard: bool = False
    """Show the logs in TensorBoard too: tensorboard --logdir RUNS."""
    wandb: Annotated[str | None, arg(metavar="[PROJECT]")] = None
    """Send the logs to Weights & Biases too; the project is peer-rl if none is named."""


def main(arguments: list[str]) -> int:
    """Parse, train, and say where the run is."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_overview())
        return 0 if arguments else 2
    options, origins = read_options(arguments)
    if options.dry_run:
        return _show_plan(options, origins)
    from peer_rl.launch.api import extend_run, run_to_extend, train, what_comes_next
    from peer_rl.launch.progress import TrainingBar, summary
    from peer_rl.training.stopping import StopRequest

    mirrors: list[Mirror] = [TensorBoard()] if options.tensorboard else []
    mirrors += [WandB(options.wandb)] if options.wandb else []
    entry, run = find_agent(options.run.agent), options.run
    beta = f" beta={describe_beta(run)}" if entry.td_target else ""
    if not entry.resumes and not options.quiet:
        _say_whether_it_starts_again(options)
    if not options.quiet:
        _say_how_long(options)
    label = f"{run.agent} {run.task}{beta} seed={run.seed}"
    told = extend_run(run, options.runs) if options.extend else run_to_extend(run, options.runs)
    if told and not options.quiet:
        print(f"{label}: {told}", file=sys.stderr, flush=True)
    settings: dict[str, Any] = {"checkpoint_seconds": options.checkpoint_seconds, "mirrors": mirrors}
    try:
        with StopRequest(at_once=not entry.resumes) as stop, TrainingBar(label, quiet=options.quiet, stop=stop) as bar:
            path = train(run, runs=options.runs, show=bar.show, stop=lambda: stop.made, **settings)
    except KeyboardInterrupt:
        print(f"peer-rl: stopped; {what_comes_next(run, options.runs)}", file=sys.stderr)
        return stop.exit_code
    print(path if options.quiet else summary(path))
    return 0


def _overview() -> str:
    agents = "\n".join(f"  {name:<8} {entry.about}" for name, entry in AGENTS.items())
    return (
        "usage: peer-rl train AGENT --task SUITE/NAME [OPTIONS]\n\n"
        "Train one run. The same command resumes it if it was stopped.\n\n"
        f"agents:\n{agents}\n  module:Class  an agent of your own\n\n"
        "peer-rl train AGENT --task TASK --help lists the agent's options and their defaults for that task;\n"
        "peer-rl train AGENT --task TASK --dry-run shows where each value comes from."
    )


def read_options(arguments: list[str]) -> tuple[TrainOptions[Any], Origins]:
    """The run that the arguments describe, and where each setting comes from."""
    agent = None if arguments[0].startswith("-") else arguments[0]
    rest = _name_project(arguments[agent is not None :])
    early = _read_early(rest)
    saved = _read_saved(early, agent) if early.config else {}
    agent = agent or saved.get("agent")
    if agent is None:
        raise ConfigError(f"name the agent first: peer-rl train AGENT --task TASK; there are: {', '.join(AGENTS)}")
    entry = find_agent(agent)
    if entry.scripted:
        raise ConfigError(f"{agent} runs are trained by peer-rl compare")
    task = early.task or saved.get("task")
    if task is None and not {"-h", "--help"} & set(rest):
        raise ConfigError(f"name the task: peer-rl train {agent} --task TASK; see: peer-rl list tasks")
    chosen = {name: saved.get(name, getattr(early, name) or default) for name, default in _CHOICES.items()}
    base, origins = defaults(agent, task or _EXAMPLE_TASKS[entry.actions], **chosen)
    layer = {path: Value(value, str(early.config)) for path, value in saved.items() if path != "task"}
    base = _choose_budget(apply(base, layer, origins), early)
    prog = f"peer-rl train {agent}"
    kind: Any = TrainOptions[RunConfig[entry.settings, entry.learning, entry.protocol]]  # type: ignore[name-defined]
    options: TrainOptions[Any] = parse(kind, rest, prog=prog, default=TrainOptions(run=base))
    given = {word.partition("=")[0][2:].replace("-", "_") for word in rest}
    check_weight(options.run, given=given)
    run = options.run if options.frames is None else with_frames(options.run, options.frames)
    run = canonical(run)
    check_not_negative("checkpoint_seconds", options.checkpoint_seconds)
    before = as_dict(base)
    origins |= {path: "given" for path, value in as_dict(run).items() if before.get(path) != value}
    origins |= {name: "given" for name in ("task", "preset", "profile") if f"--{name}" in rest}
    origins.setdefault("agent", "given")
    if run.beta == "auto":
        origins |= {name: "of beta auto" for name in AUTO if name not in given}
    elif run.regularizer != "peer" and "beta" not in saved:
        origins["beta"] = "given" if "beta" in given else f"ours: PEER's, for {run.regularizer} too"
    return replace(options, run=run, frames=None), origins


def _read_saved(early: argparse.Namespace, agent: str | None) -> dict[str, Any]:
    """The settings in the file of --config, by their dotted paths."""
    from peer_rl.training.rundir import read_settings

    saved = read_settings(Path(early.config))
    for name in _CHOICES:
        if getattr(early, name) is not None:
            raise ConfigError(f"--{name} chooses defaults, which --config replaces; leave one of them out")
    if agent and saved.get("agent", agent) != agent:
        raise ConfigError(f"{early.config} is of the agent {saved['agent']}, not {agent}; leave out {agent}")
    for name in ("agent", "task", *_CHOICES):
        if not isinstance(saved.get(name, ""), str):
            raise ConfigError(f"{early.config}: {name} must be a text, but is {saved[name]!r}")
    return saved


def _name_project(rest: list[str]) -> list[str]:
    """``--wandb`` without a project, which tyro cannot express, gets the default one."""
    for word, after in pairwise([*rest, "-"]):
        if word == "--wandb" and after.startswith("-"):
            place = rest.index(word) + 1
            return [*rest[:place], PROJECT, *rest[place:]]
    return rest


def _read_early(rest: list[str]) -> argparse.Namespace:
    """The options that decide which defaults the others have; tyro reports later what is wrong with them."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name in ("task", "config", *_CHOICES, "steps", "episodes", "frames"):
        early.add_argument(f"--{name}", default=None)
    try:
        return early.parse_known_args(rest)[0]
    except argparse.ArgumentError as error:
        raise ConfigError(f"{error.argument_name} needs a value") from error


def _choose_budget(base: AnyRunConfig, early: argparse.Namespace) -> AnyRunConfig:
    """A budget that is given replaces the default one; two are a contradiction."""
    given = [name for name in ("steps", "episodes", "frames") if getattr(early, name) is not None]
    if len(given) > 1:
        raise ConfigError(f"give one budget, not {len(given)}: {' and '.join('--' + name for name in given)}")
    if given == ["episodes"]:
        return replace(base, steps=None, episodes=base.episodes or 1)
    return replace(base, steps=base.steps or 1, episodes=None) if given else base


def _say_whether_it_starts_again(options: TrainOptions[Any]) -> None:
    """Stable-Baselines3's agents have no checkpoint but the final one: a stopped run starts again."""
    from peer_rl.training.rundir import run_path

    path = run_path(options.run, options.runs)
    if (path / "manifest.json").exists() and not (path / "checkpoint").exists():
        print(f"{options.run.agent} cannot resume: {path} starts again", file=sys.stderr, flush=True)


def _say_how_long(options: TrainOptions[Any]) -> None:
    """A task of the user's own is not made once more just for that: making it may do anything."""
    if find_task(options.run.task).suite == "custom":
        return
    from peer_rl.launch.cost import expected_time
    from peer_rl.training.rundir import read_status, run_path

    step = read_status(run_path(options.run, options.runs)).get("step")
    estimate = expected_time(options.run, begin=step if isinstance(step, int) else 0)
    if estimate:
        print(f"{options.run.agent} {options.run.task}: {estimate}", file=sys.stderr, flush=True)


def _as_typed(path: str, value: Any) -> tuple[str, str]:
    """A setting as the option that sets it, and its value in words; the agent has no option, a switch no value."""
    name, *words = ("AGENT", str(value)) if path == "agent" else option_words(option_name(path), value)
    return name, shlex.join(words)


def _show_plan(options: TrainOptions[Any], origins: Origins) -> int:
    """The settings first: an error that follows can be looked up in the table."""
    from peer_rl.training.rundir import run_path

    print(run_path(options.run, options.runs))
    settings = as_dict(options.run).items()
    rows = [(*_as_typed(path, value), origins.get(path, "default")) for path, value in settings]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, value, origin in rows:
        print(f"  {name:<{widths[0]}}  {value:<{widths[1]}}  {origin}")
    sys.stdout.flush()
    from peer_rl.launch.api import rehearse

    plan = rehearse(options.run, runs=options.runs).plan
    if plan:
        print(plan)
    return 0
