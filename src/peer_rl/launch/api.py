"""Train a config, load a trained policy: what the command line does, from Python."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from peer_rl.agents.checks import check_compiler
from peer_rl.agents.make import build_agent
from peer_rl.envs.make import Env, env_of
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError, RunError
from peer_rl.packages import absent
from peer_rl.rng import Stream, episode_seed
from peer_rl.settings import find_agent
from peer_rl.settings.environment import task_of
from peer_rl.settings.run import AnyRunConfig
from peer_rl.training.checkpoint import Checkpoints, read_checkpoint
from peer_rl.training.evaluate import Evaluation, evaluate
from peer_rl.training.extend import budget_of, extend, find_shorter
from peer_rl.training.loggers import Mirror
from peer_rl.training.loop import Trainer
from peer_rl.training.process import keep_freed_memory, processor
from peer_rl.training.recorder import Progress
from peer_rl.training.rundir import RunDirectory, check_files, read_config, read_json, read_status, run_path


def resolve_device(name: str) -> str:
    """``auto`` is the best device that this machine has."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    usable = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", name):
        raise ConfigError(f"unknown device {name!r}; there are: auto, cpu, cuda, cuda:N, mps")
    if not usable[name.split(":")[0]]:
        raise ConfigError(f"this machine has no {name} that torch can use; take --device auto")
    return name


def check_packages(agent: str) -> None:
    """Refuse an agent whose package is not installed."""
    if find_agent(agent).scripted:
        raise ConfigError(
            f"{agent} runs belong to a user's script: peer-rl compare trains them, and only the script loads them"
        )
    if missing := absent(find_agent(agent).packages):
        raise ConfigError(f"{agent} needs {' and '.join(missing)}; install it with: pip install 'peer-rl[sb3]'")


_FULL = "the disk is full, training of {} stopped; free some space"
_NO_ROOM = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "a file of {} may not grow any more, training stopped; raise the limit (ulimit -f)",
}
"""What to do when a file could not be written, by the error's number."""


def what_comes_next(config: AnyRunConfig, runs: Path | str = "runs") -> str:
    """What the same command will do with a run that was stopped."""
    resumes = find_agent(config.agent).resumes
    kept = Checkpoints(run_path(config, Path(runs)) / "checkpoint").steps() if resumes else []
    if kept:
        return f"the same command resumes from the checkpoint at step {kept[-1]}"
    return "there is no checkpoint yet: the same command starts from the beginning"


def train(
    config: AnyRunConfig,
    *,
    runs: Path | str = "runs",
    checkpoint_seconds: float = 60.0,
    show: Callable[[Progress], None] = lambda progress: None,
    mirrors: Sequence[Mirror] = (),
    stop: Callable[[], bool] = lambda: False,
) -> Path:
    """Train one run, or continue it; returns its directory. The same call after a crash resumes it.

    Once ``stop`` returns True, the run takes a checkpoint at the end of its episode and raises KeyboardInterrupt.
    """
    config, path = _ready(config, runs)
    resumes = find_agent(config.agent).resumes
    try:
        run = RunDirectory(path, config)
        options = {"checkpoint_seconds": checkpoint_seconds, "show": show, "mirrors": mirrors, "stop": stop}
        with processor(config.threads):
            # built before the directory is touched: a task or regularizer that does not exist leaves nothing behind
            trainer = _build(config, run, **options)
            with run, trainer:
                trainer.train()
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise RunError(f"{_NO_ROOM[error.errno].format(path)}; then {what_comes_next(config, runs)}") from error
    except MemoryError as error:
        smaller = "--buffer-size" if resumes else "--batch-steps"
        raise RunError(f"not enough memory for {path}: {error}; take a smaller {smaller}") from error
    return path


def extend_run(config: AnyRunConfig, runs: Path | str = "runs") -> str:
    """Continue a run with a smaller budget, at the next ``train`` of ``config``; says from where."""
    return extend(replace(config, device=resolve_device(config.device)), Path(runs))


def run_to_extend(config: AnyRunConfig, runs: Path | str = "runs") -> str:
    """A sentence about a run that ``--extend`` would continue; empty if there is none, or the run has begun."""
    config = replace(config, device=resolve_device(config.device))
    if not find_agent(config.agent).resumes or (run_path(config, Path(runs)) / "config.toml").exists():
        return ""
    shorter = find_shorter(config, Path(runs))
    if shorter is None:
        return ""
    return f"{shorter} is the same run with {budget_of(read_config(shorter))}; --extend continues it"


def rehearse(config: AnyRunConfig, *, runs: Path | str = "runs") -> Progress:
    """Refuse what ``train`` would refuse before its first step; nothing is played and nothing is written."""
    config, path = _ready(config, runs)
    with processor(config.threads), _build(config, RunDirectory(path, config)) as trainer:
        progress: Progress = trainer.progress
    return progress


def _ready(config: AnyRunConfig, runs: Path | str) -> tuple[AnyRunConfig, Path]:
    """The config with its device, and its run's directory, if this machine has what the agent needs."""
    check_packages(config.agent)
    config = replace(config, device=resolve_device(config.device))
    check_compiler(config.settings, config.device)
    keep_freed_memory()
    return config, run_path(config, Path(runs))


def trainer_of(agent: str) -> Any:
    """The class that trains the agent: our loop, or Stable-Baselines3's for its agents."""
    if find_agent(agent).packages:
        from peer_rl.sb3.trainer import OnPolicyTrainer

        return OnPolicyTrainer
    return Trainer


def _policy_of(config: AnyRunConfig, spec: EnvSpec, device: torch.device) -> Any:
    """The config's agent, for a checkpoint's weights."""
    if find_agent(config.agent).packages:
        from peer_rl.sb3.on_policy import build

        return build(config.settings, spec, device=device)
    return build_agent(config, spec, device)


def _build(config: AnyRunConfig, run: RunDirectory, **options: Any) -> Any:
    return trainer_of(config.agent)(config, run, **options)


class Policy:
    """A trained agent, ready to act."""

    def __init__(self, path: Path, device: str = "auto") -> None:
        self.path = path
        self.config = replace(read_config(path), device=resolve_device(device))
        check_packages(self.config.agent)
        # a policy needs no regularizer, and loading another user's run should not import a module that it names
        plain = replace(self.config, regularizer="peer", beta=0.0)
        steps = Checkpoints(path / "checkpoint").steps()
        if not steps:
            wait = "for its first minute to pass" if find_agent(self.config.agent).resumes else "until it is finished"
            raise RunError(f"{path} has no checkpoint yet; train it first, or wait {wait}")
        self.step = steps[-1]
        check_files(path, read_status(path))
        checkpoint = read_checkpoint(path / "checkpoint" / f"{self.step:012d}")
        try:
            self.spec = EnvSpec.from_json(read_json(path / "manifest.json")["spec"])
        except (KeyError, TypeError, AttributeError) as error:
            raise RunError(
                f"{path / 'manifest.json'} does not describe the run's observations and actions; "
                "restore the original, or train again"
            ) from error
        try:
            self.agent = _policy_of(plain, self.spec, torch.device(self.config.device))
            self.agent.load_state_dict(checkpoint.components["agent"])
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError, RuntimeError, MemoryError) as error:
            reason = " ".join(str(error).split())
            raise RunError(f"{path} cannot be loaded: manifest, config and checkpoint do not fit ({reason})") from error
        self.frames_per_step = task_of(self.config).action_repeat
        self._rng = Stream(self.config.seed, "act", device=torch.device(self.config.device))

    def act(self, obs: Any, *, first: bool = False, explore: bool = False) -> Any:
        """The action for one observation, or an array of actions for a batch of them.

        ``obs`` is what the task's environment returns; ``first`` marks episode starts for agents with a memory.
        """
        encoded = self.spec.encode(obs)
        if not np.isfinite(encoded).all():
            raise ConfigError("obs must be finite, but holds NaN or infinity")
        single = encoded.ndim == len(self.spec.observation_shape)
        batch = encoded[None] if single else encoded
        actions = self.agent.act(batch, first=np.full(len(batch), first), explore=explore, rng=self._rng)
        return self.spec.decode(actions[0] if single else actions)

    def evaluate(self, episodes: int = 10, seed: int = 0) -> Evaluation:
        """Play episodes without exploration; nothing is written."""
        with closing(self.make_env()) as env:
            return evaluate(self.agent, env, self.spec, seeds=self.episode_seeds(episodes, seed), rng=self._rng)

    def make_env(self, render_mode: str | None = None) -> Env:
        """An environment as the run was trained in."""
        return env_of(self.config, render_mode=render_mode)

    @staticmethod
    def episode_seeds(episodes: int, seed: int) -> list[int]:
        """Seeds of the episodes that ``evaluate`` plays."""
        return [episode_seed(seed, "policy", index) for index in range(episodes)]


def load(run: Path | str, device: str = "auto") -> Policy:
    """The policy of a run directory, from its newest checkpoint."""
    return Policy(Path(run), device)
