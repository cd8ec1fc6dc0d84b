"""Shared by all tests: one torch thread, and no deadline for an example on a busy machine."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.fixture
def doubles() -> Iterator[None]:
    """Every tensor that is made from here on has double precision."""
    import torch

    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all of xdist's workers have in common; take a lock to write there."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def shared_run(shared_folder: Path) -> Callable[..., Path]:
    """Trains a tiny run once for all tests, and all of xdist's workers, that only read it: ``shared_run("dqn")``.

    Takes what ``running.tiny_run`` takes, or a ``config``. Runs in another ``folder`` are others, trained anew.
    """
    from running import tiny_config

    from peer_rl.launch.api import train

    def run(
        agent: str, *, folder: str = "usual", checkpoint_seconds: float = 60.0, config: Any = None, **changes: Any
    ) -> Path:
        with FileLock(shared_folder / f"{agent}.lock"):  # a finished run is left as it is
            settled = config or tiny_config(agent, **changes)
            return train(settled, runs=shared_folder / folder, checkpoint_seconds=checkpoint_seconds)

    return run


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a disk that is soon full, ``small_disk("400k")``, which needs root on Linux."""
    disk = tmp_path / "disk"

    def mount(size: str) -> Path:
        disk.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
        if sys.platform != "linux" or os.geteuid() or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("mounting a small disk needs root on Linux")
        return disk

    yield mount
    subprocess.run(["umount", disk], capture_output=True)


@pytest.fixture
def more_settings(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Adds a block to a suite's settings: ``more_settings("gym", {"steps": 10}, profile="smoke")``."""
    from peer_rl.settings import suites
    from peer_rl.settings.suites import Value

    def add(suite: str, values: dict[str, Any], **selectors: Any) -> None:
        before = suites._blocks
        block = (selectors, {path: Value(value, "test") for path, value in values.items()})
        monkeypatch.setattr(suites, "_blocks", lambda name: (*before(name), *([block] if name == suite else [])))

    return add
