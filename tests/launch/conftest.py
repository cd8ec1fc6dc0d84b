"""Runs that several files compare with."""

from pathlib import Path

import pytest
from filelock import FileLock
from running import peer_rl
from sweeping import write_grid


@pytest.fixture(scope="session")
def undisturbed(shared_folder: Path) -> Path:
    """The runs of a local sweep that nobody disturbs, and what it printed in ``printed.txt``."""
    folder = shared_folder / "undisturbed"
    with FileLock(f"{folder}.lock"):
        if not (folder / "printed.txt").exists():
            result = peer_rl("sweep", write_grid(folder), "--runs", folder / "runs")
            assert result.returncode == 0, result.stderr
            (folder / "printed.txt").write_text(result.stderr)
    return folder / "runs"
