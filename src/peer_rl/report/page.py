"""The report as one HTML page that needs no network: what is on it, and the templates that show it.

A page is a list of ``Section``; a section is a heading and parts: a ``Table``, a list of charts, or one of the classes
below. Each kind of part has a macro in ``templates/parts.html``. Nothing else writes HTML.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from peer_rl.errors import PeerError
from peer_rl.report.charts import Chart
from peer_rl.report.figures import Drawing
from peer_rl.report.tables import Linked, Table

Line = str | Sequence[str]
"""Plain text, or pieces of it; a piece that is ``Linked`` becomes a link."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    pieces: Line
    kind: str = ""
    """Its style: ``soft`` for notes, ``warning``, or none."""


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    lines: Sequence[Line]


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str
    anchor: str = ""
    """Its id on the page."""


@dataclass(frozen=True)
class Cards:
    """Lists side by side under headings; empty ones are left out."""

    cards: Mapping[str, Sequence[Line]]


@dataclass(frozen=True)
class Details:
    """Something to unfold."""

    summary: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Picture:
    """A figure as an image inside the page, with its caption; ``write`` saves it next to the page, too."""

    name: str
    """Of its files, without the ending."""
    drawing: Drawing
    alt: str
    caption: Line

    @property
    def source(self) -> str:
        """The image as a data URI."""
        return _data_uri(self.drawing.png)


@dataclass(frozen=True)
class Still:
    """An image that a run directory holds, inside the page, with its caption."""

    png: bytes
    alt: str
    caption: Line

    @property
    def source(self) -> str:
        """The image as a data URI."""
        return _data_uri(self.png)


def _data_uri(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


@dataclass(frozen=True)
class RunRow:
    """One run directory."""

    seed: str
    place: str
    numbers: Sequence[str]
    files: Sequence[Linked]
    command: str


@dataclass(frozen=True)
class RunGroup:
    """The run directories of one variant on one task; ``anchor`` is what its labels link to."""

    anchor: str
    title: str
    rows: Sequence[RunRow]


@dataclass(frozen=True)
class RunTable:
    """Every run directory behind a page."""

    header: Sequence[str]
    groups: Sequence[RunGroup]


Part = Table | Text | Bullets | Heading | Cards | Details | Picture | Still | RunTable | Sequence[Chart]


@dataclass(frozen=True)
class Section:
    """A part of the page with an entry in its contents."""

    heading: str
    parts: Sequence[Part]


def section(heading: str, *parts: Part | None) -> Section:
    """A section of the parts that there are: None and empty lists of charts are left out."""
    return Section(heading, [part for part in parts if part])


def pictures_of(sections: Sequence[Section]) -> list[Picture]:
    """Every picture on a page."""
    return [part for section in sections for part in section.parts if isinstance(part, Picture)]


@cache
def _environment() -> Environment:
    loader = PackageLoader("peer_rl.report")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["kind"] = lambda part: type(part).__name__
    return environment


def _has_charts(sections: Sequence[Section]) -> bool:
    parts = [part for section in sections for part in section.parts]
    parts += [inner for part in parts if isinstance(part, Details) for inner in part.parts]
    return any(isinstance(part, list) for part in parts)


def part_html(part: Part) -> str:
    """One part alone, as HTML."""
    show = _environment().get_template("parts.html").module.show  # type: ignore[attr-defined]  # a macro
    return str(show(part))


def render(title: str, lead: str, sections: Sequence[Section], *, switch: bool) -> str:
    """The whole page, with a ``switch`` of the x axis if there are learning curves.

    Its content security policy forbids every request, so a reader can trust that it sends nothing.
    """
    assets = files("peer_rl.report") / "assets"
    css, js = ((assets / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    return _environment().get_template("page.html").render(
        title=title, lead=lead, sections=sections, switch=switch,
        css=Markup(css), js=Markup(js), plotly=Markup(get_plotlyjs()) if _has_charts(sections) else "",
    )  # fmt: skip


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Make the folder that the block writes into; where that is impossible, an error says what to do."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise PeerError(f"cannot write the report into {out} ({error.strerror}); choose another folder") from error


def write_files(out: Path, texts: Mapping[str, str]) -> None:
    """Write texts by file name into a folder."""
    with writing(out):
        for name, text in texts.items():
            (out / name).write_text(text, encoding="utf-8")
