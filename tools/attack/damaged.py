"""Damage to one file of a run directory: never a traceback, a damaged number, or a run resumed from it in silence."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from attack.cases import Result, ask, peer_rl
from attack.leavings import leavings

SUMMARY = "one file of a finished or unfinished run is damaged; then `report`, `runs`, `eval` and the same `train`"
PER_CASE = 1
TRAIN = ["train", "dqn", "--task", "gridworld/paper", "--profile", "smoke", "--steps", "400", "--start-steps", "150"]
TRAIN += [
    "--buffer-size",
    "250",
    "--update-every",
    "4",
    "--eval-every",
    "200",
    "--eval-episodes",
    "2",
    "--diagnose-every",
    "100",
]
TRAIN += ["--log-every", "50", "--checkpoint-seconds", "0", "--threads", "1", "--quiet"]


def prepare(base: Path) -> None:
    """A finished run, and the same one killed half-way."""
    whole = peer_rl(base / "finished", *TRAIN, "--runs", base / "finished" / "runs")
    killed = peer_rl(
        base / "unfinished", *TRAIN, "--runs", base / "unfinished" / "runs", die_at=whole.operations * 3 // 4
    )
    assert (whole.code, killed.code) == (0, -9), (whole, killed)
    for state in ("finished", "unfinished"):
        run = the_run(base / state)
        assert len(list((run / "checkpoint").glob("0*"))) >= 2, f"no two checkpoints in {run}"
    (base / "eval.txt").write_text(peer_rl(base / "finished", "eval", the_run(base / "finished")).out)


def the_run(home: Path) -> Path:
    """The one run below ``home/runs``."""
    (folder,) = (home / "runs").glob("*/*/*/seed*")
    return folder


def attack(dice: random.Random, home: Path, base: Path) -> Result:
    """Copy a run, damage one of its files, use it."""
    state = dice.choice(["finished", "unfinished"])
    shutil.copytree(base / state / "runs", home / "runs")
    run = the_run(home)
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.name != ".lock")
    file, harm = dice.choice(files), dice.choice(HARMS)
    harm(dice, file)
    what = f"{state}: {harm.__name__} {file.relative_to(run)}"
    failures, commands = use(dice, home, base, finished=state == "finished")
    return Result(what, failures, commands=commands)


def use(dice: random.Random, home: Path, base: Path, *, finished: bool, forged: bool = False) -> tuple[list[str], int]:
    """What a user would type next; the failures, and how many commands. A forged checkpoint may hold other numbers."""
    run = the_run(home)
    record, failures = ask(home, lambda: record_of(run))
    failures += [f"reported as good: {name}" for name in changed(record, base)]
    outcomes = [peer_rl(home, "runs", "--runs", home / "runs"), peer_rl(home, "eval", run)]
    if dice.random() < 0.2:
        outcomes.append(peer_rl(home, "report", home / "runs", "--out", home / "work" / "report", "--no-pictures"))
        if record and outcomes[-1].code == 0 and bool(record["problem"]) != ("not usable" in outcomes[-1].out):
            failures.append(f"report says {outcomes[-1].out!r} of a run with the problem {record['problem']!r}")
    if outcomes[1].code == 0 and finished and not forged and outcomes[1].out != (base / "eval.txt").read_text():
        failures.append(f"eval printed other numbers: {outcomes[1].out!r}")
    if record and not record["usable"] and finished and outcomes[0].out.startswith("finished"):
        failures.append("runs lists a damaged run as finished")
    outcomes.append(peer_rl(home, *TRAIN, "--runs", home / "runs"))
    if outcomes[-1].code == 0 and not forged:
        failures += resumed(home, run, base, usable=bool(record and record["usable"]), finished=finished)
    return [*(fault for outcome in outcomes for fault in outcome.faults()), *failures], len(outcomes) + 1


def resumed(home: Path, run: Path, base: Path, *, usable: bool, finished: bool) -> list[str]:
    """A run that train left or brought to its end equals the undisturbed one, or is reported as damaged."""
    after, failures = ask(home, lambda: record_of(run))
    failures += [f"after train reported as good: {name}" for name in changed(after, base)]
    if finished and not usable and after and not after["usable"]:
        return failures  # left alone, and shown as damaged
    mine, faults = ask(home, lambda: digests(run))
    return [*failures, *faults, *(f"resumed in silence to another {name}" for name in differing(mine, whole(base)))]


def digests(run: Path) -> dict[str, str]:
    """What law 3 covers, each part by its checksum."""
    return {name: sha256(content).hexdigest() for name, content in leavings(run).items()}


def differing(mine: dict[str, str] | None, theirs: dict[str, str]) -> list[str]:
    """The parts that are not the same."""
    return [name for name in theirs if mine and mine.get(name) != theirs[name]]


def record_of(run: Path) -> dict[str, Any]:
    """What a report takes from a run."""
    from peer_rl.report.runs import read_run
    from peer_rl.settings import as_dict

    record = read_run(run)
    if isinstance(logs := record.status.get("logs"), dict):
        logs.pop("timing", None)  # wall-clock times
    record.status.pop("sha256", None)  # which covers them
    numbers = {"rows": {log: rows for log, rows in record.rows.items() if log != "timing"}, "status": record.status}
    numbers |= {"config": as_dict(record.config) if record.config else None, "manifest": record.manifest}
    return {"usable": record.usable, "problem": record.problem, **json.loads(json.dumps(numbers))}


def changed(record: dict[str, Any] | None, base: Path) -> list[str]:
    """The parts of a usable record that are not those of the undisturbed run."""
    if not record or not record["usable"]:
        return []
    good = _good(base)
    return [f"{name}: {_difference(good[name], record[name])}" for name in _PARTS if record[name] != good[name]]


_PARTS = ("rows", "config", "status", "manifest")


def _difference(good: Any, found: Any) -> str:
    if isinstance(good, dict) and isinstance(found, dict):
        for key in [*good, *found]:
            if good.get(key) != found.get(key):
                return f"{key}: {_difference(good.get(key), found.get(key))}"
    return f"{str(good)[:80]} became {str(found)[:80]}"


@cache
def _good(base: Path) -> dict[str, Any]:
    return record_of(the_run(base / "finished"))


@cache
def whole(base: Path) -> dict[str, str]:
    """What the undisturbed run left behind."""
    return digests(the_run(base / "finished"))


def flip_bits(dice: random.Random, file: Path) -> None:
    """One to eight bits."""
    content = bytearray(file.read_bytes())
    for _ in range(dice.randint(1, 8) if content else 0):
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    file.write_bytes(content)


def truncate(dice: random.Random, file: Path) -> None:
    """Anywhere, often near the end."""
    content = file.read_bytes()
    file.write_bytes(
        content[: dice.choice([0, dice.randint(0, len(content)), max(0, len(content) - dice.randint(1, 9))])]
    )


def delete(dice: random.Random, file: Path) -> None:
    """As if it had never been."""
    file.unlink()


def change_a_digit(dice: random.Random, file: Path) -> None:
    """Any digit becomes another."""
    content = bytearray(file.read_bytes())
    places = [place for place, byte in enumerate(content) if 48 <= byte <= 57]
    if places:
        place = dice.choice(places)
        content[place] = dice.choice([byte for byte in range(48, 58) if byte != content[place]])
    file.write_bytes(content)


def zero_a_block(dice: random.Random, file: Path) -> None:
    """As a disk does that lost power."""
    content = bytearray(file.read_bytes())
    place = dice.randint(0, len(content))
    end = min(len(content), place + dice.choice([16, 512, 4096]))
    content[place:end] = bytes(end - place)
    file.write_bytes(content)


def repeat_lines(dice: random.Random, file: Path) -> None:
    """The last lines stand there twice."""
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines, *lines[-dice.randint(1, 3) :]]))


def drop_a_line(dice: random.Random, file: Path) -> None:
    """One line is missing."""
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(
        b"".join(lines[:place] + lines[place + 1 :] if (place := dice.randrange(len(lines) or 1)) >= 0 else lines)
    )


def scribble(dice: random.Random, file: Path) -> None:
    """Bytes of another program, inside or at the end."""
    content = file.read_bytes()
    place = dice.choice([len(content), dice.randint(0, len(content))])
    file.write_bytes(content[:place] + dice.randbytes(dice.randint(1, 40)) + content[place:])


def replace_with_another(dice: random.Random, file: Path) -> None:
    """The content of a sibling."""
    siblings = sorted(path for path in file.parent.iterdir() if path.is_file() and path != file)
    if siblings:
        shutil.copyfile(dice.choice(siblings), file)


HARMS: list[Callable[[random.Random, Path], None]] = [flip_bits, truncate, delete, change_a_digit, zero_a_block]
HARMS += [repeat_lines, drop_a_line, scribble, replace_with_another]
