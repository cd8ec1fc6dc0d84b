"""The documentation builds as a site, strictly: no broken link or anchor, no page missing from the menu."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import peer_rl

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(site)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    result = build(ROOT / "mkdocs.yml", folder)
    assert result.returncode == 0, result.stderr
    return folder


class Fetched(HTMLParser):
    """What a browser would fetch by itself when it opens a page."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("script", "img", "iframe", "source"):
            self.places.append(values.get("src") or "")
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preconnect", "preload"):
            self.places.append(values.get("href") or "")


def test_every_page_is_built_and_fetches_nothing_from_elsewhere(site: Path) -> None:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        built = site / page.relative_to(ROOT / "docs").with_suffix(".html")
        fetched = Fetched()
        fetched.feed(built.read_text())
        assert fetched.places, page.name
        assert not [place for place in fetched.places if re.match(r"(https?:)?//", place)], page.name


def test_the_api_page_has_every_public_name(site: Path) -> None:
    text = (site / "api.html").read_text()
    documented = set(re.findall(r'id="peer_rl\.[\w.]*?(\w+)"', text))
    left_out = {"RunConfig", "SignedFeaturesWarning", "TargetGradientWarning", "__version__"}
    assert set(peer_rl.__all__) - left_out <= documented


def test_a_broken_link_fails(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("[nowhere](missing.md)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: broken\nstrict: true\nplugins: []\n")
    result = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert result.returncode != 0
    assert "missing.md" in result.stderr
