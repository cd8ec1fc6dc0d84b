"""The documentation builds as a site, strictly, and can be read and searched without a network."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from mkdocs.exceptions import PluginError
from playwright.sync_api import Page, sync_playwright

import peer_rl

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
slow = pytest.mark.slow


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


class Built(HTMLParser):
    """A page's text outside of code, and what a browser fetches by itself when it opens the page."""

    def __init__(self, page: Path, site: Path) -> None:
        super().__init__()
        self.text = ""
        self.fetched: list[str] = []
        self._code = 0
        self.feed((site / page.relative_to(ROOT / "docs").with_suffix(".html")).read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._code += tag in ("code", "script", "style")
        if tag in ("script", "img", "iframe", "source"):
            self.fetched.append(values.get("src") or "")
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preconnect", "preload"):
            self.fetched.append(values.get("href") or "")

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in ("code", "script", "style")

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.text += data


@slow
def test_every_page_is_built_and_fetches_nothing_from_elsewhere(site: Path) -> None:
    for page in PAGES:
        fetched = Built(page, site).fetched
        assert fetched, page.name
        assert not [place for place in fetched if re.match(r"(https?:)?//", place)], page.name


@slow
def test_every_formula_is_typeset(site: Path) -> None:
    for page in PAGES:
        left = re.search(r"\\[a-zA-Z(\[]+|\$\S+", Built(page, site).text)
        assert not left, f"{page.name} shows {left[0]}" if left else None
    assert "<math" in (site / "theory.html").read_text()


@pytest.fixture(scope="module")
def formulas() -> ModuleType:
    spec = spec_from_file_location("mkdocs_formulas", ROOT / "tools" / "mkdocs_formulas.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_formula_becomes_mathml(formulas: ModuleType) -> None:
    mathml = formulas.to_mathml(r"\langle\phi', w\rangle", display=False)
    assert mathml.startswith("<math ")
    assert re.sub(r"<[^>]*>", "", mathml) == "&#x027E8;&#x003D5;&#x02032;&#x0002C;w&#x027E9;"


def test_the_exponent_of_a_norm_belongs_to_the_whole_norm(formulas: ModuleType) -> None:
    mathml = formulas.to_mathml(r"\lVert\phi\rVert^2 \ge \lvert r\rvert", display=False)
    norm = re.search(r"<msup><mrow>(.*?)</mrow><mn>2</mn></msup>", mathml)
    assert norm is not None
    assert re.sub(r"<[^>]*>", "", norm[1]) == "&#x02016;&#x003D5;&#x02016;"
    assert re.findall(r'form="(\w+)"', mathml) == ["prefix", "postfix"] * 2


def test_an_unknown_command_in_a_formula_fails_the_build(formulas: ModuleType) -> None:
    with pytest.raises(PluginError, match="nosuchthing"):
        formulas.to_mathml(r"\nosuchthing{x}", display=False)


@pytest.fixture(scope="module")
def page(site: Path) -> Iterator[Page]:
    """A phone's browser; every request other than for a file fails the test that made it."""
    chromium = shutil.which("chromium")
    assert chromium, "there is no chromium: sh tools/system_packages.sh"
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        opened = browser.new_page(viewport={"width": 390, "height": 844})
        opened.route(re.compile("^(?!file:)"), lambda route: route.abort())
        yield opened
        browser.close()


@slow
def test_no_text_is_taken_for_markup(page: Page, site: Path) -> None:
    """A bare ``<phi, w>`` becomes an unknown, hidden element; a line with ``>=`` in front becomes a quotation."""
    for source in PAGES:
        page.goto((site / source.relative_to(ROOT / "docs").with_suffix(".html")).as_uri())
        unknown = "[...document.querySelectorAll('*')].filter(e => e instanceof HTMLUnknownElement)"
        assert page.evaluate(f"{unknown}.map(e => e.outerHTML.slice(0, 80))") == [], source
        quoted = [quote.strip() for quote in page.locator("blockquote").all_inner_texts()]
        assert not [quote for quote in quoted if quote.startswith("=")], source


@slow
@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_the_window(page: Page, site: Path, width: int) -> None:
    """Wide tables and formulas scroll by themselves."""
    page.set_viewport_size({"width": width, "height": 844})
    for source in PAGES:
        page.goto((site / source.relative_to(ROOT / "docs").with_suffix(".html")).as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), source
        cut = """[...document.querySelectorAll(".md-content table, .md-content .formula")].filter(
            e => e.getBoundingClientRect().right > innerWidth && !e.closest(".md-typeset__scrollwrap"))"""
        assert page.evaluate(f"{cut}.length") == 0, source


@slow
def test_the_search_works_from_disk(page: Page, site: Path) -> None:
    page.set_viewport_size({"width": 1280, "height": 844})
    page.goto((site / "index.html").as_uri())
    page.locator("input.md-search__input").fill("checkpoint")
    page.locator(".md-search-result__link").first.wait_for(timeout=20_000)
    assert "run-directory.html" in "".join(
        link.get_attribute("href") or "" for link in page.locator(".md-search-result__link").all()
    )


@slow
def test_the_api_page_has_every_public_name(site: Path) -> None:
    text = (site / "api.html").read_text()
    documented = set(re.findall(r'id="peer_rl\.[\w.]*?(\w+)"', text))
    left_out = {"RunConfig", "SignedFeaturesWarning", "TargetGradientWarning", "__version__"}
    assert set(peer_rl.__all__) - left_out <= documented


@slow
def test_a_broken_link_fails(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("[nowhere](missing.md)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: broken\nstrict: true\nplugins: []\n")
    result = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert result.returncode != 0
    assert "missing.md" in result.stderr
