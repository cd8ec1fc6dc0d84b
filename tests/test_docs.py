"""README.md and every page of docs/ keep their word: Python blocks run, console lines parse, data is what it says.

A page's Python blocks run in sequence, in one namespace and in a folder of their own. A block whose first line is a
comment with a file's name is that file too, so that later blocks can import it. A ``text`` block right after a Python
block is what it prints, numbers aside. No block can be left out: make it fast instead.
"""

import contextlib
import importlib
import io
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from peer_rl.cli import options
from peer_rl.cli.main import COMMANDS
from peer_rl.cli.train import read_options
from peer_rl.errors import PeerError
from peer_rl.plugin.features import Watch

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = {"python", "text", "console", "toml", "bash", "json", "bibtex"}
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+\.py)\n")
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?|nan")

on_every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def words(text: str) -> list[str]:
    """The text without its numbers, whose last digits depend on the machine."""
    return NUMBER.sub("#", text).split()


def blocks(page: Path, language: str) -> Iterator[tuple[str, str]]:
    """Where each block of a language begins, as page:line, and what is in it."""
    text = page.read_text()
    for match in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield f"{page.relative_to(ROOT)}:{text[: match.start()].count(chr(10)) + 2}", match[1]


@on_every_page
def test_the_pages_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(Watch, "warned", set())
    text = page.read_text()
    namespace: dict[str, object] = {"__name__": "page"}
    files: list[str] = []
    try:
        for match in BLOCK.finditer(text):
            if named := FILE.match(match[1]):
                (tmp_path / named[1]).write_text(match[1])
                files.append(named[1].removesuffix(".py"))
                importlib.invalidate_caches()
            # Empty lines in front make a traceback show the page's own line numbers.
            source = "\n" * (text[: match.start()].count("\n") + 1) + match[1]
            # Stable-Baselines3's longer runs are cut; test_sb3_docs.py checks what they leave.
            source = re.sub(r"total_timesteps=\d+_000", "total_timesteps=300", source)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(source, str(page), "exec"), namespace)
            if match[2] is not None:
                assert words(printed.getvalue()) == words(match[2]), f"the block printed:\n{printed.getvalue()}"
    finally:
        for name in files:
            sys.modules.pop(name, None)


@on_every_page
def test_fences_are_plain_and_of_a_known_language(page: Path) -> None:
    fences = re.findall(r"^( *)(```.*)$", page.read_text(), re.MULTILINE)
    for indent, fence in fences[::2]:
        assert not indent, f"an indented block is not tested: move it to the margin: {fence}"
        assert fence[3:] in LANGUAGES, f"{fence} is not tested; there are: {', '.join(sorted(LANGUAGES))}"
    assert {fence for _, fence in fences[1::2]} <= {"```"}, "a block is not closed"


class Parsed(BaseException):
    """Everything on the command line was understood."""


def commands(block: str) -> Iterator[list[str]]:
    """The words after each peer-rl of a console block, variables of a loop put in."""
    joined = block.replace("\\\n> ", " ").replace("\\\n", " ")
    for line in joined.splitlines():
        if not line.startswith(("$ ", "> ")):  # what a command printed
            continue
        without_comment = re.sub(r"\s#.*", "", line[2:])
        for part in re.split(r"&&|;|\||\bdo\b", without_comment):
            found = re.search(r"(?:^|\s|/)peer-rl\s+(.*)", part.strip())
            if found and not re.match(r"\s*(pip|uv)\b", part):
                yield shlex.split(re.sub(r"\$\w+", "0", found[1]))


def understand(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse a command line as peer-rl does, and stop before anything is done."""
    name, *rest = arguments
    assert name in COMMANDS, f"there is no command {name}"
    if name == "train" and not {"-h", "--help"} & set(rest):
        read_options(rest)
        return
    cli = options.tyro.cli

    def stop(*given: Any, **settings: Any) -> None:
        cli(*given, **settings)
        raise Parsed

    with monkeypatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr(options.tyro, "cli", stop)
        module = importlib.import_module(f"peer_rl.cli.{'listing' if name == 'list' else name}")
        with contextlib.suppress(Parsed, SystemExit):
            module.main(rest)


@on_every_page
def test_the_pages_commands_are_understood(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for place, block in (*blocks(page, "console"), *blocks(page, "bash")):
        for arguments in commands(block):
            try:
                understand(arguments, monkeypatch)
            except PeerError as error:
                pytest.fail(f"{place}: peer-rl {shlex.join(arguments)}\n  is refused: {error}")


@on_every_page
def test_what_the_pages_commands_name_is_there(page: Path) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for place, block in (*blocks(page, "console"), *blocks(page, "bash")):
        for target in re.findall(r"^\$ make ([\w-]+)", block, re.MULTILINE):
            assert target in targets, f"{place}: there is no make {target}"
        for script in re.findall(r"python ((?:examples|benchmarks|tools)/\S+)", block):
            assert (ROOT / script).exists(), f"{place}: there is no {script}"


@on_every_page
def test_the_pages_data_can_be_read(page: Path) -> None:
    for language, read in {"toml": tomllib.loads, "json": json.loads}.items():
        for place, block in blocks(page, language):
            try:
                read(block)
            except ValueError as error:
                pytest.fail(f"{place}: not {language}: {error}")


def test_a_wrong_command_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = "$ for seed in 0 1; do peer-rl train td3 --task gym/Pendulum-v1 --seed $seed; done\n"
    assert list(commands(loop + "$ peer-rl report runs  # all\n")) == [
        ["train", "td3", "--task", "gym/Pendulum-v1", "--seed", "0"],
        ["report", "runs"],
    ]
    understand(["report", "runs", "--out", "there"], monkeypatch)
    for wrong in (["report", "runs", "--outt", "x"], ["train", "td3", "--task", "gym/Pendulum-v1", "--betta", "1"]):
        with pytest.raises(PeerError, match="Unrecognized options"):
            understand(wrong, monkeypatch)


def test_the_sentences_of_the_troubleshooting_page_are_the_programs() -> None:
    """Each quoted sentence, cut at its dots, is in the source; a literal broken over lines is put together."""
    sources = "".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
    program = re.sub(r'"\s*\n\s*f?"', "", sources)
    rows = re.findall(r"^\| `(.+?)` \|", (ROOT / "docs" / "troubleshooting.md").read_text(), re.MULTILINE)
    assert len(rows) > 30
    for row in rows:
        for piece in filter(None, (piece.strip() for piece in row.split("..."))):
            assert piece in program, f"the program does not say: {piece!r} (of {row!r})"


def test_what_the_pages_name_in_the_repository_is_there() -> None:
    """Files and folders in backquotes, and tests by their names."""
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for quoted in re.findall(r"`([^`\n]+)`", page.read_text()):
            if re.fullmatch(r"(?:tests|src|tools|benchmarks|examples|results)/[\w./-]*", quoted):
                assert (ROOT / quoted).exists(), f"{page.name}: there is no {quoted}"
            if re.fullmatch(r"test_\w+", quoted):
                assert f"def {quoted}(" in tests, f"{page.name}: there is no {quoted}"


def test_the_guarantees_are_the_laws_that_the_code_cites() -> None:
    """Each law has a heading, and each number that a comment or a test cites has one."""
    numbers = set(re.findall(r"^## (\d)\.", (ROOT / "docs" / "guarantees.md").read_text(), re.MULTILINE))
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    cited = {number for path in files for number in re.findall(r"[Ll]aw[ _]?(\d)", path.read_text())}
    assert cited <= numbers
    assert numbers == set("12345678")
