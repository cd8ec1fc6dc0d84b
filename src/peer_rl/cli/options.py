"""Options from dataclasses, by tyro; a mistake becomes one line instead of a box."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any, TypeVar

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from peer_rl.errors import ConfigError
from peer_rl.settings.suggestions import suggest

Options = TypeVar("Options")
_LARGEST = 1e15
"""Whole numbers up to here are exact as floats, which 1e5 is first."""


def parse(kind: type[Options], arguments: list[str], *, prog: str, default: Any = None) -> Options:
    """``arguments`` as a ``kind``; ``default`` supplies what is not given."""
    given: dict[str, Any] = {} if default is None else {"default": default}
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            options: Options = tyro.cli(kind, args=arguments, prog=prog, registry=_REGISTRY, **given)
            return options
    except SystemExit as stop:
        if not stop.code:
            raise
    sentence = _condense(complaint.getvalue())
    unknown = re.match(r"Unrecognized options: (--[^\s,=]+)", sentence)
    if unknown:
        meant = suggest(unknown[1], option_names(kind, prog, given))
        sentence = f"{sentence.partition(';')[0]}; did you mean {' or '.join(meant)}?" if meant else sentence
    raise ConfigError(f"{sentence} (see: {prog} --help)")


def option_names(kind: type[Any], prog: str, given: dict[str, Any]) -> list[str]:
    """Every option that --help lists; of a switch only the one that sets it."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        tyro.cli(kind, args=["--help"], prog=prog, registry=_REGISTRY, **given)
    return re.findall(r"^\W*--([\w.-]+)", text.getvalue(), flags=re.MULTILINE)


def _whole_number(text: str) -> int:
    """An integer, also as 1e5 or 100_000."""
    try:
        return int(text)
    except ValueError:
        number = float(text) if re.fullmatch(r"[\d_.]+[eE]\+?\d{1,2}|\d+\.0*", text) else 0.5
        if not number.is_integer() or number >= _LARGEST:
            raise
        return int(number)


def _integers(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[int] | None:
    """Tyro's rule for integers, with ``_whole_number``."""
    if info.type is not int:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda words: _whole_number(words[0]),
        is_instance=lambda value: isinstance(value, int) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )


_REGISTRY = ConstructorRegistry()
_REGISTRY.primitive_rule(_integers)


def _condense(box: str) -> str:
    """The sentences of tyro's error box, without frame, help text and footer; its rules are hyphens in ASCII."""
    lines = [line.strip("│╭╮╰╯ ") for line in box.splitlines()]
    sections = [section for section in re.split("[─-]{3,}", " ".join(lines[1:])) if section.strip()]
    sentence = " ".join(sections[0].split()).rstrip(".")
    sentence = sentence.partition(" Got errors:")[0].rstrip(".")
    bad = re.match(r"Error parsing (\S+): .*?(?:from \['(.*)'\]|: '(.*)')", sentence)
    if bad:
        wanted = re.search(rf"{re.escape(bad[1])} (\S+)", " ".join(sections[1:]))
        expected = wanted[1].replace("{None}|", "") if wanted else "a value"
        expected = {"INT": "a whole number", "FLOAT": "a number"}.get(expected, expected)
        sentence = f"{bad[1]} takes {expected}, but was given {bad[2] or bad[3]!r}"
    choice = re.match(r"invalid choice '(.*)' for argument '(\S+)'\. Expected one of \((.*)\)", sentence)
    if choice:
        names = sorted(set(re.findall(r"'([^']*)'", choice[3])) - {"None"})
        sentence = f"{choice[2]} takes {', '.join(names[:-1])} or {names[-1]}, but was given {choice[1]!r}"
    missing = re.match("Missing from (.*?): (.*)", sentence)
    if missing:
        wanted_ones = re.findall(r"(--\S+ \S+|\S+) (.*?)\.? \(required\)", missing[2])
        sentence = f"{missing[1]} needs {', '.join(f'{name} ({about})' for name, about in wanted_ones)}"
    sentence = re.sub(r"^Error parsing run\S*: ", "", sentence)
    if re.search(r"Unrecognized options: (True|False|true|false)\b", sentence):
        sentence = "a switch takes no value: write --NAME to set it and --no-NAME to unset it, without True or False"
    meant = re.search(r"Perhaps you meant: (--[^\s,]+)", " ".join(" ".join(sections).split()).replace("─", ""))
    return f"{sentence}; did you mean {meant[1]}?" if meant else sentence
