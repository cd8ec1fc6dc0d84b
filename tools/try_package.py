"""Builds the sdist, from it the wheel, and uses the wheel in environments that hold only what its metadata asks for.

    make package                 # or: python tools/try_package.py [--out dist]

Needs no network: an environment of its own links what is installed here, following the wheel's requirements, so an
import that no requirement covers fails. The README's first block is timed, from an empty folder to the first loss.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import BytesParser
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
LARGEST_WHEEL = 2_000_000
SECONDS_TO_FIRST_LOSS = 60.0


class Broken(Exception):
    """The package is not fit to be published."""


def build(out: Path) -> Path:
    """The sdist of this folder and the wheel of that sdist, in ``out``; returns the wheel."""
    with tempfile.TemporaryDirectory() as folder:
        _hatchling(ROOT, "sdist", out)
        (sdist,) = out.glob("*.tar.gz")
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        _hatchling(Path(folder) / sdist.name.removesuffix(".tar.gz"), "wheel", out)
    (wheel,) = out.glob("*.whl")
    return wheel


def _hatchling(source: Path, target: str, out: Path) -> None:
    _call([sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)], source)


def read_metadata(wheel: Path) -> Message:
    """What a package index reads of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return BytesParser().parsebytes(archive.read(name))


def check_contents(wheel: Path) -> None:
    """Our package and nothing else, with its data files."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    strays = [name for name in names if not name.startswith("peer_rl") or "__pycache__" in name]
    if strays:
        raise Broken(f"the wheel holds {', '.join(strays)}")
    data = [path for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    lost = {path.relative_to(ROOT / "src").as_posix() for path in data} - set(names)
    if lost:
        raise Broken(f"the wheel lacks {', '.join(sorted(lost))}")
    if wheel.stat().st_size > LARGEST_WHEEL:
        raise Broken(f"the wheel has {wheel.stat().st_size:,} bytes")


def check_page(page: str) -> None:
    """What the index shows: every link absolute, and no formula, which it would print as it is typed."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page, flags=re.MULTILINE | re.DOTALL)
    relative = re.findall(r"\]\((?!https://|#)([^)]*)\)", prose)
    if relative:
        raise Broken(f"links that lead nowhere on an index: {', '.join(relative)}")
    formulas = re.findall(r"\$[^$]+\$", prose)
    if formulas:
        raise Broken(f"formulas that an index does not typeset: {', '.join(formulas)}")


def requirements(wheel: Path, extras: set[str]) -> Iterator[metadata.Distribution]:
    """The installed packages that the wheel with these extras asks for, and what those ask for."""
    waiting = [(line, extras) for line in read_metadata(wheel).get_all("Requires-Dist", [])]
    seen: set[tuple[str, str]] = set()
    while waiting:
        line, wanted = waiting.pop()
        need = Requirement(line)
        if need.marker and not any(need.marker.evaluate({"extra": extra}) for extra in wanted | {""}):
            continue
        for extra in need.extras | {""}:
            if (need.name, extra) in seen:
                continue
            seen.add((need.name, extra))
            found = metadata.distribution(need.name)
            if not need.specifier.contains(found.version, prereleases=True):
                raise Broken(f"{line} is required, but {found.version} is installed")
            waiting += [(each, set(need.extras)) for each in found.requires or ()]
            yield found


def environment(folder: Path, wheel: Path, extras: set[str]) -> Path:
    """A virtual environment with the wheel and links to what it asks for; returns its folder of commands."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for found in requirements(wheel, extras):
        for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(found.locate_file(top))))
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    _call([*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel)], folder)
    return folder / "bin"


def _call(words: list[str], folder: Path, *, code: int = 0) -> str:
    """Run a command in a folder, without what this shell adds to Python's path; returns what it printed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True, timeout=300)
    said = done.stdout + done.stderr
    if done.returncode != code or "Traceback" in said:
        raise Broken(f"{' '.join(words)} ended with {done.returncode} instead of {code}:\n{said}")
    return said


def readme_block(containing: str) -> str:
    """The README's Python block with a certain word."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if containing in block)


def try_plugin(folder: Path, wheel: Path) -> float:
    """Beside torch alone: the README's first block, and one sentence from what needs more; returns the seconds."""
    start = time.monotonic()
    commands = environment(folder / "plugin", wheel, set())
    block = readme_block("peer_loss") + "print('loss', critic_loss.item())"
    said = _call([str(commands / "python"), "-c", block], folder)
    seconds = time.monotonic() - start
    if not re.search(r"^loss 0\.7\d+$", said, re.MULTILINE):
        raise Broken(f"no loss from the README's first block:\n{said}")
    if seconds > SECONDS_TO_FIRST_LOSS:
        raise Broken(f"{seconds:.0f} s to the first PEER loss")
    _call([str(commands / "peer-rl"), "--version"], folder)
    said = _call([str(commands / "peer-rl"), "train", "dqn"], folder, code=2)
    if "gymnasium" not in said or "pip install 'peer-rl[train]'" not in said or len(said.splitlines()) != 1:
        raise Broken(f"peer-rl train without the trainer said:\n{said}")
    _call([str(commands / "peer-rl"), "doctor"], folder, code=2)
    return seconds


def try_trainer(folder: Path, wheel: Path) -> None:
    """With the extra ``train``: train, evaluate, list, check the machine."""
    peer = str(environment(folder / "trainer", wheel, {"train"}) / "peer-rl")
    budget = ["--steps", "300", "--start-steps", "100", "--quiet"]
    _call([peer, "train", "dqn", "--task", "gridworld/paper", *budget], folder)
    (run,) = (path.parent for path in folder.glob("runs/**/status.json"))
    _call([peer, "eval", str(run), "--episodes", "1"], folder)
    _call([peer, "list"], folder)
    _call([peer, "doctor"], folder)


def try_report(folder: Path, wheel: Path) -> None:
    """With the extra ``report``: a page about the run that `try_trainer` left."""
    peer = str(environment(folder / "report", wheel, {"report"}) / "peer-rl")
    _call([peer, "report", "runs", "--out", "page", "--no-pictures"], folder)


def try_sb3(folder: Path, wheel: Path) -> None:
    """With the extra ``sb3``: the README's swap of one import."""
    python = str(environment(folder / "sb3", wheel, {"sb3"}) / "python")
    _call([python, "-c", readme_block("integrations.sb3")], folder)


def main() -> None:
    """Build, check, try; stop at what is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="where sdist and wheel stay; a folder that is removed, if not given")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        out = options.out.absolute() if options.out else folder / "dist"
        wheel = build(out)
        check_contents(wheel)
        check_page(read_metadata(wheel).get_payload())
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, its page's links are absolute")
        print(f"beside torch alone: first PEER loss after {try_plugin(folder, wheel):.1f} s")
        for part in (try_trainer, try_report, try_sb3):
            start = time.monotonic()
            part(folder, wheel)
            print(f"{part.__name__.removeprefix('try_')}: works, {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    try:
        main()
    except Broken as error:
        sys.exit(f"try_package: {error}")
