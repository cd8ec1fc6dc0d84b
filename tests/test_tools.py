"""What make runs before the tests."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "tools" / "system_packages.sh"


@pytest.mark.skipif(sys.platform != "linux", reason="the script is for Debian")
def test_without_permission_to_install_one_line_names_what_is_missing_and_make_continues(tmp_path):
    """No apt-get and no compiler on this PATH."""
    for tool in ("uname", "id", "ls", "sh"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    result = subprocess.run(["sh", SCRIPT], capture_output=True, text=True, env={"PATH": str(tmp_path)})
    assert (result.returncode, result.stdout) == (0, "")
    assert len(result.stderr.splitlines()) == 1
    assert "sudo apt-get install g++" in result.stderr


@pytest.mark.skipif(not shutil.which("g++"), reason="nothing to find")
def test_a_compiler_that_is_there_is_found(tmp_path):
    for tool in ("uname", "id", "ls", "sh", "g++"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    result = subprocess.run(["sh", SCRIPT], capture_output=True, text=True, env={"PATH": str(tmp_path)})
    assert (result.returncode, result.stdout) == (0, "")
    assert "g++" not in result.stderr
