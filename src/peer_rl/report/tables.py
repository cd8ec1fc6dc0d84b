"""Tables of text, and the forms they are written in: Markdown, LaTeX and CSV. The page is in ``page.py``.

Names come from run directories and may hold anything: each form escapes them in its own way.
"""

from __future__ import annotations

import csv
import html
import io
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from peer_rl.report.runs import Group, RunRecord
from peer_rl.report.scores import Estimate, Summary

_FORMULA = re.compile(r"^[\s]*[=+\-@]")
"""What a spreadsheet would take for a formula."""
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "±": r"$\pm$", "[": "{[}", "]": "{]}",
}  # fmt: skip
"""Square brackets too: after the end of a row LaTeX takes one for a length."""


class Linked(str):
    """Text that is a link on the page and plain text elsewhere."""

    __slots__ = ("href",)
    href: str

    def __new__(cls, text: str, href: str) -> Linked:
        """``href`` is relative to the page: a file, or ``#`` and an id on it."""
        self = super().__new__(cls, text)
        self.href = href
        return self


@dataclass(frozen=True)
class Table:
    """A caption that says where it comes from, a header, rows of text."""

    caption: str
    header: list[str]
    rows: list[list[str]]


def linked(group: Group) -> Linked:
    """A group's label, linked to its runs."""
    return Linked(group.label, f"#{group.anchor}")


def full_linked(group: Group, *, task: bool = False) -> Linked:
    """A group's label with its agent and, if wanted, its task, linked to its runs."""
    return Linked(f"{group.full_label} on {group.task}" if task else group.full_label, f"#{group.anchor}")


def file_link(path: Path, out: Path, text: str) -> Linked:
    """A link from a page in ``out`` to a file or folder."""
    return Linked(text, quote(os.fsencode(os.path.relpath(path.resolve(), out.resolve()))))


def number(value: float, digits: int, *, sign: bool = False) -> str:
    """A rounded number; a dash where there is none. Minus zero is zero."""
    if not math.isfinite(value):
        return "-"
    return f"{round(value, digits) + 0.0:{'+' if sign else ''},.{digits}f}"


def with_spread(summary: Summary) -> str:
    """``mean ± standard deviation`` over seeds."""
    mean, digits = number(summary.mean, summary.measure.digits), summary.measure.digits
    return f"{mean} ± {number(summary.std, digits)}" if math.isfinite(summary.std) else mean


def with_interval(estimate: Estimate | None, digits: int, *, sign: bool = False) -> str:
    """``value [low, high]``, as far as known."""
    if estimate is None:
        return "-"
    value = number(estimate.value, digits, sign=sign)
    if not estimate.has_interval:
        return value
    return f"{value} [{number(estimate.low, digits, sign=sign)}, {number(estimate.high, digits, sign=sign)}]"


def pairs(estimate: Estimate | None) -> str:
    """How many seeds a paired difference comes from."""
    return "-" if estimate is None else str(estimate.count)


def markdown(title: str, tables: Sequence[tuple[str, Table]], problems: Sequence[RunRecord]) -> str:
    """The tables for a README."""

    def cell(text: str) -> str:
        return html.escape(" ".join(text.split()), quote=False).replace("|", r"\|")

    lines = [f"# {cell(title)}", ""]
    for heading, table in tables:
        rows = [table.header, ["---"] * len(table.header), *table.rows]
        lines += [f"## {cell(heading)}", "", cell(table.caption), ""]
        lines += [f"| {' | '.join(cell(text) for text in row)} |" for row in rows]
        lines.append("")
    if problems:
        lines += ["## Runs that could not be used", ""]
        lines += [f"- `{cell(record.place)}`: {cell(record.problem)}" for record in problems]
        lines.append("")
    return "\n".join(lines)


def escape_latex(text: str) -> str:
    """Text that any LaTeX engine sets as it is; letters beyond ASCII become their code points."""
    shown = []
    for letter in " ".join(text.split()):
        plain = letter if letter.isascii() and letter.isprintable() else f"{{[}}U+{ord(letter):04X}{{]}}"
        shown.append(_LATEX.get(letter, plain))
    return "".join(shown)


def latex(tables: Sequence[tuple[str, Table]]) -> str:
    r"""Every table as a float, to ``\input`` into a paper."""
    lines = [r"% \usepackage{booktabs} and \usepackage{graphicx} in the preamble, then \input this file."]
    for heading, table in tables:
        rows = [" & ".join(escape_latex(text) for text in row) + r" \\" for row in (table.header, *table.rows)]
        lines += [
            "",
            r"\begin{table}[htbp]",
            r"\centering",
            rf"\caption{{{escape_latex(heading)}. {escape_latex(table.caption)}}}",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{'l' * len(table.header)}}}",
            r"\toprule",
            rows[0],
            r"\midrule",
            *rows[1:],
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
        ]
    return "\n".join(lines) + "\n"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[str | float | int | None]]) -> str:
    """Numbers in full precision, nothing for what is not there, and no text that a spreadsheet would run."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([_csv_cell(value) for value in row])
    return file.getvalue()


def _csv_cell(value: str | float | int | None) -> str:
    if isinstance(value, str):
        text = " ".join(value.split())
        return f"'{text}" if _FORMULA.match(text) else text
    return repr(value) if value is not None and math.isfinite(value) else ""
