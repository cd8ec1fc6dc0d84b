"""Runs that several files compare with."""

from pathlib import Path

import pytest
from running import peer_rl
from sweeping import write_grid


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory) -> Path:
    """The runs of a local sweep that nobody disturbs, and what it printed beside them in ``said.txt``."""
    folder = tmp_path_factory.mktemp("undisturbed")
    result = peer_rl("sweep", write_grid(folder), "--runs", folder / "runs")
    assert result.returncode == 0, result.stderr
    (folder / "said.txt").write_text(result.stderr)
    return folder / "runs"
