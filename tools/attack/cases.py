"""One case: commands in forked children that are watched, and what counts as a failure of theirs.

A child calls ``peer_rl.cli.main`` with its own working directory. An audit hook notes every file that it writes,
creates, renames or deletes outside the places it may write, and can kill it at the n-th operation on a file.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HANG = 60.0
"""Seconds after which a command hangs."""
_MEMORY = 12 << 30
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "shutil.rmtree"}
_FRAME = re.compile(r'^  File "(.+?)", line', re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    words: tuple[str, ...]
    code: int
    """The exit code; minus the signal that ended it."""
    out: str = ""
    errors: str = ""
    touched: tuple[str, ...] = ()
    """What it changed outside the places it may write."""
    operations: int = 0
    """Changes of files that it made, if it came to its end."""
    hung: bool = False

    @property
    def line(self) -> str:
        """The command, cut."""
        return " ".join(word if len(word) < 60 else f"{word[:57]}..." for word in self.words)

    def faults(self, *, codes: tuple[int, ...] = (0, 2)) -> list[str]:
        """What no command may do, whatever it is given."""
        found = []
        if self.hung:
            return [f"{self.line}: still there after {HANG:g} s"]
        if self.code not in codes:
            found.append(f"exit code {self.code}")
        if "Traceback (most recent" in self.errors and not self._ends_in_users_code():
            found.append(f"a traceback: {self.errors.strip().splitlines()[-1][:200]}")
        if self.code == 2 and not re.search(r"[^\W\d]{3}", self.errors):
            found.append("exit code 2 without a sentence")
        found += [f"touched {path}" for path in self.touched]
        return [f"{self.line}: {fault}" for fault in found]

    def _ends_in_users_code(self) -> bool:
        """The last frame of the traceback is of a file that the case wrote."""
        frames = _FRAME.findall(self.errors)
        return bool(frames) and bool(re.search(r"/attack-[^/]+/\w+/work/", frames[-1]))


@dataclass
class Watch:
    """The audit hook of a child."""

    allowed: tuple[str, ...]
    die_at: int = 0
    touched: list[str] = field(default_factory=list)
    operations: int = 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note a change of a file; die if it is the one to die at."""
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, int) or not (flags or 0) & _WRITES:
                return
            paths = [os.path.realpath(os.fsdecode(path))]
        elif event in _CHANGES:
            if isinstance(arguments[-1], int) and arguments[-1] >= 0 and event in ("os.remove", "os.rmdir", "os.mkdir"):
                return  # below the descriptor of a folder: a part of shutil.rmtree, which has an event of its own
            names = arguments[:2] if event in ("os.rename", "os.link", "os.symlink") else arguments[:1]
            paths = [_own_place(os.fsdecode(name)) for name in names if isinstance(name, str | bytes | os.PathLike)]
        else:
            return
        self.operations += 1
        if self.operations == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.touched += [f"{event} {path}" for path in paths if not path.startswith(self.allowed)]


def _own_place(path: str) -> str:
    return os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(path))), os.path.basename(path))


def start(home: Path, call: Callable[[], int | None], *, die_at: int = 0) -> int:
    """Fork a child that makes the call in ``home/work``; returns its process id."""
    sys.stdout.flush()
    sys.stderr.flush()
    for name in ("work", "runs", "tmp"):
        (home / name).mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child == 0:
        _be_a_command(home, call, die_at)
    return child


def _be_a_command(home: Path, call: Callable[[], int | None], die_at: int) -> None:
    code = 1
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        notes = os.open(home / "notes", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number, name in enumerate(("/dev/null", home / "out", home / "errors")):
            flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(name, flags), number)
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
            for number, mode in enumerate("rww")
        )
        os.chdir(home / "work")
        sys.path.insert(0, str(home / "work"))
        sys.dont_write_bytecode = True
        scratch = str(home / "tmp")
        os.environ |= {"TMPDIR": scratch, "HOME": scratch, "COLUMNS": "100"}
        tempfile.tempdir = scratch
        places = (home / "runs", home / "tmp", home / "work" / "runs", home / "work" / "report", Path("/dev/null"))
        watch = Watch(tuple(os.path.realpath(place) for place in places), die_at)
        sys.addaudithook(watch)
        try:
            warnings.resetwarnings()  # pytest makes them errors, in its forks too
            code = call() or 0
        except SystemExit as exit:
            code = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(notes, json.dumps([watch.operations, watch.touched]).encode())
    finally:
        os._exit(code & 0xFF)


def finish(child: int, home: Path, words: tuple[str, ...], *, seconds: float = HANG) -> Outcome:
    """Wait for a child that ``start`` made; one that hangs is killed."""
    deadline, pause, hung = time.monotonic() + seconds, 0.002, False
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            hung, deadline = True, deadline + 1e9
            os.killpg(child, signal.SIGKILL)
        time.sleep(pause)
        pause = min(0.05, pause * 1.5)
    notes = (home / "notes").read_text() if (home / "notes").exists() else ""
    operations, touched = json.loads(notes) if notes else (0, [])
    out, errors = ((home / name).read_bytes().decode("utf-8", "replace") for name in ("out", "errors"))
    return Outcome(words, os.waitstatus_to_exitcode(status), out, errors, tuple(touched), operations, hung)


def peer_rl(home: Path, *words: object, die_at: int = 0) -> Outcome:
    """A command to its end."""
    line = tuple(map(str, words))
    return finish(start(home, command(line), die_at=die_at), home, ("peer-rl", *line))


def command(words: tuple[str, ...]) -> Callable[[], int]:
    """The call that is the command ``peer-rl WORDS``."""

    def call() -> int:
        from peer_rl.cli.main import main

        sys.argv = ["peer-rl", *words]
        return main()

    return call


def ask(home: Path, question: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a function of peer-rl returns, as JSON, in a child of its own; and what went wrong."""
    outcome = finish(start(home, lambda: print(json.dumps(question(), default=str))), home, (question.__name__,))
    faults = outcome.faults(codes=(0,))
    return (None if faults else json.loads(outcome.out)), faults


@dataclass(frozen=True)
class Result:
    """What came of one case, or of several at once."""

    what: str
    failures: list[str]
    cases: int = 1
    commands: int = 0
    """How many commands ran."""


def run_case(kind: str, base: Path, scratch: Path, seed: int, number: int) -> Result:
    """Case ``number`` of a kind, in a folder of its own that is deleted afterwards."""
    home = scratch / f"{kind}{number}"
    home.mkdir()
    try:
        module = importlib.import_module(f"attack.{kind}")
        result: Result = module.attack(random.Random(f"{kind} {seed} {number}"), home, base)
    except Exception as error:
        result = Result("the case itself", [f"the attack could not be made: {type(error).__name__}: {error}"])
        traceback.print_exc()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return result
