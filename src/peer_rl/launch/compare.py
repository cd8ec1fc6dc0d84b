"""Does PEER help a user's own agent? Trains it with and without, several seeds each, and writes a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peer_rl.errors import ConfigError, PeerError, RunError
from peer_rl.launch.engine import EngineName, run_jobs
from peer_rl.launch.jobs import Job, make_folder
from peer_rl.packages import from_extra
from peer_rl.settings import as_dict, from_dict
from peer_rl.settings.fields import Checked, Positive, check_not_negative
from peer_rl.settings.resolve import canonical
from peer_rl.settings.run import AnyRunConfig
from peer_rl.settings.script import ModelProtocol
from peer_rl.training.rundir import read_config, run_path
from peer_rl.training.script_loader import Script, load_script, spec_of_function, stop_if_loading
from peer_rl.training.script_run import ScriptDirectory, ScriptRun, train_function

CONTROLS = ("layer-norm",)
DEFAULT_BETAS = (0.0, 5e-4)
DEFAULT_SEEDS = 6
"""The fewest with which the sign-flip test can decide at 5 %."""


@dataclass(frozen=True)
class Plan(Checked):
    """What a comparison trains: every variant with every seed."""

    betas: Sequence[float] = DEFAULT_BETAS
    seeds: Sequence[int] = tuple(range(DEFAULT_SEEDS))
    steps: Positive[int] = 50_000
    regularizers: Sequence[str] = ("peer",)
    controls: Sequence[str] = ()
    protocol: dict[str, int] = field(default_factory=dict)
    """Settings of `ModelProtocol` that differ from its defaults."""
    threads: Positive[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("seeds", "regularizers"):
            if not getattr(self, name):
                raise ConfigError(f"{name} must hold at least one value, not none")
        if not (self.betas or self.controls):
            raise ConfigError("betas must hold at least one value, not none")
        for beta in self.betas:
            check_not_negative("beta", beta)
        for seed in self.seeds:
            check_not_negative("seed", seed)
        for control in self.controls:
            if control not in CONTROLS:
                raise ConfigError(f"unknown control {control!r}; there are: {', '.join(CONTROLS)}")

    def variants(self) -> list[tuple[str, float, str]]:
        """(regularizer, beta, control); the plain agent once, whatever the regularizers."""
        plain = [("peer", 0.0, "")] if 0 in self.betas else []
        weighed = [(name, float(beta), "") for name in self.regularizers for beta in self.betas if beta]
        return [*plain, *weighed, *(("peer", 0.0, control) for control in self.controls)]

    def configs(self, script: Script) -> list[AnyRunConfig]:
        """Seed by seed, so that a comparison that is stopped half-way has whole pairs."""
        default = as_dict(ModelProtocol())
        chosen = [name for name, value in self.protocol.items() if value != default.get(name)]
        if script.logs and chosen:
            raise ConfigError(f"{script.name} logs its own returns, so leave out {', '.join(chosen)}")
        return [self._config(script, *variant, seed) for seed in self.seeds for variant in self.variants()]

    def _config(self, script: Script, regularizer: str, beta: float, control: str, seed: int) -> AnyRunConfig:
        for name, given in (("regularizer", regularizer != "peer"), ("control", bool(control and script.logs))):
            if given and name not in script.accepts:
                value = regularizer if name == "regularizer" else control
                raise ConfigError(
                    f"{script.name} takes no {name}, so {value} cannot reach its agent: "
                    f"give the function a parameter named {name}"
                )
        about: dict[str, Any] = {
            "agent": "script" if script.logs else "sb3-script",
            "task": script.task,
            "seed": seed,
            "beta": float(beta),
            "regularizer": regularizer,
            "steps": self.steps,
            "device": "cpu",  # for our side: the script puts its agent where it wants
            "threads": self.threads,
            "settings.digest": script.digest,
            "settings.control": control,
        }
        if not script.logs:
            about |= {f"protocol.{name}": value for name, value in self.protocol.items()}
        return canonical(from_dict(about))


@dataclass
class ScriptJob(Job):
    """One run of a script: a process that types ``peer-rl compare`` for this run alone."""

    script: str = ""

    @classmethod
    def of_script(cls, config: AnyRunConfig, runs: Path, script: Script) -> ScriptJob:
        """The job of a config."""
        control = config.settings.control
        arguments = ["--betas", *([] if control else [repr(config.beta)]), "--regularizers", config.regularizer]
        arguments += ["--controls", control] if control else []
        arguments += ["--seeds", "1", "--first-seed", str(config.seed), "--steps", str(config.steps)]
        for name, value in _protocol_of(config).items():
            arguments += [f"--{name.replace('_', '-')}", str(value)]
        arguments += ["--threads", str(config.threads), "--in-process"]
        return cls(config, arguments, runs, script=script.spec)

    @property
    def label(self) -> str:
        """The variant as the report names it, and the seed."""
        return " ".join(self.parts[1:])

    @property
    def parts(self) -> tuple[str, ...]:
        """Task, variant and seed."""
        from peer_rl.report.runs import label

        return self.path.parents[1].name, label(self.config, several=False), self.path.name

    @property
    def words(self) -> list[str]:
        """The command, word by word, after the program's name."""
        return ["compare", self.script, *self.arguments, "--runs", str(self.runs)]


def _protocol_of(config: AnyRunConfig) -> dict[str, Any]:
    default = from_dict({"agent": config.agent, "task": config.task, "steps": 1})
    mine, normal = as_dict(config.protocol), as_dict(default.protocol)
    return {name: value for name, value in mine.items() if normal.get(name) != value}


def run_in_process(script: Script, config: AnyRunConfig, runs: Path) -> Path:
    """Train one run of a script here; a finished one is left alone, an unfinished one starts again."""
    path = run_path(config, runs)
    job = ScriptJob.of_script(config, runs, script)
    with ScriptDirectory(path, config) as directory:
        if directory.state() == "finished":
            return path
        checkpoint = directory.open()
        run = ScriptRun(config, directory)
        if checkpoint is not None:  # killed between the last line and the last status
            run.step, run.episode = (checkpoint.components["loop"][name] for name in ("step", "episode"))
            run.write_status("finished")
            return path
        with run:
            run.begin(script, ["peer-rl", *job.words], kind="function" if script.logs else "model")
            if script.logs:
                train_function(script, run)
            else:
                _train_model(script, run)
            run.finish()
    return path


def _train_model(script: Script, run: ScriptRun) -> None:
    try:
        from peer_rl.sb3.script import train_model
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{script.name}(seed, beta) makes a Stable-Baselines3 model, which needs {error.name}: "
            "pip install 'peer-rl[sb3]'; a training function takes a third argument, log"
        ) from error
    train_model(script, run)


def compare(
    make: Callable[..., Any] | str,
    *,
    betas: Sequence[float] = DEFAULT_BETAS,
    seeds: int | Sequence[int] = DEFAULT_SEEDS,
    steps: int = 50_000,
    regularizers: Sequence[str] = ("peer",),
    controls: Sequence[str] = (),
    runs: Path | str = "runs",
    out: Path | str = "compare",
    engine: EngineName = "local",
    workers: int | None = None,
    address: str | None = None,
    threads: int = 1,
    **protocol: int,
) -> Path:
    """Train a user's agent with and without PEER, and write the report; returns the page's path.

    make: ``make(seed, beta)`` returning a Stable-Baselines3 model, or ``train(seed, beta, log)`` that trains by itself
        and calls ``log(step=..., return_=..., **numbers)``; the function, or ``SCRIPT.py:NAME``. It is also given
        ``regularizer``, ``control`` and ``steps`` if it has parameters of these names.
    seeds: how many (0, 1, ...), or which. At least six are needed to decide anything at 5 %.
    regularizers: compares each of them at each beta above 0. controls: ``layer-norm`` adds a LayerNorm critic.
    protocol: evaluations, eval_episodes, final_episodes and diagnoses of a Stable-Baselines3 model.

    Every run is a process of its own. The same call keeps finished runs and restarts unfinished ones.
    """
    stop_if_loading()
    wanted = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    plan = Plan(tuple(betas), wanted, steps, tuple(regularizers), tuple(controls), dict(protocol), threads)
    script = load_script(make if isinstance(make, str) else spec_of_function(make))
    page = run_plan(script, plan, Path(runs), Path(out), engine=engine, workers=workers, address=address)
    print(page)
    return page


def run_plan(script: Script, plan: Plan, runs: Path, out: Path, **engine: Any) -> Path:
    """Train what is missing of a plan, then report; runs that failed are on the page, and raised after it."""
    _check_comparable(plan)
    jobs = jobs_of(script, plan, runs)
    make_folder(runs)
    make_folder(out, "--out")
    failure: PeerError | None = None
    try:
        run_jobs(jobs, alike=True, **engine)
    except RunError as error:
        if not any(job.finished() for job in jobs):
            raise
        failure = error
    page = report(script, plan, runs, out)
    if failure:
        raise RunError(f"{failure}. The report on the other runs: {page}") from failure
    return page


def _check_comparable(plan: Plan) -> None:
    """Refuse a plan whose page could not answer anything."""
    if 0 not in plan.betas:
        raise ConfigError("betas must include 0, the plain agent that the others are compared with: --betas 0 5e-4")
    if len(plan.variants()) < 2:
        raise ConfigError("betas must include a value above 0 to compare with the plain agent: --betas 0 5e-4")


def jobs_of(script: Script, plan: Plan, runs: Path) -> list[Job]:
    """One job for each run of the plan; refuses a folder with runs of other code."""
    jobs: list[Job] = [ScriptJob.of_script(config, runs, script) for config in plan.configs(script)]
    for job in jobs:
        _check_same_code(job)
    return jobs


def _check_same_code(job: Job) -> None:
    if job.status().get("state") != "finished":  # it starts again, with the code as it is now
        return
    theirs = read_config(job.path).settings.digest
    if theirs != job.config.settings.digest:
        raise ConfigError(
            f"the script has changed since {job.path} was made, and runs of different code are not comparable: "
            "choose another --runs, or delete that folder's parent to train all again"
        )


def report(script: Script, plan: Plan, runs: Path, out: Path) -> Path:
    """Write the page about the plan's runs."""
    from peer_rl.report.runs import missing_runs, read_run

    configs = plan.configs(script)
    paths = [run_path(config, runs) for config in configs]
    records = [read_run(path) for path in paths if (path / "config.toml").exists()]
    records += missing_runs(records, configs, runs)
    with from_extra("report", "a report"):
        from peer_rl.report.compare import write_comparison

        return write_comparison(records, out, title=f"Does PEER help {Path(script.spec).name}?")
