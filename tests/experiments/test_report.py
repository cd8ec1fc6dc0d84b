import csv
import html.parser
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from experiments.synthetic import write_lines, write_run
from PIL import Image

from peer_rl.cli import main as cli
from peer_rl.cli import report as command
from peer_rl.errors import PeerError
from peer_rl.experiments.page import Table, number, table_html
from peer_rl.experiments.report import markdown, outcome, write_report
from peer_rl.experiments.runs import find_runs, group_runs
from peer_rl.experiments.statistics import SCORE, summarise

EVIL = "</script><script>alert(1)</script>"


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


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> tuple[Path, Path]:
    """Runs of two tasks, with a damaged, a newer, an empty and an unfinished one; and their report."""
    folder = tmp_path_factory.mktemp("example")
    runs, out = folder / "runs", folder / "report"
    write_both(runs)
    write_both(runs, task="gym/CartPole-v1")
    (write_run(runs, seed=5) / "eval.jsonl").write_text("{]\n")
    write_run(runs, seed=6, schema=99)
    (runs / "paper" / "gridworld-paper" / "dqn" / "seed9").mkdir(parents=True)
    write_run(runs, seed=3, state="running")
    write_report(find_runs([runs]), out, title="A & B")
    return runs, out


def test_the_files_of_a_report(example) -> None:
    _, out = example
    assert sorted(path.name for path in out.iterdir()) == [
        "figure3.png",
        "learning-paper-gridworld-paper.png",
        "learning-paper-gym-CartPole-v1.png",
        "report.html",
        "table.csv",
        "table.md",
    ]


def test_a_second_report_is_byte_identical(example, tmp_path: Path) -> None:
    runs, out = example
    write_report(find_runs([runs]), tmp_path, title="A & B")
    for path in out.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


def test_pictures_open_with_the_right_size(example) -> None:
    _, out = example
    for name, size in (("figure3.png", (1440, 945)), ("learning-paper-gym-CartPole-v1.png", (1050, 630))):
        with Image.open(out / name) as image:
            image.load()
            assert image.size == size
            assert image.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
            assert len(image.convert("RGB").getcolors(1 << 24)) > 50


def test_the_page_needs_no_network(example) -> None:
    _, out = example
    page = Page(out / "report.html")
    links = [value for _, attributes in page.tags for name, value in attributes.items() if name in ("src", "href")]
    assert links
    assert all(link.startswith("data:") for link in links)
    policies = [given["content"] for _, given in page.tags if given.get("http-equiv") == "Content-Security-Policy"]
    assert policies[0].startswith("default-src 'none'")
    assert sum("plotly.js v" in text for _, text in page.scripts) == 1


def test_the_page_shows_where_every_number_comes_from(example) -> None:
    runs, out = example
    text = " ".join(Page(out / "report.html").text.split())
    for record in find_runs([runs]):
        assert record.place in text
    assert "peer-rl train dqn --task gym/CartPole-v1 --seed 1" in text
    assert "Profile paper; task gym/CartPole-v1; seeds 0, 1; trained for" in text
    assert "12 runs found, 8 finished, 3 not usable" in text
    for words in ("eval.jsonl is damaged", "version 99 of the format", "nothing was written yet"):
        assert words in text
    assert "3 running" in text
    assert "agrees, but 2 seeds are few" in text


def test_images_and_charts_have_words_for_those_who_cannot_see_them(example) -> None:
    _, out = example
    page = Page(out / "report.html")
    images = [attributes for tag, attributes in page.tags if tag == "img"]
    assert images
    assert all(len(given["alt"]) > 20 for given in images)
    figures = [attributes for tag, attributes in page.tags if tag == "figure"]
    assert len(figures) == len(page.figures) > 8
    assert all("DQN (beta = 0)" in given["aria-label"] or "max Q" in given["aria-label"] for given in figures)


def test_charts_hold_the_means_over_seeds(example) -> None:
    _, out = example
    lines = [
        trace["y"]
        for figure in Page(out / "report.html").figures
        for trace in figure["data"]
        if trace.get("name") == "PEER (beta = 0.01)" and "fill" not in trace
    ]
    assert [1.0, 5.5] in lines


def test_the_csv_holds_every_measure_in_full(example) -> None:
    _, out = example
    rows = list(csv.DictReader((out / "table.csv").read_text().splitlines()))
    found = {(row["task"], row["variant"], row["measure"]): row for row in rows}
    peer = found["gridworld/paper", "dqn+beta0.01", "score"]
    assert (float(peer["mean"]), float(peer["difference"]), peer["pairs"], peer["seeds"]) == (3.25, 1.5, "2", "0 1")
    assert float(peer["iqm"]) == 3.25
    assert float(found["gridworld/paper", "dqn+beta0.01", "final_cosine"]["difference"]) == pytest.approx(-0.09)
    assert found["gym/CartPole-v1", "dqn+beta0", "score"]["difference"] == ""


def test_the_markdown_says_what_is_missing(example) -> None:
    _, out = example
    text = (out / "table.md").read_text()
    assert "# A &amp; B" in text
    assert (
        "| DQN (beta = 0) | gridworld/paper | paper | 2,000 episodes | 2 of 4 | 0, 1 | 3 running, 5 damaged |" in text
    )
    assert "## Runs that could not be used" in text


def test_names_from_runs_do_no_harm(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", task=f"gym/{EVIL}", returns=(1.0, 2.0))
    path = write_run(tmp_path / "runs", task=f"gym/{EVIL}", beta=0.01, regularizer=EVIL, returns=(1.0, 2.0))
    path.rename(path.parent / "<script>alert(2)<")
    damaged = write_run(tmp_path / "runs", seed=4)
    (damaged / "config.toml").write_text("x")
    damaged.rename(damaged.parent / "<img src=x onerror=alert(3)>")
    page = Page(write_report(find_runs([tmp_path / "runs"]), tmp_path / "out", title=EVIL))
    assert [text for kind, text in page.scripts if "alert(" in text and kind is None and "plotly.js" not in text] == []
    assert not any("onerror" in attributes for _, attributes in page.tags)
    assert "<script>alert(2)<" in page.text
    assert "<img src=x onerror=alert(3)>" in page.text
    assert EVIL in page.text
    assert all("<" not in text for kind, text in page.scripts if kind == "application/json")
    names = {trace.get("name") for figure in page.figures for trace in figure["data"]}
    assert any("&lt;/script&gt;" in name for name in names if name)
    markdown_text = (tmp_path / "out" / "table.md").read_text()
    assert "<script" not in markdown_text


def test_a_report_without_a_finished_run_says_so(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", state="running", task="gym/CartPole-v1")
    page = Page(write_report(find_runs([tmp_path / "runs"]), tmp_path / "out", title="t"))
    assert "No finished run yet." in page.text
    assert "Nothing to compare" in page.text


def test_a_report_of_damaged_runs_alone_is_written(tmp_path: Path) -> None:
    (write_run(tmp_path / "runs") / "config.toml").write_text("")
    page = Page(write_report(find_runs([tmp_path / "runs"]), tmp_path / "out", title="t"))
    assert "the configuration names no agent" in page.text


def test_numbers_that_are_null_do_not_stop_a_report(tmp_path: Path) -> None:
    path = write_run(tmp_path / "runs")
    nulls = {"cosine": None, "probe_cosine": None, "probe_q_difference": None, "probe_max_q": [None] * 19}
    write_lines(path / "diagnostics.jsonl", [{"step": 1, "episode": 1, **nulls}])
    write_lines(path / "eval.jsonl", [{"step": 1, "mean": None, "lengths": ["?"]}])
    page = Page(write_report(find_runs([tmp_path / "runs"]), tmp_path / "out", title="t"))
    assert "0 of 1" in page.text


def test_two_profiles_are_two_figures(tmp_path: Path) -> None:
    write_run(tmp_path / "runs")
    write_run(tmp_path / "runs", profile="smoke")
    write_report(find_runs([tmp_path / "runs"]), tmp_path / "out", title="t")
    assert {path.name for path in (tmp_path / "out").glob("figure3*")} == {"figure3.png", "figure3-smoke.png"}


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([(1.0, 3.0), (2.0, 5.0)], "a higher score, +2.50 [+2.00, +3.00] over 2 paired seeds"),
        ([(3.0, 1.0), (5.0, 2.0)], "a lower score, -2.50 [-3.00, -2.00] over 2 paired seeds"),
        ([(3.0, 1.0), (1.0, 2.0)], "no clear difference in score, -0.50 [-2.00, +1.00] over 2 paired seeds"),
        ([(3.0, 4.0)], "no clear difference in score, +1.00 over 1 paired seed."),
        ([], "no finished seed to compare"),
    ],
)
def test_outcomes_in_words(tmp_path: Path, scores, words) -> None:
    for seed, (plain, peer) in enumerate(scores):
        write_run(tmp_path, seed=seed, returns=(plain,))
        write_run(tmp_path, seed=seed, beta=0.01, returns=(peer,))
    write_run(tmp_path, seed=50, beta=0.01)
    assert words in outcome(summarise(group_runs(find_runs([tmp_path])), SCORE)[-1])


def test_numbers_for_people() -> None:
    assert number(1234.567, 1) == "1,234.6"
    assert number(-0.0001, 2, sign=True) == "+0.00"
    assert number(float("nan"), 2) == "-"
    assert "a &lt;b&gt;" in table_html(Table("a <b>", ["<i>"], [["<u>", "&"]]))
    assert r"| x\|y |" in markdown("t", [("h", Table("c", ["x|y"], []))], [])


def test_the_command_writes_a_report_and_prints_where(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    write_both(Path("runs"))
    monkeypatch.setattr(sys, "argv", ["peer-rl", "report"])
    assert cli.main() == 0
    assert capsys.readouterr().out.splitlines() == ["4 runs", str(Path("report", "report.html"))]
    page = Page(tmp_path / "report" / "report.html")
    assert re.search(r"\bruns/paper/gridworld-paper/dqn\+beta0/seed1\b", page.text)
    assert str(tmp_path) not in page.text


@pytest.fixture
def complaint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    """Runs the command in an empty folder and returns the one line it complains with."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["peer-rl", "report", *arguments])
        assert cli.main() == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.count("\n") == 1, printed.err
        return printed.err

    return run


def test_the_command_without_runs_is_one_line(complaint) -> None:
    assert "there is no folder runs" in complaint()
    Path("runs").mkdir()
    assert "no run directory below runs" in complaint()


def test_an_unwritable_place_is_one_line(complaint) -> None:
    write_run(Path("runs"), task="gym/CartPole-v1", returns=())
    Path("file").write_text("")
    assert "cannot write the report into file" in complaint("runs", "--out", "file")


@pytest.mark.parametrize("missing", ["plotly", "matplotlib", "rliable"])
def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    write_run(tmp_path)
    for name in [name for name in sys.modules if name.startswith(("peer_rl.experiments.", missing))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(PeerError, match=rf"needs {missing}.*pip install 'peer-rl\[report\]'"):
        command.main([str(tmp_path), "--out", str(tmp_path / "out")])


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from peer_rl.cli.report import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('torch', 'matplotlib', 'plotly', 'rliable', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
