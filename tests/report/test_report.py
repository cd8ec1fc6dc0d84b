import csv
import os
from base64 import b64encode
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from pages import Page, write_both
from PIL import Image
from synthetic import write_lines, write_run

from peer_rl.paper.report import write_report
from peer_rl.report.findings import FAILS, HOLDS, UNCLEAR, sort_findings
from peer_rl.report.results import task_results
from peer_rl.report.runs import find_runs, group_runs, missing_runs
from peer_rl.report.sections import score_findings
from peer_rl.report.write import unused
from peer_rl.settings import configure

EVIL = "</script><script>alert(1)</script>"


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
        "figure3.svg",
        "learning-paper-gridworld-paper.png",
        "learning-paper-gridworld-paper.svg",
        "learning-paper-gym-CartPole-v1.png",
        "learning-paper-gym-CartPole-v1.svg",
        "report.html",
        "representation-paper-gridworld-paper.png",
        "representation-paper-gridworld-paper.svg",
        "representation-paper-gym-CartPole-v1.png",
        "representation-paper-gym-CartPole-v1.svg",
        "runs.csv",
        "table.csv",
        "table.md",
        "table.tex",
    ]


def test_a_second_report_is_byte_identical(example) -> None:
    runs, out = example
    again = out.with_name("again")  # next to the first: links to runs are relative
    write_report(find_runs([runs]), again, title="A & B")
    for path in out.iterdir():
        assert (again / path.name).read_bytes() == path.read_bytes(), path.name


def test_drawings_are_whole_xml_without_names_in_it(example) -> None:
    _, out = example
    for path in out.glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_images_open_with_the_right_size(example) -> None:
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
    assert all(link.startswith(("#", "../runs/")) for link in links)
    assert not [tag for tag, given in page.tags if "src" in given or tag in ("link", "iframe", "object", "embed")]
    policies = [given["content"] for _, given in page.tags if given.get("http-equiv") == "Content-Security-Policy"]
    assert policies[0].startswith("default-src 'none'")
    assert sum("plotly.js v" in text for _, text in page.scripts) == 1


def test_the_page_shows_where_every_number_comes_from(example) -> None:
    runs, out = example
    text = " ".join(Page(out / "report.html").text.split())
    for record in find_runs([runs]):
        assert record.place in text
    assert "peer-rl train dqn --task gym/CartPole-v1 --seed 1" in text
    assert "Default settings; task gym/CartPole-v1; seeds 0, 1; trained for" in text
    assert "12 runs found, 8 finished, 3 not usable" in text
    for words in ("eval.jsonl is damaged", "version 99 of the format", "nothing was written yet"):
        assert words in text
    assert "3 stopped" in text
    assert "agrees, but 2 pairs are too few to decide" in text
    assert "DQN (beta = 0) on gridworld/paper , profile paper: seeds 3 stopped, 5 damaged." in text


def test_every_row_and_line_links_to_its_run_directories(example) -> None:
    """A label leads to the runs of its group, and each of those to its folder and files."""
    runs, out = example
    page = Page(out / "report.html")
    ids = [given["id"] for _, given in page.tags if "id" in given]
    assert len(ids) == len(set(ids))
    inside = {given["href"][1:] for tag, given in page.tags if tag == "a" and given["href"].startswith("#")}
    assert inside <= set(ids)
    groups = group_runs(find_runs([runs]))
    assert {group.anchor for group in groups} <= inside
    outside = {unquote(given["href"]) for tag, given in page.tags if tag == "a" and not given["href"].startswith("#")}
    assert all((out / link).exists() for link in outside)
    for record in find_runs([runs]):
        assert os.path.relpath(record.path, out) in outside
        if record.usable:
            assert os.path.relpath(record.path / "eval.jsonl", out) in outside


def test_charts_have_words_for_those_who_cannot_see_them(example) -> None:
    _, out = example
    page = Page(out / "report.html")
    charts = [attributes for _, attributes in page.tags if attributes.get("class") == "chart"]
    assert len(charts) == len(page.figures) > 8
    assert all(given["role"] == "img" for given in charts)
    labels = [given["aria-label"] for given in charts]
    assert all("DQN (beta = 0)" in label or "max Q" in label for label in labels)
    ends = "Evaluation return, along agent steps. At the end: DQN (beta = 0) 2.500 [2.000, 3.000]; PEER (beta = 0.01)"
    assert any(label.startswith(ends) for label in labels)


def test_the_axis_is_chosen_with_real_buttons(example) -> None:
    _, out = example
    page = Page(out / "report.html")
    buttons = [given for tag, given in page.tags if tag == "button"]
    assert [(given["value"], given["aria-pressed"]) for given in buttons] == [
        ("steps", "true"),
        ("frames", "false"),
        ("hours", "false"),
    ]
    switched = [figure["axes"] for figure in page.figures if "axes" in figure]
    assert {figure["hours"]["title"] for figure in switched} == {"hours of training: these runs have no times"}
    assert {figure["frames"]["title"] for figure in switched} == {"environment frames"}


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
    assert (peer["p_better"], peer["p_better_low"]) == ("1.0", "1.0")


def test_the_tidy_csv_has_a_row_for_each_run_and_measure(example) -> None:
    runs, out = example
    rows = list(csv.DictReader((out / "runs.csv").read_text().splitlines()))
    places = {record.place for record in find_runs([runs])}
    assert {row["run"] for row in rows} == places
    one = {row["measure"]: row for row in rows if row["run"].endswith("gridworld-paper/dqn+beta0.01/seed1")}
    assert float(one["score"]["value"]) == 3.5
    assert float(one["last_cosine"]["value"]) == 0.9
    assert "final_q_difference" in one
    assert (one["score"]["seed"], one["score"]["beta"], one["score"]["state"]) == ("1", "0.01", "finished")
    (newer,) = [row for row in rows if row["run"].endswith("dqn+beta0/seed6")]
    assert (newer["measure"], newer["value"], newer["state"]) == ("", "", "other version")
    assert "version 99" in newer["problem"]


def test_the_latex_holds_every_table(example) -> None:
    _, out = example
    text = (out / "table.tex").read_text()
    tables = (out / "table.md").read_text().count("\n| --- |")
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}}") == text.count(r"\toprule") == tables
    assert r"1.75 $\pm$ 0.35" in text
    assert "+1.50 {[}+1.50, +1.50{]}" in text
    assert text.isascii()


def test_the_markdown_says_what_is_missing(example) -> None:
    _, out = example
    text = (out / "table.md").read_text()
    assert "# A &amp; B" in text
    assert (
        "| DQN (beta = 0) | gridworld/paper | paper | 2,000 episodes | 2 of 4 | 0, 1 | 3 stopped, 5 damaged |" in text
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
    for name in ("table.md", "learning-paper-gym---script--script-alert-1---script-.svg"):
        assert "<script" not in (tmp_path / "out" / name).read_text()
    assert EVIL not in (tmp_path / "out" / "table.tex").read_text()


def test_a_report_without_a_finished_run_says_so(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", state="running", task="gym/CartPole-v1")
    page = Page(write_report(find_runs([tmp_path / "runs"]), tmp_path / "out", title="t", pictures=False))
    assert "No finished run yet." in page.text
    assert "Nothing to compare" in page.text


def test_a_report_of_damaged_runs_alone_is_written(tmp_path: Path) -> None:
    (write_run(tmp_path / "runs") / "config.toml").write_text("")
    page = Page(write_report(find_runs([tmp_path / "runs"]), tmp_path / "out", title="t", pictures=False))
    assert "the configuration names no agent" in page.text


def test_numbers_that_are_null_do_not_stop_a_report(tmp_path: Path) -> None:
    path = write_run(tmp_path / "runs")
    nulls = {"cosine": None, "probe_cosine": None, "probe_q_difference": None, "probe_max_q": [None] * 19}
    write_lines(path / "diagnostics.jsonl", [{"step": 1, "episode": 1, **nulls}])
    write_lines(path / "eval.jsonl", [{"step": 1, "mean": None, "lengths": ["?"]}])
    page = Page(write_report(find_runs([tmp_path / "runs"]), tmp_path / "out", title="t", pictures=False))
    assert "0 of 1" in page.text


def test_two_profiles_are_two_figures(tmp_path: Path) -> None:
    write_run(tmp_path / "runs")
    write_run(tmp_path / "runs", profile="smoke")
    write_report(find_runs([tmp_path / "runs"]), tmp_path / "out", title="t")
    assert {path.name for path in (tmp_path / "out").glob("figure3*.png")} == {"figure3.png", "figure3-smoke.png"}


def test_tasks_that_look_alike_as_file_names_have_their_own() -> None:
    taken: set[str] = set()
    assert [unused(name, taken) for name in ("a", "b", "a", "a-2", "a")] == ["a", "b", "a-2", "a-2-2", "a-3"]


def test_the_newest_imagination_of_a_world_model_is_shown(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs")
    (run / "videos").mkdir()
    for step, data in ((900, b"older"), (1_500, b"newer"), (1_200, b"between")):
        (run / "videos" / f"imagine-step-{step}.png").write_bytes(data)
    page = write_report(find_runs([tmp_path / "runs"]), tmp_path / "report", title="A").read_text()
    assert page.count('alt="Imagination of') == 1
    assert f"data:image/png;base64,{b64encode(b'newer').decode()}" in page
    assert "step 1500" in page


def test_planned_runs_that_are_not_there_are_missing(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    write_run(runs, seed=0)
    records = find_runs([runs])
    planned = [configure("dqn", "gridworld/paper", seed=seed, beta=beta) for beta in (0.0, 0.01) for seed in (0, 1)]
    absent = missing_runs(records, planned, runs)
    assert [(record.variant, record.seed) for record in absent] == [
        ("dqn+beta0", 1),
        ("dqn+beta0.01", 0),
        ("dqn+beta0.01", 1),
    ]
    page = Page(write_report([*records, *absent], tmp_path / "out", title="t", pictures=False))
    text = " ".join(page.text.split())
    assert "4 runs found" not in text
    assert "1 of 4 planned runs finished" in text
    assert "DQN (beta = 0) on gridworld/paper , profile paper: seeds 1 missing." in text
    assert "seeds 0 missing, 1 missing; no finished seed to compare with its backbone." in text


def test_hours_are_shown_for_the_lines_that_have_them(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", hours=0.5)
    write_run(tmp_path / "runs", beta=0.01)
    page = Page(write_report(find_runs([tmp_path / "runs"]), tmp_path / "out", title="t", pictures=False))
    (axes,) = [figure["axes"] for figure in page.figures if figure["title"] == "Evaluation return"]
    assert axes["hours"]["title"] == "hours of training (no times for 1 of 2 lines)"
    assert axes["hours"]["x"] == [[0.0625, 0.125], []]
    assert axes["steps"]["x"] == [[10.0, 20.0]] * 2
    assert "0.500" in page.text
    assert "no times" in page.text


@pytest.mark.parametrize(
    ("scores", "kind", "words"),
    [
        ([(1.0, 3.0), (2.0, 5.0)] * 3, HOLDS, "+2.50 [+2.17, +2.83]."),
        ([(3.0, 1.0), (5.0, 2.0)] * 3, FAILS, "-2.50 [-2.83, -2.17]."),
        ([(1.0, 3.0), (2.0, 5.0)], UNCLEAR, "agrees, but 2 pairs are too few to decide, +2.50 [+2.00, +3.00]."),
        ([(3.0, 1.0), (1.0, 2.0)], UNCLEAR, "disagrees, but 2 pairs are too few to decide, -0.50 [-2.00, +1.00]."),
        ([(3.0, 4.0)], UNCLEAR, "agrees, but one pair gives no interval, +1.00."),
        ([(3.0, 3.0)] * 2, UNCLEAR, "no difference, +0.00 [+0.00, +0.00]."),
    ],
)
def test_scores_in_words(tmp_path: Path, scores, kind, words) -> None:
    for seed, (plain, peer) in enumerate(scores):
        write_run(tmp_path, seed=seed, returns=(plain,))
        write_run(tmp_path, seed=seed, beta=0.01, returns=(peer,))
    write_run(tmp_path, seed=50, beta=0.01)
    found = sort_findings(score_findings(task_results(group_runs(find_runs([tmp_path])))))
    assert [len(found[other]) for other in (HOLDS, UNCLEAR, FAILS)] == [int(other == kind) for other in found]
    about = "gridworld, profile paper: a higher score than the backbone. DQN + PEER (beta = 0.01) on gridworld/paper: "
    assert "".join(found[kind][0]) == about + words
