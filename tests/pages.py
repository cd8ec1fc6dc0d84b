"""A report's page as a browser would see it, and runs to report on."""

import html.parser
import json
from pathlib import Path

from synthetic import write_run


class Page(html.parser.HTMLParser):
    """What a browser would see: tags, visible text, and the scripts."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.scripts, self._in = "", [], ""
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes) -> None:
        self.tags.append((tag, dict(attributes)))
        self._in = tag
        if tag == "script":
            self.scripts.append((dict(attributes).get("type"), ""))

    def handle_endtag(self, tag) -> None:
        self._in = ""

    def handle_data(self, data) -> None:
        if self._in == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self._in != "style":
            self.text += data + " "

    @property
    def figures(self) -> list[dict]:
        return [json.loads(text) for kind, text in self.scripts if kind == "application/json"]


def write_both(runs: Path, seeds: int = 2, **given: object) -> None:
    for seed in range(seeds):
        write_run(runs, seed=seed, returns=(1.0, 2.0 + seed), **given)
        write_run(runs, seed=seed, beta=0.01, cosine=0.9, returns=(1.0, 5.0 + seed), **given)
