"""The paper's figures as pictures: what is drawn, also with runs missing."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from synthetic import write_lines, write_run

from peer_rl.paper import derived, suite_pictures
from peer_rl.paper.catalogue import CATALOGUE
from peer_rl.paper.comparison import compare, comparison_section
from peer_rl.paper.panels import Bars, Panel, draw_bars, draw_panels
from peer_rl.paper.plan import Choice, planned_runs
from peer_rl.paper.published import SuiteRow, SuiteTable
from peer_rl.report.charts import curve_chart, styles_of
from peer_rl.report.curves import Curve
from peer_rl.report.page import Picture
from peer_rl.report.runs import find_runs, group_runs


def compared(runs, name, **choice):
    groups = group_runs(find_runs([runs]))
    return compare(CATALOGUE[name], planned_runs(CATALOGUE[name], Choice(**choice)), groups)


def pictures(comparison) -> list[Picture]:
    section, _ = comparison_section(comparison)
    return [part for part in section.parts if isinstance(part, Picture)]


def size(drawing) -> tuple[int, int]:
    with Image.open(BytesIO(drawing.png)) as image:
        image.load()
        return image.size


def curve(label: str, *values: float) -> Curve:
    x, mean = np.arange(len(values)) * 1000.0, np.array(values)
    return Curve(label, x, mean, mean, mean, 1)


def test_panels_keep_their_places_whatever_has_been_run():
    full = [Panel(str(index), [curve("TD3", 1.0, 2.0), curve("PEER", 0.0, -1.0)]) for index in range(16)]
    part = [Panel(panel.title, panel.curves if index == 3 else []) for index, panel in enumerate(full)]
    none = [Panel(panel.title, []) for panel in full]
    styles = styles_of([("TD3", ""), ("PEER", "TD3")])
    drawn = [draw_panels(panels, styles, x="steps", y="DRD", zero=True) for panels in (full, part, none)]
    assert len({size(one) for one in drawn}) == 1
    assert [b"not run" in one.svg for one in drawn] == [False, True, True]
    assert draw_panels(part, styles, x="steps", y="DRD", zero=True).png == drawn[1].png


def test_a_single_point_is_seen():
    """One evaluation is a marker: a line through one point has no length."""
    point, none = (
        draw_panels([Panel("a", [curve("TD3", *values)])], styles_of([("TD3", "")]), x="", y="")
        for values in ((3.0,), ())
    )
    assert point.svg.count(b"#0072b2") > none.svg.count(b"#0072b2")


def test_single_points_of_a_backbone_and_of_peer_look_different():
    styles = styles_of([("CURL", ""), ("PEER+CURL", "CURL")])
    hollow = [
        b"fill-opacity: 0; stroke: #0072b2" in draw_panels([Panel("a", [curve(name, 2.0)])], styles, x="", y="").svg
        for name in styles
    ]
    assert hollow == [True, False]
    traces = curve_chart("", [curve("CURL", 2.0), curve("PEER+CURL", 2.0)], styles, x="steps").figure["data"][2:]
    assert [one["mode"] for one in traces] == ["lines+markers"] * 2
    assert [one["marker"]["symbol"] for one in traces] == ["circle-open", "circle"]


def test_bars_of_missing_runs_are_named():
    nan = float("nan")
    bars = Bars("at 100k", ["SAC", "CURL"], {"paper": [1.0, nan], "ours": [1.0, nan]})
    drawn = draw_bars([bars], y="share", line=1.0)
    assert drawn.svg.count(b"<!-- not run -->") == drawn.svg.count(b"<!-- no number -->") == 1
    assert drawn.svg.count(b"<!-- 1.00 -->") == 2


def test_figure_1_is_one_image_of_eight_panels(tmp_path):
    for beta in (0.0, 5e-4):
        path = write_run(tmp_path, agent="td3", task="pybullet/ant", beta=beta)
        write_lines(path / "diagnostics.jsonl", [{"step": step, "frame": step, "drd": -beta} for step in (10, 20)])
    (picture,) = pictures(compared(tmp_path, "figure1", seeds=1, tasks=("pybullet/ant",)))
    assert picture.name == "figure1"
    assert picture.drawing.svg.count(b"<!-- not run -->") == 7
    words = "".join(picture.caption)
    assert "5 seeds, beta 0.0005" in words
    assert "1 of 8 tasks, 1 finished seed," in words


def test_figure_4_has_the_papers_bar_next_to_ours(tmp_path):
    for agent, score in (("sac", 800.0), ("curl-sac", 200.0)):
        path = write_run(tmp_path, agent=agent, task="dmc/reacher-easy")
        write_lines(path / "eval.jsonl", [{"step": 1, "frame": 500_000, "mean": score, "lengths": []}])
    comparison = compared(tmp_path, "figure4", seeds=1, tasks=("dmc/reacher-easy",))
    shares = {share.label: share for share in derived.shares_of(comparison.grids[0])}
    assert (shares["CURL"].ours, shares["CURL"].paper) == (0.25, 929 / 923)
    (picture,) = pictures(comparison)
    assert b"<!-- 0.25 -->" in picture.drawing.svg
    assert b"<!-- 1.01 -->" in picture.drawing.svg


def test_the_beta_study_is_normalised_by_the_best_beta_of_a_game(tmp_path):
    for beta, score in ((0.0, 5.0), (5e-5, 10.0), (1e-4, 20.0)):
        options = {"features": "conv"} if beta else {}
        final = ([score] * 100, [10] * 100)
        write_run(tmp_path, agent="curl-rainbow", task="atari/freeway", beta=beta, final=final, **options)
    comparison = compared(tmp_path, "beta-study", seeds=1, tasks=("atari/freeway",))
    (_, table), *_ = derived.parts(
        comparison.experiment, comparison.grids, comparison.planned, comparison.groups
    ).tables
    assert table.rows == [["atari/freeway", "0.25", "0.50", "1.00", "-", "-", "-", "-"]]
    (picture,) = pictures(comparison)
    assert picture.drawing.svg.count(b"<!-- not run -->") == 6  # of seven games


def test_plain_curl_is_no_beta_to_divide_by(tmp_path):
    for beta, score in ((0.0, 40.0), (5e-5, 10.0), (1e-4, 20.0)):
        options = {"features": "conv"} if beta else {}
        write_run(
            tmp_path,
            agent="curl-rainbow",
            task="atari/freeway",
            beta=beta,
            final=([score] * 100, [10] * 100),
            **options,
        )
    comparison = compared(tmp_path, "beta-study", seeds=1, tasks=("atari/freeway",))
    (_, table), *_ = derived.parts(
        comparison.experiment, comparison.grids, comparison.planned, comparison.groups
    ).tables
    assert table.rows == [["atari/freeway", "2.00", "0.50", "1.00", "-", "-", "-", "-"]]


def test_the_dmcontrol_curves_are_two_images_of_sixteen_panels(tmp_path):
    for agent in ("curl-sac", "drq-sac"):
        path = write_run(tmp_path, agent=agent, task="dmc/finger-spin")
        rows = [{"step": step, "frame": 2 * step, "mean": float(step), "lengths": []} for step in (10, 20, 30)]
        write_lines(path / "eval.jsonl", rows)
    curl, drq = pictures(compared(tmp_path, "dmc-curves", seeds=1, tasks=("dmc/finger-spin",)))
    assert (curl.name, drq.name) == ("dmc-curves-curl", "dmc-curves-drq")
    assert [one.drawing.svg.count(b"<!-- not run -->") for one in (curl, drq)] == [15, 15]


def test_images_of_a_suite_come_from_its_environments(monkeypatch, tmp_path):
    pytest.importorskip("ale_py", reason="pip install 'peer-rl[atari]'")
    rows = tuple(SuiteRow(f"atari/{name}", (84, 84), 6) for name in ("pong", "breakout"))
    tables = {"atari": SuiteTable("atari", "", "", "", (), rows), "none": SuiteTable("none", "", "", "", (), ())}
    tables["none"] = SuiteTable("none", "", "", "", (), (SuiteRow("gym/NoSuchThing-v0", (1,), 1),))
    monkeypatch.setattr(suite_pictures, "SUITE_TABLES", tuple(tables))
    monkeypatch.setattr(suite_pictures, "suite_table", tables.__getitem__)
    said = []
    page = suite_pictures.write_pictures(tmp_path / "out", said.append).read_text()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"atari.png", "atari.svg", "pictures.html"}
    assert page.count("data:image/png;base64,") == 1
    assert len(page) < 1_000_000  # no charts, no plotly
    assert len(said) == 1
    assert said[0].startswith("none is left out: ")
    frame = suite_pictures.frame_of("atari/pong", 3)
    assert frame.shape == (210, 160, 3)
    assert len(np.unique(frame)) > 3
