"""The report as one HTML page that needs no network: text, tables, and charts by an inlined plotly.js."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from plotly.offline import get_plotlyjs

from peer_rl.report.tables import Linked, Table


def text_html(text: str) -> str:
    """Plain text; a link where it knows the runs it comes from."""
    shown = html.escape(text)
    return f'<a href="#{html.escape(text.anchor)}">{shown}</a>' if isinstance(text, Linked) else shown


def table_html(table: Table) -> str:
    """A table that scrolls sideways on a narrow screen; the first cell of a row names it."""
    head = "".join(f'<th scope="col">{text_html(text)}</th>' for text in table.header)
    body = []
    for first, *rest in table.rows:
        cells = "".join(f"<td{_short(text)}>{text_html(text)}</td>" for text in rest)
        body.append(f'<tr><th scope="row"{_short(first)}>{text_html(first)}</th>{cells}</tr>')
    rows = f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>"
    caption = html.escape(table.caption)
    return f'<p class="caption">{caption}</p>{scroll(f"<table>{rows}</table>", table.caption)}'


def scroll(inner: str, about: str) -> str:
    """A box that scrolls by itself, so that the page never does sideways."""
    return f'<div class="scroll" role="region" aria-label="{html.escape(about)}" tabindex="0">{inner}</div>'


def _short(text: str) -> str:
    """Numbers and names stay on one line."""
    return ' class="short"' if len(text) < 30 else ""


def details_html(summary: str, inner: str) -> str:
    """Something to unfold; ``inner`` is HTML."""
    return f"<details><summary>{html.escape(summary)}</summary>{inner}</details>"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return sentence_html([text], kind)


def sentence_html(pieces: Sequence[str], kind: str = "") -> str:
    """A paragraph of pieces of text, some with links."""
    return f"<p{f' class={kind}' if kind else ''}>{''.join(map(text_html, pieces))}</p>"


def bullets(lines: Sequence[str | Sequence[str]]) -> str:
    """A list of sentences: each plain text, or pieces of it."""
    items = ["".join(map(text_html, [line] if isinstance(line, str) else line)) for line in lines]
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def cards_html(cards: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """Lists side by side under headings; empty ones are left out."""
    shown = [
        f'<div class="{heading.lower().replace(" ", "-")}"><h3>{html.escape(heading)}</h3>{bullets(lines)}</div>'
        for heading, lines in cards.items()
        if lines
    ]
    return f'<div class="findings">{"".join(shown)}</div>' if shown else ""


def file_link(path: Path, out: Path, text: str) -> str:
    """A link from a page in ``out`` to a file or folder beside or above it."""
    target = quote(os.fsencode(os.path.relpath(path.resolve(), out.resolve())))
    return f'<a href="{html.escape(target)}">{html.escape(text)}</a>'


def charts_html(charts: Sequence[str]) -> str:
    """Charts side by side, as many as the screen has room for."""
    return f'<div class="charts">{"".join(charts)}</div>' if charts else ""


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    heading: str
    parts: list[str]
    """HTML."""


def section(heading: str, parts: Sequence[str]) -> Section:
    """A part of the page; ``parts`` is HTML."""
    return Section(heading, [part for part in parts if part])


def _section_html(index: int, part: Section) -> str:
    return f'<section id="part-{index}"><h2>{html.escape(part.heading)}</h2>{"".join(part.parts)}</section>'


def _contents(sections: Sequence[Section]) -> str:
    links = (f"<li>{text_html(Linked(part.heading, f'part-{index}'))}</li>" for index, part in enumerate(sections))
    return f'<nav aria-label="Contents"><ul>{"".join(links)}</ul></nav>'


def _switch() -> str:
    """One control for the x axis of every learning curve."""
    names = {"steps": "agent steps", "frames": "frames", "hours": "hours"}
    buttons = "".join(
        f'<button type="button" value="{name}" aria-pressed="{"true" if name == "steps" else "false"}">{text}</button>'
        for name, text in names.items()
    )
    group = f'<div role="group" aria-labelledby="axis">{buttons}</div>'
    return f'<div class="switch"><span id="axis">x axis</span>{group}</div>'


def render(title: str, lead: str, sections: Sequence[Section], *, switch: bool) -> str:
    """The whole page, with a ``switch`` of the x axis if there are curves.

    Its policy forbids every request, so a reader can trust that it sends nothing.
    """
    policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
    assets = files("peer_rl.report") / "assets"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html.escape(title)}</title>",
            f"<style>{(assets / 'page.css').read_text(encoding='utf-8')}</style>",
            f"<script>{get_plotlyjs()}</script>",
            "</head><body>",
            f"<header><h1>{html.escape(title)}</h1>{paragraph(lead, 'soft')}</header>",
            "<noscript><p>The charts need JavaScript; the numbers and tables do not.</p></noscript>",
            _contents(sections),
            _switch() if switch else "",
            "<main>",
            *(_section_html(index, part) for index, part in enumerate(sections)),
            "</main>",
            f"<script>{(assets / 'page.js').read_text(encoding='utf-8')}</script>",
            "</body></html>\n",
        ]
    )
