"""TensorBoard and Weights & Biases as mirrors of the logs.

The JSON lines are the record of a run; a mirror receives the same rows and is never read.
"""

from __future__ import annotations

import math
import sys
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from peer_rl.errors import ConfigError
from peer_rl.settings import as_dict, variant
from peer_rl.settings.run import AnyRunConfig

PROJECT = "peer-rl"
"""The W&B project when none is named."""
_COUNTERS = ("step", "frame", "episode")


class Mirror(Protocol):
    """A second destination for a run's numbers: created before the run, opened when it starts, always closed."""

    def open(self, run: Path, config: AnyRunConfig, step: int) -> None:
        """The run starts or resumes at ``step``; rows of later steps will be written again."""

    def write(self, log: str, row: dict[str, Any]) -> None:
        """A row of ``log``, with its counters."""

    def flush(self) -> None:
        """A checkpoint is about to be taken: rows so far do not come again."""

    def close(self, *, failed: bool) -> None:
        """The run has ended, or stopped; also called if it never began."""


def scalars(log: str, row: dict[str, Any]) -> dict[str, float]:
    """The finite numbers of a row, as ``log/name``; counters, flags and lists are left out."""
    plain = {name: value for name, value in row.items() if name not in _COUNTERS and not isinstance(value, bool)}
    numbers = {name: value for name, value in plain.items() if isinstance(value, int | float)}
    return {f"{log}/{name}": value for name, value in numbers.items() if math.isfinite(value)}


class TensorBoard:
    """Event files in ``RUN/tensorboard``. A resumed run discards points after its checkpoint."""

    def __init__(self) -> None:
        _require("tensorboard")
        self._writer: Any = None
        self._frame_at = -1

    def open(self, run: Path, config: AnyRunConfig, step: int) -> None:
        """Begin another event file, which hides the points after ``step`` in the files before it."""
        from torch.utils.tensorboard import SummaryWriter

        self._frame_at = step
        self._writer = SummaryWriter(run / "tensorboard", purge_step=step + 1)

    def write(self, log: str, row: dict[str, Any]) -> None:
        """One point for each number; ``frame`` once a step, so that steps can be read as frames."""
        step = row["step"]
        for name, value in scalars(log, row).items():
            self._writer.add_scalar(name, value, step)
        if step > self._frame_at:
            self._frame_at = step
            self._writer.add_scalar("frame", row["frame"], step)

    def flush(self) -> None:
        """Write the points out, so that a killed run does not lose what its checkpoint counts as written."""
        self._writer.flush()

    def close(self, *, failed: bool) -> None:
        """Write the points out and end the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class WandB:
    """A run in a W&B project. W&B's own settings hold (``WANDB_MODE=offline``, ``WANDB_ENTITY``, ...).

    A failure of the service stops the mirror with one printed line; the run continues.
    """

    def __init__(self, project: str = PROJECT) -> None:
        _require("wandb")
        self.project = project
        self._run: Any = None
        self._known = 0

    def open(self, run: Path, config: AnyRunConfig, step: int) -> None:
        """Join the W&B run of this run directory: its id comes from the path, which names the seed too."""
        import wandb

        name = variant(config)
        try:
            self._run = wandb.init(
                project=self.project,
                id=sha256(str(run.resolve()).encode()).hexdigest()[:16],
                name=f"{name} seed{config.seed}",
                group=f"{config.task} {name}",
                config=as_dict(config),
                dir=str(run),
                resume="allow",
                # W&B's capture of the terminal would break the progress bar; its own patience is 90 s
                settings=wandb.Settings(console="off", init_timeout=30),
            )
            self._known = self._run.step  # rows up to here were sent before a kill, and law 3 makes the same ones again
        except Exception as error:
            self._give_up(error)

    def write(self, log: str, row: dict[str, Any]) -> None:
        """Rows of one step become one row of W&B's."""
        if self._run is None or row["step"] < self._known:
            return
        try:
            self._run.log({**scalars(log, row), "frame": row["frame"], "episode": row["episode"]}, step=row["step"])
        except Exception as error:
            self._give_up(error)

    def flush(self) -> None:
        """Nothing to do: W&B's own process has the rows already."""

    def close(self, *, failed: bool) -> None:
        """Finish the W&B run with its exit code."""
        if self._run is not None:
            run, self._run = self._run, None
            try:
                run.finish(exit_code=int(failed))
            except Exception as error:
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._run = None
        reason = " ".join(str(error).split()) or type(error).__name__
        print(f"peer-rl: W&B cannot be used ({reason}); training continues without it", file=sys.stderr, flush=True)


def _require(package: str) -> None:
    if find_spec(package) is None:
        raise ConfigError(f"--{package} needs a package that is not installed: pip install 'peer-rl[{package}]'")
