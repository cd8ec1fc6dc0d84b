"""The run directory: the only record of a run, and all that reports read.

By hand, because no experiment tracker cuts its logs back to a checkpoint.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import tomllib
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w
from filelock import FileLock, Timeout

from peer_rl.errors import ConfigError, RunError
from peer_rl.packages import version_of
from peer_rl.settings import as_dict, find_agent, from_dict, variant
from peer_rl.settings.environment import rendering_of, task_of
from peer_rl.settings.resolve import defaults, option_name
from peer_rl.settings.run import AnyRunConfig
from peer_rl.settings.tasks import Task, find_task
from peer_rl.training.files import (
    Committed,
    JsonLines,
    check_folder,
    open_regular,
    read_bytes,
    read_object,
    replace_file,
)

if TYPE_CHECKING:
    from peer_rl.replay.store import Ring
    from peer_rl.training.checkpoint import Checkpoint

SCHEMA = 1
LOGS = ("metrics", "eval", "diagnostics")
"""Logs that a resumed run continues without a line lost or doubled."""
FILES = ("config.toml", "manifest.json", "status.json", *(f"{log}.jsonl" for log in (*LOGS, "timing")))
SEALED = ("config.toml", "manifest.json")
"""Files of which status.json holds the checksums."""
DRAFTS = (".config.toml.new", ".manifest.json.new", ".status.json.new", ".lock")
_PACKAGES = ("peer-rl", "torch", "numpy", "gymnasium", "safetensors")


def run_path(config: AnyRunConfig, runs: Path) -> Path:
    """``RUNS/PROFILE/SUITE-NAME/AGENT[+VARIANT]/seedK``."""
    return runs / config.profile / find_task(config.task).slug / variant(config) / f"seed{config.seed}"


def command_of(config: AnyRunConfig) -> list[str]:
    """The command that trains this run, with every setting that differs from the task's default."""
    base = as_dict(defaults(config.agent, config.task, profile=config.profile)[0])
    mine = {path: value for path, value in as_dict(config).items() if path not in ("agent", "task", "preset", "device")}
    words = ["peer-rl", "train", config.agent, "--task", config.task]
    for path, value in mine.items():
        if base.get(path) != value or path == "seed" or (path == "profile" and value != "paper"):
            words += option_words(option_name(path), value)
    return words


def option_words(name: str, value: Any) -> list[str]:
    """The words that set an option on the command line."""
    if isinstance(value, bool):  # a switch takes no value: --critic.layer-norm, --critic.no-layer-norm
        section, dot, switch = name.rpartition(".")
        return [f"--{section}{dot}{'' if value else 'no-'}{switch}"]
    return [f"--{name}", *(str(item) for item in (value if isinstance(value, list) else [value]))]


def read_config(path: Path) -> AnyRunConfig:
    """The config of an existing run."""
    file = path / "config.toml"
    try:
        return from_dict(flatten(tomllib.loads(read_bytes(file).decode())))
    except FileNotFoundError as error:
        raise RunError(f"{path} is not a run directory: it has no config.toml") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise RunError(f"{file} is damaged: {error}") from error
    except OSError as error:
        raise RunError(f"{path} is not a run directory ({error.strerror})") from error


def read_settings(file: Path) -> dict[str, Any]:
    """The settings in a TOML file by their dotted paths: a config.toml, or one that a user wrote."""
    try:
        return flatten(tomllib.loads(read_bytes(file).decode()))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no file {file}; name a TOML file, such as the config.toml of a run") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise ConfigError(f"{file} is not TOML: {error}") from error


def read_toml(file: Path) -> dict[str, Any]:
    """A TOML file that a user wrote: a sweep or a ledger."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {file} ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not TOML: {error}") from error


def read_json(path: Path) -> dict[str, Any]:
    """One of a run's JSON files."""
    try:
        return read_object(read_bytes(path))
    except FileNotFoundError as error:
        raise RunError(f"{path.parent} is not a complete run directory: it has no {path.name}") from error
    except ValueError as error:
        raise RunError(f"{path} is damaged: {error}") from error


def read_status(path: Path) -> dict[str, Any]:
    """A run's status.json, which holds its own checksum; empty if there is none."""
    file = path / "status.json"
    status = read_json(file) if file.exists() else {}
    if "sha256" in status and status["sha256"] != _checksum(status):
        raise RunError(f"{file} was changed after the run wrote it; put the original back, or delete that file")
    return status


def _checksum(status: dict[str, Any]) -> str:
    return sha256(json.dumps({**status, "sha256": ""}, sort_keys=True).encode()).hexdigest()


def check_files(path: Path, status: dict[str, Any]) -> None:
    """Refuse a config.toml or manifest.json other than the one of which status.json holds the checksum."""
    for name, digest in _checked(path, status, "files").items():
        if name in SEALED and digest != sha256(read_bytes(path / name)).hexdigest():
            raise RunError(f"{path / name} was changed after the run wrote it; put the original back")


def _checked(path: Path, status: dict[str, Any], part: str) -> dict[str, Any]:
    if not isinstance(found := status.get(part, {}), dict):
        raise RunError(f"{path / 'status.json'} is damaged: its {part} are no JSON object")
    return found


def check_places(path: Path) -> None:
    """Refuse a run directory in which a name that peer-rl writes is a link, a pipe or a device."""
    for name in (*FILES, *DRAFTS):
        with contextlib.suppress(FileNotFoundError):
            os.close(open_regular(path / name))
    check_folder(path / "checkpoint")
    check_folder(path / "checkpoint" / "replay")


class RunDirectory:
    """A run that this process, and no other, writes: use it in a ``with`` block."""

    def __init__(self, path: Path, config: AnyRunConfig) -> None:
        from peer_rl.training.checkpoint import Checkpoints  # here: reading runs needs no torch

        self.path = path
        self.config = config
        self.logs: dict[str, JsonLines] = {}
        self.checkpoints = Checkpoints(path / "checkpoint")
        self._lock = FileLock(path / ".lock", timeout=0.2)  # a report that tries the lock holds it for a moment
        self._lock_id = (0, 0)

    def __enter__(self) -> RunDirectory:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            check_places(self.path)
            self._lock.acquire()
            self._lock_id = _identity(self.path / ".lock")
        except Timeout as error:
            raise RunError(
                f"another process is writing {self.path}; wait for it, or choose another --seed or --runs"
            ) from error
        except OSError as error:
            raise RunError(f"cannot write {self.path} ({error.strerror}); choose another place with --runs") from error
        try:
            self._check_config()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        try:
            for log in self.logs.values():
                log.close()
        finally:
            self._lock.release()

    def check_lock(self) -> None:
        """Stop if the lock was deleted: another process may be writing this run by now."""
        if _identity(self.path / ".lock") != self._lock_id:
            raise RunError(
                f"the lock of {self.path} was removed while the run was being written; nothing more is written: "
                "make sure that no other process trains it, then type the same command again"
            )

    def _check_config(self) -> None:
        """Write config.toml, or refuse settings other than those that the run began with."""
        path = self.path / "config.toml"
        mine = as_dict(self.config)
        if not path.exists():
            replace_file(path, tomli_w.dumps(_nest(mine)).encode())
            return
        theirs = as_dict(read_config(self.path))
        differing = [name for name in {**theirs, **mine} if theirs.get(name) != mine.get(name)]
        if differing:
            changes = ", ".join(f"{name} was {theirs.get(name)} and is {mine.get(name)}" for name in differing)
            raise RunError(f"{self.path} was started with other settings: {changes}; choose another --runs")

    def open(self, ring: Ring | None = None) -> Checkpoint | None:
        """Verify the newest checkpoint, cut the logs back to it and open them; ``ring`` gets the replay's rows."""
        check_files(self.path, read_status(self.path))
        checkpoint = self.checkpoints.load(ring)
        if checkpoint is None and self.state() == "finished":
            raise RunError(f"{self.path} is finished but its checkpoint is gone; delete the folder to train it again")
        logs = checkpoint.logs if checkpoint else {}
        kept = {name: logs.get(name, Committed()) for name in LOGS}
        digests = {name: committed.check(self.path / f"{name}.jsonl") for name, committed in kept.items()}
        if self.state() == "finished" and any(_size(self.path / f"{name}.jsonl") > kept[name].length for name in LOGS):
            self.write_status("resumed")  # before lines are cut: a cut run must not pass for a finished one
        for name in LOGS:
            self.logs[name] = JsonLines(self.path / f"{name}.jsonl", kept[name].length, digests[name])
        timing = self.path / "timing.jsonl"
        whole = Committed(_size(timing))
        self.logs["timing"] = JsonLines(timing, whole.length, whole.check(timing))
        if checkpoint:
            self.checkpoints.clean()
        return checkpoint

    def write_manifest(
        self,
        spec: dict[str, Any],
        *,
        replay: dict[str, Any] | None = None,
        again: bool = False,
        command: list[str] | None = None,
    ) -> None:
        """Versions, machine, command, shapes, the replay's size: once, when the run begins, or ``again``."""
        path = self.path / "manifest.json"
        if path.exists() and not again:
            return
        (self.path / "status.json").unlink(missing_ok=True)  # it holds the checksum of the one before
        from peer_rl.envs.simulators import MODULES, engine_of  # here: reading runs needs no Gymnasium

        task = task_of(self.config)
        packages = (*_PACKAGES, *MODULES.get(engine_of(task), ()), *find_agent(self.config.agent).packages)
        manifest = {
            "schema": SCHEMA,
            "packages": {name: version_of(name) for name in packages},
            "environment": _environment(task, self.config),
            "python": platform.python_version(),
            "machine": {"system": platform.platform(), "processor": platform.machine()},
            "command": command or command_of(self.config),
            "spec": spec,
            "replay": replay,
        }
        replace_file(path, json.dumps(manifest, indent=1).encode())

    def state(self) -> str:
        """The state in status.json; empty if there is none."""
        return str(read_status(self.path).get("state", ""))

    def write_status(self, state: str, **counters: Any) -> None:
        """Where the run stands, and checksums: of its settings and manifest, and of each log once it is finished."""
        if state == "finished" and self.logs:
            counters["logs"] = {name: asdict(log.commit()) for name, log in self.logs.items()}
        files = {
            name: sha256(read_bytes(self.path / name)).hexdigest() for name in SEALED if (self.path / name).exists()
        }
        status = {"state": state, **counters, "files": files}
        content = json.dumps({**status, "sha256": _checksum(status)})
        replace_file(self.path / "status.json", content.encode(), durable=state != "running")

    def stopped(self, step: int, what: str) -> RunError:
        """The error that stops a run: at which step, why, and what is kept."""
        steps = self.checkpoints.steps()
        kept = f"the last good checkpoint, at step {steps[-1]}, is kept" if steps else "there is no checkpoint yet"
        return RunError(f"stopped at step {step}: {what}; {kept} in {self.path}")


def _environment(task: Task, config: AnyRunConfig) -> str:
    """The environment; for a task from pixels also its renderer, on which the frames depend."""
    rendering = rendering_of(config)
    if rendering is None:
        return task.make
    backend = os.environ.get("MUJOCO_GL") or "MuJoCo's own choice"
    return f"{task.make}, drawn in {rendering.quality} quality by {backend}"


def check_logs(path: Path, status: dict[str, Any]) -> None:
    """Refuse logs that differ from those of which a finished run's status.json holds the checksums."""
    logs = _checked(path, status, "logs")
    for name in (name for name in (*LOGS, "timing") if name in logs):
        try:
            committed = Committed(int(logs[name]["length"]), str(logs[name]["sha256"]))
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(f"{path / 'status.json'} is damaged: it does not say how long {name}.jsonl is") from error
        log = path / f"{name}.jsonl"
        committed.check(log)
        if _size(log) > committed.length:
            raise RunError(f"{log} has lines that were added after the run ended; its training command removes them")


def _identity(path: Path) -> tuple[int, int]:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return (-1, -1)
    return found.st_dev, found.st_ino


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _nest(flat: dict[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, name = path.split(".")
        branch = nested
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[name] = value
    return nested


def flatten(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables by dotted paths."""
    flat: dict[str, Any] = {}
    for name, value in nested.items():
        flat |= flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
