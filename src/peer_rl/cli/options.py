"""Options from dataclasses, by tyro; a mistake becomes one line instead of a box."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any, TypeVar

import tyro

from peer_rl.errors import ConfigError

Options = TypeVar("Options")


def parse(kind: type[Options], arguments: list[str], *, prog: str, default: Any = None) -> Options:
    """``arguments`` as a ``kind``; ``default`` supplies what is not given."""
    given: dict[str, Any] = {} if default is None else {"default": default}
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            options: Options = tyro.cli(kind, args=arguments, prog=prog, **given)
            return options
    except SystemExit as stop:
        if not stop.code:
            raise
    raise ConfigError(f"{_condense(complaint.getvalue())} (see: {prog} --help)")


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
        sentence = f"{bad[1]} takes {expected}, but was given {bad[2] or bad[3]!r}"
    sentence = re.sub(r"^Error parsing run\S*: ", "", sentence)
    if re.search(r"Unrecognized options: (True|False|true|false)\b", sentence):
        sentence = "a switch takes no value: write --NAME to set it and --no-NAME to unset it, without True or False"
    meant = re.search(r"Perhaps you meant: (--[^\s,]+)", " ".join(" ".join(sections).split()).replace("─", ""))
    return f"{sentence}; did you mean {meant[1]}?" if meant else sentence
