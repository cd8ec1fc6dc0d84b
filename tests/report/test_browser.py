"""The report in a real browser: Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from running import TINY
from synthetic import write_run

from peer_rl.launch.api import train
from peer_rl.paper.report import write_report
from peer_rl.report.runs import find_runs
from peer_rl.settings import configure

CHROMIUM = shutil.which("chromium")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e '.[dev]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: sh tools/system_packages.sh"),
]

EVIL = "<script>alert(1)</script>"
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """Of a smoke sweep of real runs, and of runs whose names try to break the page."""
    folder = tmp_path_factory.mktemp("browser")
    runs = folder / "runs"
    small = {"episodes": 4, "learning.start_steps": 50, "protocol.eval_episodes": 1}
    often = {"protocol.diagnose_every": 40, "protocol.eval_every": 80}
    for seed in (0, 1):
        for beta in (0.0, 5e-4):
            train(
                configure("dqn", "gridworld/paper", seed=seed, beta=beta, profile="smoke", **small, **often), runs=runs
            )
    task, settings = TINY["td3"]
    train(configure("td3", task, **settings), runs=runs)
    path = write_run(runs, task=f"gym/{EVIL}", beta=0.01, regularizer=EVIL, returns=(1.0, 2.0))
    path.rename(path.parent / EVIL.replace("/", "-"))
    broken = write_run(runs, task=f"gym/{EVIL}", seed=7)
    (broken / "config.toml").write_text("x")
    broken.rename(broken.parent / "<img src=x onerror=alert(2)>")
    return write_report(find_runs([runs]), folder / "report", title=f"Smoke {EVIL}", pictures=False)


@pytest.fixture(scope="module")
def browser() -> Iterator:
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser, report: Path) -> Iterator:
    """Opens the report; nothing may be said on the console, fail, pop up, or be asked of anybody."""
    contexts, trouble = [], []

    def start(**options: object):
        contexts.append(browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}))
        page = contexts[-1].new_page()
        page.on("console", lambda message: trouble.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (trouble.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: trouble.append(request.url) if request.url != report.as_uri() else None)
        page.goto(report.as_uri())
        return page

    yield start
    for context in contexts:
        context.close()
    assert trouble == []


def chart(page, heading: str, title: str):
    """A drawn chart of the section with ``heading``."""
    section = page.locator("section", has=page.get_by_role("heading", name=heading, exact=True))
    found = section.locator("figure", has=page.get_by_text(title, exact=True)).locator(".chart")
    found.scroll_into_view_if_needed()
    found.locator(".main-svg").first.wait_for()
    return found


def traces(found) -> list[dict]:
    """What plotly shows now: name, visibility and x of every trace."""
    return found.evaluate(
        "box => box._fullData.map(({name, visible, fill, x}) => ({name, visible, fill, x: Array.from(x || [])}))"
    )


def x_title(found) -> str:
    return found.locator(".xtitle").text_content()


GRIDWORLD = "gridworld/paper, profile smoke"


def test_it_opens_and_draws_every_chart_that_is_reached(open_page) -> None:
    page = open_page()
    assert page.title() == f"Smoke {EVIL}"
    for box in page.locator("section > .charts .chart").all():
        box.scroll_into_view_if_needed()
        box.locator(".main-svg").first.wait_for()
        assert len(box.get_attribute("aria-label")) > 30
    assert page.locator(".chart").count() > 15


def test_a_click_in_the_legend_hides_a_line_and_its_band(open_page) -> None:
    found = chart(open_page(), GRIDWORLD, "Evaluation return")
    assert [trace["visible"] for trace in traces(found)] == [True] * 4
    found.locator(".legend .traces", has_text="PEER").locator(".legendtoggle").click()
    page = found.page
    page.wait_for_function("box => box._fullData.some(({visible}) => visible !== true)", arg=found.element_handle())
    hidden = [trace for trace in traces(found) if trace["visible"] == "legendonly"]
    assert [trace["name"].startswith("PEER (beta = 0.0005)") for trace in hidden] == [True, True]
    assert sorted(trace["fill"] for trace in hidden) == ["none", "toself"]


def test_the_axis_can_be_switched_with_the_mouse_and_with_the_keyboard(open_page) -> None:
    page = open_page()
    found = chart(page, "gym/Pendulum-v1, own settings", "Norm of the features")
    steps = traces(found)[-1]["x"]
    assert x_title(found) == "agent steps"
    assert steps[-1] == 300
    page.get_by_role("button", name="hours").click()
    assert x_title(found) == "hours of training"
    hours = traces(found)[-1]["x"]
    assert len(hours) == len(steps)
    assert 0 < hours[0] < hours[-1] < 0.2
    assert found.get_attribute("aria-label").startswith("Norm of the features, along hours of training. At the end: ")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert page.get_by_role("button", pressed=True).text_content() == "frames"
    assert x_title(found) == "environment frames"
    assert traces(found)[-1]["x"] == steps
    late = chart(page, "gym/Pendulum-v1, own settings", "Effective rank of the features")
    assert x_title(late) == "environment frames"  # drawn after the switch, or with it


def test_runs_without_times_say_so_on_the_axis(open_page) -> None:
    page = open_page()
    page.get_by_role("button", name="hours").click()
    found = chart(page, f"gym/{EVIL}, default settings", "Evaluation return")
    assert x_title(found) == "hours of training: these runs have no times"
    assert found.locator(".legend .traces").count() == 0
    page.get_by_role("button", name="agent steps").click()
    found.locator(".legend .traces").first.wait_for()
    assert traces(found)[-1]["x"] == [10, 20]


def test_dragging_zooms_and_a_double_click_goes_back(open_page) -> None:
    page = open_page()
    found = chart(page, GRIDWORLD, "Evaluation return")
    span = "box => box._fullLayout.xaxis.range[1] - box._fullLayout.xaxis.range[0]"
    whole = found.evaluate(span)
    area = found.locator(".nsewdrag").bounding_box()
    page.mouse.move(area["x"] + area["width"] * 0.3, area["y"] + area["height"] * 0.5)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] * 0.6, area["y"] + area["height"] * 0.5, steps=5)
    page.mouse.up()
    assert found.evaluate(span) == pytest.approx(whole * 0.3, rel=0.1)
    page.mouse.dblclick(area["x"] + area["width"] * 0.5, area["y"] + area["height"] * 0.5)
    page.wait_for_function(f"box => Math.abs(({span})(box) / {whole} - 1) < 0.01", arg=found.element_handle())


def test_names_are_shown_and_not_run(open_page) -> None:
    page = open_page()
    found = chart(page, f"gym/{EVIL}, default settings", "Evaluation return")
    assert EVIL in found.locator(".legend").text_content()
    assert page.locator("img").count() == 0
    assert page.get_by_text("<img src=x onerror=alert(2)>").count() > 0
    assert page.get_by_role("heading", level=1).text_content() == f"Smoke {EVIL}"


def test_a_number_leads_to_its_run(open_page, report: Path) -> None:
    page = open_page()
    section = page.locator("section", has=page.get_by_role("heading", name=GRIDWORLD, exact=True))
    section.get_by_role("rowheader", name="PEER").get_by_role("link").click()
    anchor = page.evaluate("location.hash")
    runs = page.locator(f"tbody{anchor}")
    assert runs.get_by_role("row").first.text_content().startswith("DQN + PEER (beta = 0.0005)")
    links = [unquote(link.get_attribute("href")) for link in runs.get_by_role("link", name="seed").all()]
    assert [(report.parent / link / "eval.jsonl").is_file() for link in links] == [True, True]
    assert "peer-rl train dqn --task gridworld/paper --seed 1" in runs.text_content()


def test_a_phone_scrolls_down_and_never_sideways(open_page) -> None:
    page = open_page(viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    found = chart(page, GRIDWORLD, "Evaluation return")
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert found.bounding_box()["width"] <= 360
    assert found.evaluate("box => box._fullLayout.dragmode") is False
    wide = page.locator("section .scroll").last
    assert wide.evaluate("box => box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX === 'auto'")


@pytest.mark.parametrize(
    ("scheme", "media", "dark"), [("light", "screen", 0), ("dark", "screen", 1), ("dark", "print", 0)]
)
def test_colours_follow_the_reader_and_paper_is_white(open_page, scheme: str, media: str, dark: bool) -> None:
    page = open_page(color_scheme=scheme)
    found = chart(page, GRIDWORLD, "Evaluation return")
    page.emulate_media(media=media, color_scheme=scheme)

    def brightness(colour: str) -> float:
        return sum(int(part) for part in colour.split("(")[1].rstrip(")").split(",")[:3]) / 765

    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    text = found.locator(".xtick text").first.evaluate("one => getComputedStyle(one).fill")
    assert brightness(back) < 0.2 if dark else brightness(back) == 1
    assert brightness(text) > 0.8 if dark else brightness(text) < 0.2


def test_paper_shows_charts_that_nobody_scrolled_to(open_page) -> None:
    page = open_page()
    page.emulate_media(media="print")
    page.wait_for_function(
        "[...document.querySelectorAll('section > .charts .chart')].every(box => box.querySelector('.main-svg'))"
    )
    widths = page.locator("section > .charts .main-svg").evaluate_all("all => all.map(one => one.clientWidth)")
    assert max(widths) <= 330
    assert not page.locator(".switch").is_visible()
