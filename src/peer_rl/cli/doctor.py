"""``peer-rl doctor``: what is missing on this machine, and the command that fixes it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from peer_rl.packages import EXTRAS, TRAINER, absent, require_trainer, version_of

_ROOM = 1 << 30


@dataclass(frozen=True)
class DoctorOptions:
    """Check this machine. Exit code 0 if training works, 2 if something needed for it is missing."""

    runs: Path = Path("runs")
    """Folder of the run directories."""


@dataclass(frozen=True)
class Finding:
    """One line of the check-up."""

    level: str
    """ok, optional or missing"""
    text: str
    fix: str = ""


def main(arguments: list[str]) -> int:
    """Print every finding, and the command that fixes it."""
    options = _options(arguments)
    findings = [*_python(), *_packages(), *_extras(), *_tools(), *_hardware(), *_place(options.runs)]
    for finding in findings:
        print(f"{finding.level:<9} {finding.text}" + (f"\n{'':<9} fix: {finding.fix}" if finding.fix else ""))
    missing = sum(finding.level == "missing" for finding in findings)
    print("everything that training needs is installed" if not missing else f"{missing} problem(s) to fix")
    return 2 if missing else 0


def _options(arguments: list[str]) -> DoctorOptions:
    """The options, which are read by one of the packages that may be missing."""
    if arguments:
        require_trainer("an option of peer-rl doctor")
    elif absent(("tyro",)):
        return DoctorOptions()
    from peer_rl.cli.options import parse

    return parse(DoctorOptions, arguments, prog="peer-rl doctor")


def _python() -> Iterator[Finding]:
    here = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info >= (3, 11)
    yield Finding("ok" if ok else "missing", f"Python {here}", "" if ok else "install Python 3.11 or later")


def _packages() -> Iterator[Finding]:
    """The plug-in's package, and the trainer's."""
    if version_of("torch"):
        yield Finding("ok", f"the plug-in: torch {version_of('torch')}")
    else:
        yield Finding("missing", "the plug-in: torch not installed", "pip install torch")
    missing = absent(TRAINER)
    if missing:
        yield Finding("missing", f"the trainer: {' and '.join(missing)} not installed", "pip install 'peer-rl[train]'")
    else:
        yield Finding("ok", "the trainer: " + ", ".join(f"{name} {version_of(name)}" for name in TRAINER))


def _extras() -> Iterator[Finding]:
    for extra, (purpose, names) in EXTRAS.items():
        missing = [name for name in names if version_of(name) is None]
        if missing:
            fix = f"pip install 'peer-rl[{extra}]'"
            yield Finding("optional", f"{purpose}: {' and '.join(missing)} not installed", fix)
        else:
            yield Finding("ok", f"{purpose}: " + ", ".join(f"{name} {version_of(name)}" for name in names))


def _tools() -> Iterator[Finding]:
    """What pip cannot install."""
    if absent(("torch", *TRAINER)):
        return
    from peer_rl.agents.checks import compiler

    if shutil.which(compiler()):
        yield Finding("ok", "a C++ compiler, for --compile")
    else:
        yield Finding("optional", "no C++ compiler, which --compile needs", "apt-get install g++")
    if version_of("mujoco") is None:
        return
    from peer_rl.envs.headless import FIXES, try_drawing

    reason = try_drawing()
    if reason:
        needed = "which peer-rl watch and training from DMControl's pixels need"
        yield Finding("optional", f"MuJoCo cannot render, {needed} ({reason})", FIXES["osmesa"])
    else:
        yield Finding("ok", "MuJoCo can draw")


def _hardware() -> Iterator[Finding]:
    yield Finding("ok", f"{os.cpu_count()} processor cores")
    if find_spec("torch") is None:
        return
    import torch

    if torch.cuda.is_available():
        yield Finding("ok", f"CUDA: {torch.cuda.get_device_name()}")
    elif torch.backends.mps.is_available():
        yield Finding("ok", "Apple's MPS")
    else:
        yield Finding("optional", "no GPU that torch can use; everything runs on the CPU")


def _place(runs: Path) -> Iterator[Finding]:
    """Whether runs can be written: the nearest existing folder above ``runs`` decides."""
    folder = runs.absolute()
    while not folder.exists():
        folder = folder.parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        yield Finding("missing", f"{folder} cannot be written", "choose another place with --runs")
        return
    free = shutil.disk_usage(folder).free
    level = "ok" if free > _ROOM else "missing"
    fix = "" if free > _ROOM else f"free some space on the disk of {folder}"
    yield Finding(level, f"runs go to {runs}; {free / 1e9:.0f} GB free", fix)
