"""Run directories made by hand to harm whoever opens them: nothing outside is read as a run, changed or deleted."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import socket
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attack import damaged
from attack.cases import Result

SUMMARY = (
    "links, pipes, devices, deep or endless files, impossible numbers and odd names in a run; then the same commands"
)
PER_CASE = 1
prepare = damaged.prepare
_DRAFTS = (".config.toml.new", ".manifest.json.new", ".status.json.new", ".lock", "log.txt")
_ODD_NAMES = ["²", "٣", "-1", " ", "\n", "1e3", "0x10", "000000000343 ", "9" * 18, "9" * 200, "..new", ".x.new", "CON"]
_NUMBERS = [
    "1" + "0" * 400,
    "1e999",
    "-1e999",
    "NaN",
    "-Infinity",
    "9" * 18,
    "9" * 19,
    "-1",
    "1.5",
    "0",
    "-0.0",
    "1e308",
]
_VALUES: list[Any] = [None, [], {}, "", "²", "1", True, -1, 1.5, 1 << 62, [[]], {"": 0}, ["x"] * 3, "\x00", "../../x"]


def attack(dice: random.Random, home: Path, base: Path) -> Result:
    """Copy a run, make it hostile, use it; what lies outside must stay as it was."""
    state = dice.choice(["finished", "unfinished"])
    shutil.copytree(base / state / "runs", home / "runs")
    outside = home / "outside"
    (outside / "folder").mkdir(parents=True)
    for name in ("precious", "folder/precious.safetensors", "folder/000000000001"):
        (outside / name).write_bytes(b"precious\n")
    run, craft = damaged.the_run(home), dice.choice(CRAFTS)
    what = f"{state}: {craft.__name__} {craft(dice, run, outside)}"
    before = tree(outside)
    forged = craft in (forge_a_checkpoint, forge_tensors)
    failures, commands = damaged.use(dice, home, base, finished=state == "finished", forged=forged)
    after = tree(outside)
    failures += [f"changed outside: {name}" for name in before | after if before.get(name) != after.get(name)]
    return Result(what, failures, commands=commands)


def tree(folder: Path) -> dict[str, str]:
    """Names, kinds and contents of all that is there."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(mode) else ""
        found[str(path.relative_to(folder))] = f"{stat.S_IFMT(mode)} {content}"
    return found


def _file(dice: random.Random, run: Path, *, suffixes: tuple[str, ...] = ()) -> Path:
    """A file of the run, or the place of one that it will write."""
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.name != ".lock")
    if suffixes:
        return dice.choice([file for file in files if file.suffix in suffixes])
    return dice.choice([*files, *(run / name for name in _DRAFTS)])


def link_a_file(dice: random.Random, run: Path, outside: Path) -> str:
    """To a copy of itself outside, to what is precious, to nothing, to a folder, or to what has no end."""
    file = _file(dice, run)
    copy = outside / "copy"
    copy.write_bytes(file.read_bytes() if file.exists() else b"precious\n")
    target = dice.choice([copy, copy, outside / "precious", outside / "missing", outside / "folder", file])
    target = dice.choice([target, target, Path("/dev/zero"), Path("/dev/tty"), Path("/proc/self/mem")])
    file.unlink(missing_ok=True)
    file.symlink_to(target)
    return f"{file.relative_to(run)} -> {target.name}"


def link_hard(dice: random.Random, run: Path, outside: Path) -> str:
    """A file with a second name outside."""
    file = _file(dice, run)
    if not file.exists():
        file.write_bytes(b"precious\n")
    os.link(file, outside / "second name")
    return str(file.relative_to(run))


def link_a_folder(dice: random.Random, run: Path, outside: Path) -> str:
    """A folder of the run is elsewhere, among things that look like leftovers."""
    folders = [run / "checkpoint", *sorted((run / "checkpoint").iterdir())]
    folder = dice.choice([path for path in folders if path.is_dir()])
    folder.rename(outside / "moved")
    for stray in (".000000000007.new", "000000000001"):
        (outside / "moved" / stray).mkdir(exist_ok=True)
    (outside / "moved" / "000000000000-000000000009.safetensors").write_bytes(b"precious\n")
    folder.symlink_to(outside / "moved")
    return str(folder.relative_to(run))


def put_a_special_file(dice: random.Random, run: Path, outside: Path) -> str:
    """A pipe, a socket, a device or a folder in place of a file."""
    file = _file(dice, run)
    file.unlink(missing_ok=True)
    kind = dice.choice(["pipe", "socket", "device", "folder", "full folder"])
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "socket":
        with contextlib.chdir(file.parent), socket.socket(socket.AF_UNIX) as made:
            made.bind(file.name)
    elif kind == "device":
        os.mknod(file, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    else:
        file.mkdir()
        if kind == "full folder":
            (file / "precious").write_bytes(b"precious\n")
    return f"{kind} {file.relative_to(run)}"


def put_a_file_for_a_folder(dice: random.Random, run: Path, outside: Path) -> str:
    """A plain file where a folder was."""
    folders = [run / "checkpoint", *sorted(path for path in (run / "checkpoint").iterdir() if path.is_dir())]
    folder = dice.choice(folders)
    shutil.rmtree(folder)
    folder.write_bytes(dice.choice([b"", b"precious\n"]))
    return str(folder.relative_to(run))


def nest(dice: random.Random, run: Path, outside: Path) -> str:
    """JSON or TOML without end in depth."""
    file = _file(dice, run, suffixes=(".json", ".jsonl", ".toml"))
    start = dice.choice(["[", '{"a":', "[[{" if file.suffix == ".toml" else '[{"a":'])
    depth = dice.choice([500, 990, 5_000, 100_000])
    head = "a = " if file.suffix == ".toml" else dice.choice(["", '{"schema": 1, "state": "finished", "x": '])
    end = dice.choice(["", "]" * depth if start == "[" else "1" + "}" * depth])
    file.write_text(head + start * depth + end + ("}" if head.startswith("{") and end else "") + "\n")
    return f"{file.relative_to(run)} {start} x {depth}"


def put_a_number(dice: random.Random, run: Path, outside: Path) -> str:
    """Any number becomes one that is too large, of another type or none at all."""
    file = _file(dice, run, suffixes=(".json", ".jsonl", ".toml"))
    text = file.read_text()
    numbers = list(re.finditer(r"(?<![\w.\"-])-?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.\"-])", text))
    if not numbers:
        return "nothing"
    old, new = dice.choice(numbers), dice.choice(_NUMBERS)
    file.write_text(text[: old.start()] + new + text[old.end() :])
    return f"{file.relative_to(run)}: {old.group()} -> {new[:20]}"


def put_a_value(dice: random.Random, run: Path, outside: Path) -> str:
    """Any value of a JSON file becomes one of another type, or is missing."""
    names = ("manifest.json", "status.json", "eval.jsonl", "metrics.jsonl")
    name = dice.choice([name for name in names if (run / name).exists()])  # a run killed early has no status yet
    lines = (run / name).read_text().splitlines() if name.endswith("l") else [(run / name).read_text()]
    place = dice.randrange(len(lines))
    lines[place], where = _put(dice, lines[place])
    (run / name).write_text("\n".join(lines) + "\n")
    return f"{name}: {where}"


def _put(dice: random.Random, text: str) -> tuple[str, str]:
    whole = json.loads(text)
    holder, path = whole, []
    while True:
        key = dice.choice(list(holder)) if isinstance(holder, dict) else dice.randrange(len(holder))
        path.append(str(key))
        if not (isinstance(holder[key], dict | list) and holder[key]) or dice.random() < 0.3:
            break
        holder = holder[key]
    new = dice.choice([*_VALUES, "gone"])
    if new == "gone":
        del holder[key]
    else:
        holder[key] = new
    return json.dumps(whole), f"{'.'.join(path)} = {new!r}"


def _newest(run: Path) -> Path:
    return max(path for path in (run / "checkpoint").iterdir() if path.name.isdigit())


def _seal(folder: Path, name: str, content: bytes) -> None:
    """Put a file into a checkpoint, with a checksum that fits."""
    (folder / name).write_bytes(content)
    names = [line.split("  ")[1] for line in (folder / "SHA256SUMS").read_text().splitlines()]
    sums = {one: hashlib.sha256((folder / one).read_bytes()).hexdigest() for one in names}
    (folder / "SHA256SUMS").write_text("".join(f"{digest}  {one}\n" for one, digest in sums.items()))


def forge_a_checkpoint(dice: random.Random, run: Path, outside: Path) -> str:
    """checkpoint.json with another value, and a checksum that fits."""
    folder = _newest(run)
    text, where = _put(dice, (folder / "checkpoint.json").read_text())
    _seal(folder, "checkpoint.json", text.encode())
    return where


def forge_tensors(dice: random.Random, run: Path, outside: Path) -> str:
    """A component whose header lies about types, shapes or places, or that is something else; the checksum fits."""
    folder, name = _newest(run), f"{dice.choice(['agent', 'loop', 'replay'])}.safetensors"
    content = (folder / name).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    if dice.random() < 0.3:
        start = dice.choice([0, length + 1, 1 << 40, (1 << 64) - 1])
        _seal(folder, name, dice.choice([b"", b"\x80\x04\x95", struct.pack("<Q", start) + content[8:], b"PK\x03\x04"]))
        return f"{name} is something else"
    header, where = _put(dice, content[8 : 8 + length].decode())
    _seal(folder, name, struct.pack("<Q", len(header.encode())) + header.encode() + content[8 + length :])
    return f"{name}: {where[:100]}"


def lie_about_shapes(dice: random.Random, run: Path, outside: Path) -> str:
    """A manifest whose spec asks for more memory than there is, or does not fit."""
    manifest = json.loads((run / "manifest.json").read_text())
    key = dice.choice(list(manifest["spec"]))
    new = dice.choice([[10**6, 10**6], [10**9], [-1], [0], [2] * 64, 10**9, 10**18, -5, [1.5], ["x"], None, 0, [[3]]])
    manifest["spec"][key] = new
    (run / "manifest.json").write_text(json.dumps(manifest))
    return f"{key} = {str(new)[:30]}"


def add_odd_names(dice: random.Random, run: Path, outside: Path) -> str:
    """Files and folders with names that look like ours, or like nothing."""
    place = dice.choice([run, run / "checkpoint", run / "checkpoint" / "replay"])
    name = dice.choice([*_ODD_NAMES, os.fsdecode(b"\xff\xfe")])
    target = place / name
    kind = dice.choice(["file", "folder", "copy"])
    if kind == "file":
        target.write_bytes(b"precious\n")
    elif kind == "copy" and not target.exists():
        shutil.copytree(_newest(run), target)
    else:
        target.mkdir(exist_ok=True)
    return f"{kind} {name[:20]!r} in {place.name}"


def make_it_long(dice: random.Random, run: Path, outside: Path) -> str:
    """A file of 100 MB that is almost all holes, or a line that does not end."""
    file = _file(dice, run, suffixes=(".json", ".jsonl", ".toml"))
    if dice.random() < 0.5:
        os.truncate(file, 100 << 20)
        return f"{file.relative_to(run)} with holes"
    with file.open("ab") as log:
        log.write(b'{"x": "' + b"y" * (20 << 20) + dice.choice([b'"}\n', b""]))
    return f"{file.relative_to(run)} with a long line"


CRAFTS: list[Callable[[random.Random, Path, Path], str]] = [link_a_file, link_a_file, link_hard, link_a_folder, nest]
CRAFTS += [put_a_special_file, put_a_special_file, put_a_file_for_a_folder, put_a_number, put_a_number, put_a_value]
CRAFTS += [forge_a_checkpoint, forge_tensors, lie_about_shapes, add_odd_names, make_it_long]
