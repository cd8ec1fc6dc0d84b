"""Tests the package on other versions of Python and torch, each in an environment of its own that is removed again.

    python tools/try_versions.py                                   # whatever can be had here without large downloads
    python tools/try_versions.py --python 3.13 --torch oldest --download

Without --download torch comes from this machine (pip's find-links or --wheels) or not at all; where there is none for a
Python, the tests that need no torch run. PyBullet, which has no wheel beyond Python 3.11, is left out.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
EXTRAS = "train,sb3,report"
TESTS = (
    "plugin",
    "networks",
    "replay",
    "settings",
    "test_packages.py",
    "agents/test_dqn.py",
    "agents/test_td3.py",
    "agents/test_sac.py",
    "training/test_checkpoint.py",
    "sb3/test_sb3_drop_in.py",
)
WITHOUT_TORCH = (
    "settings/test_dmc.py",
    "settings/test_layers.py",
    "report/test_tables.py",
    "report/test_aggregates.py",
    "paper/test_published.py",
)


def find_python(version: str) -> str | None:
    """An interpreter of this version: on PATH, or pyenv's."""
    here = [shutil.which(f"python{version}")]
    here += sorted(str(path) for path in Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for candidate in filter(None, here):
        asked = subprocess.run([candidate, "--version"], capture_output=True, text=True)
        if asked.returncode == 0 and asked.stdout.startswith(f"Python {version}."):
            return candidate
    return None


def torch_requirement(which: str) -> str:
    """Oldest is the lower bound of pyproject.toml, newest whatever pip finds; anything else is a version."""
    (bound,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    oldest = bound.partition(">=")[2]
    return {"oldest": f"torch=={oldest}.*", "newest": "torch"}.get(which, f"torch=={which}")


class Environment:
    """A virtual environment that runs pip and pytest."""

    def __init__(self, python: str, folder: Path) -> None:
        subprocess.run([python, "-m", "venv", folder], check=True)
        self.python = str(folder / "bin" / "python")

    def pip(self, *words: str, fails: bool = False) -> bool:
        """``pip install``; False where it failed and may."""
        command = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
        return subprocess.run(command, check=not fails, stderr=subprocess.DEVNULL if fails else None).returncode == 0

    def has_torch(self) -> str:
        """Its version, or an empty string."""
        asked = subprocess.run(
            [self.python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True
        )
        return asked.stdout.strip() if asked.returncode == 0 else ""

    def test(self, paths: Iterable[str], *words: str) -> str:
        """Pytest's last line, with ok or FAILED in front."""
        tests = [str(ROOT / "tests" / path) for path in paths]
        command = [self.python, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", *words, *tests]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        lines = done.stdout.strip().splitlines()
        if done.returncode:
            print("\n".join(lines[-40:]), file=sys.stderr)
        return f"{'FAILED' if done.returncode else 'ok'}: {lines[-1] if lines else 'nothing was printed'}"


def try_cell(python: str, torch: str, options: argparse.Namespace) -> str:
    """Install and test one pair of versions; returns its line of the table."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        env = Environment(python, Path(folder))
        wheels = [word for path in options.wheels for word in ("--find-links", str(path))]
        local = [] if options.download else ["--no-index"]
        found = env.pip(*local, *wheels, "--no-deps" if local else "--prefer-binary", torch, fails=bool(local))
        if found:
            env.pip(*wheels, "--prefer-binary", torch, f"{ROOT}[{EXTRAS}]", "pytest", "hypothesis")
            version = env.has_torch()
            result = env.test(TESTS) if version else "FAILED: torch cannot be imported"
            about = f"torch {version}"
        else:
            project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
            needs = [line for extra in ("train", "report") for line in project[extra] if not line.startswith("peer-rl")]
            env.pip("--no-deps", str(ROOT))
            env.pip(*needs, "pytest", "hypothesis")
            result = env.test(WITHOUT_TORCH, "--noconftest")
            about = f"without torch (no {torch} here)"
    result = re.sub(r" in [\d.]+s.*", "", result)
    return f"{about}: {result}, {time.monotonic() - start:.0f} s"


def main() -> int:
    """Every pair of versions that can be had; returns 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", nargs="+", default=PYTHONS, help="versions of Python")
    parser.add_argument("--torch", nargs="+", default=["oldest", "newest"], help="oldest, newest or a version")
    parser.add_argument("--wheels", nargs="+", type=Path, default=[], help="folders with wheels of torch")
    parser.add_argument("--download", action="store_true", help="download torch, possibly with gigabytes of CUDA")
    options = parser.parse_args()
    failed = False
    for version in options.python:
        python = find_python(version)
        for torch in options.torch:
            line = try_cell(python, torch_requirement(torch), options) if python else "no interpreter here"
            failed |= "FAILED" in line or not (python or options.python is PYTHONS)
            print(f"Python {version}, {torch}: {line}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
