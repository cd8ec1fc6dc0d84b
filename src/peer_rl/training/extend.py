"""A larger budget for a run that is there: its newest checkpoint between two episodes starts a directory of its own.

No budget changes what is learned, so the longer run equals one that had its budget from the start, bit for bit. The
last checkpoint of a finished run is no such start: the budget may have ended inside an episode, and the final
evaluation has been logged. The one before it is at most a minute and an episode older.
"""

from __future__ import annotations

from pathlib import Path

from peer_rl.errors import ConfigError, PeerError, RunError
from peer_rl.settings import as_dict, find_agent
from peer_rl.settings.run import AnyRunConfig
from peer_rl.training.checkpoint import Checkpoint, Checkpoints, read_checkpoint
from peer_rl.training.files import read_bytes, sync_directory, write_durably
from peer_rl.training.rundir import RunDirectory, read_config, run_path
from peer_rl.training.stopping import is_written

_BUDGETS = ("steps", "episodes")


def budget_of(config: AnyRunConfig) -> str:
    """What a run is trained for, in its own counter."""
    return f"{config.steps} steps" if config.steps is not None else f"{config.episodes} episodes"


def find_shorter(config: AnyRunConfig, runs: Path) -> Path | None:
    """The longest run that differs from ``config`` in a smaller budget alone."""
    found: dict[int, Path] = {}
    for file in sorted(run_path(config, runs).parents[1].glob(f"*/seed{config.seed}/config.toml")):
        try:
            other = read_config(file.parent)
        except PeerError:  # damaged: no run to continue
            continue
        if _without_budget(other) == _without_budget(config) and _total(other) < _total(config):
            found[_total(other)] = file.parent
    return found[max(found)] if found else None


def _total(config: AnyRunConfig) -> int:
    return config.steps or config.episodes or 0


def _without_budget(config: AnyRunConfig) -> dict[str, object]:
    """Everything but the number: a budget in episodes is another counter than one in steps."""
    counter = "steps" if config.steps is not None else "episodes"
    return {**{name: value for name, value in as_dict(config).items() if name not in _BUDGETS}, "counter": counter}


def extend(config: AnyRunConfig, runs: Path) -> str:
    """Give ``config``'s run the start of a shorter one; returns what happened as a sentence.

    A run that has a checkpoint of its own is left as it is. A crash on the way leaves no checkpoint, so the run starts
    from the beginning or is extended again.
    """
    path = run_path(config, runs)
    if not find_agent(config.agent).resumes:
        raise ConfigError(
            f"{config.agent} cannot be extended: its runs keep no state to continue from, only the final policy; "
            "leave out --extend to train from the beginning"
        )
    if Checkpoints(path / "checkpoint").steps():
        return ""
    source = find_shorter(config, runs)
    if source is None:
        raise RunError(
            f"there is no run to extend: none below {path.parents[1]} differs from this one in a smaller budget alone; "
            "leave out --extend to train from the beginning"
        )
    if is_written(source):
        raise RunError(f"{source} is still being written; stop it, or wait for it")
    checkpoint = _between_episodes(source)
    if checkpoint is None:
        return f"{source} has no checkpoint before its end, so the same run starts from the beginning"
    with RunDirectory(path, config) as run:
        _copy(checkpoint, source, run)
    return f"continues {source} from its checkpoint at step {checkpoint.step}"


def _between_episodes(source: Path) -> Checkpoint | None:
    """The newest checkpoint from before the budget was spent; the replay's files are checked too."""
    config = read_config(source)
    checkpoints = Checkpoints(source / "checkpoint")
    for step in reversed(checkpoints.steps()):
        checkpoint = read_checkpoint(checkpoints.folder / f"{step:012d}")
        loop = checkpoint.components["loop"]
        if loop["step" if config.steps is not None else "episode"] < _total(config):
            checkpoint.restore_replay(None)
            return checkpoint
    return None


def _copy(checkpoint: Checkpoint, source: Path, run: RunDirectory) -> None:
    """Logs, replay and, with a rename at the very end, the checkpoint itself."""
    for name, committed in checkpoint.logs.items():
        committed.check(source / f"{name}.jsonl")
        content = read_bytes(source / f"{name}.jsonl", largest=None) if committed.length else b""
        write_durably(run.path / f"{name}.jsonl", content[: committed.length])
    folder = run.path / "checkpoint"
    draft = folder / f".{checkpoint.folder.name}.new"
    for new in (folder / "replay", draft):
        new.mkdir(parents=True, exist_ok=True)
    for name in (segment["file"] for segment in checkpoint.segments):
        write_durably(folder / "replay" / name, read_bytes(source / "checkpoint" / "replay" / name, largest=None))
    for file in sorted(checkpoint.folder.iterdir()):
        write_durably(draft / file.name, read_bytes(file, largest=None))
    for new in (folder / "replay", draft):
        sync_directory(new)
    draft.rename(folder / checkpoint.folder.name)
    sync_directory(folder)
