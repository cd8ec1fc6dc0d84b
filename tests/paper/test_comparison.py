"""The paper compared with our runs, from run directories written by hand."""

import json

import pytest
from synthetic import write_run

from peer_rl.paper.catalogue import CATALOGUE
from peer_rl.paper.comparison import compare, comparison_section, comparisons_of, counts, grid_table, statements
from peer_rl.paper.plan import Choice, planned_runs
from peer_rl.paper.report import write_report
from peer_rl.report.page import part_html
from peer_rl.report.runs import find_runs, group_runs


def html_of(section) -> str:
    return "".join(map(part_html, section.parts))


def compared(runs, name, **choice):
    groups = group_runs(find_runs([runs]))
    return compare(CATALOGUE[name], planned_runs(CATALOGUE[name], Choice(**choice)), groups)


def row(table, task, system):
    return next(dict(zip(table.header, cells, strict=True)) for cells in table.rows if cells[:2] == [task, system])


@pytest.fixture
def bullet(tmp_path):
    """Five seeds of PEER and TD3 on Hopper, PEER 300 to 304 points above; one seed of SAC."""
    runs = tmp_path / "runs"
    for seed in range(5):
        write_run(runs, agent="td3", task="pybullet/hopper", seed=seed, beta=0.0, returns=(1700.0 + seed,))
        write_run(runs, agent="td3", task="pybullet/hopper", seed=seed, beta=5e-4, returns=(2000.0 + 2 * seed,))
    write_run(runs, agent="sac", task="pybullet/hopper", seed=0, returns=(1900.0,))
    return runs


def test_a_row_has_both_numbers_seeds_counters_and_differences(bullet):
    comparison = compared(bullet, "table1", seeds=10, tasks=("pybullet/hopper",))
    table = grid_table(comparison, comparison.grids[0])
    peer = row(table, "pybullet/hopper", "PEER")
    assert peer["paper"] == "2,106 ± 164 (best)"
    assert peer["ours"] == "2,004 ± 3 (best)"
    assert peer["seeds done"] == "5 of 10"
    assert peer["paper's difference"] == "+308"
    assert peer["our difference [95 %] (pairs)"].startswith("+302 [+301, +303]")
    assert peer["our difference [95 %] (pairs)"].endswith("(5)")
    assert (peer["agent steps"], peer["frames"]) == ("80", "80")
    assert row(table, "pybullet/hopper", "SAC")["seeds done"] == "1 of 10"
    for absent in ("PPO2", "TRPO", "METD3"):
        assert row(table, "pybullet/hopper", absent)["ours"] == "missing"
    assert "last ten evaluations" in table.caption


def test_sentences_say_what_agrees_and_what_is_missing(bullet):
    for beta, score in ((0.0, 1705.0), (5e-4, 2010.0)):  # a sixth pair: five are too few to decide
        write_run(bullet, agent="td3", task="pybullet/hopper", seed=5, beta=beta, returns=(score,))
    comparison = compared(bullet, "table1", seeds=10, tasks=("pybullet/hopper",))
    found = statements(comparison)
    assert any("PEER against TD3 on pybullet/hopper" in line for line in found["Holds"])
    assert not found["Does not hold"]
    assert any("TRPO: missing" in line or "TRPO," in line for line in found["Missing"])
    (count,) = counts(comparison)
    assert count.endswith("the paper says 4 of 4; we have no task with all of them.")
    page, _ = comparison_section(comparison)
    assert "Not planned here: pybullet/ant, pybullet/half-cheetah, pybullet/walker2d." in html_of(page)


def test_a_worse_peer_disagrees(tmp_path):
    for seed in range(6):
        write_run(tmp_path, agent="td3", task="pybullet/hopper", seed=seed, beta=0.0, returns=(2000.0 + seed,))
        write_run(tmp_path, agent="td3", task="pybullet/hopper", seed=seed, beta=5e-4, returns=(1000.0 + 2 * seed,))
    found = statements(compared(tmp_path, "table1", tasks=("pybullet/hopper",)))
    assert len(found["Does not hold"]) == 1
    assert not found["Holds"]


def test_another_profile_proves_nothing_and_says_so_loudly(tmp_path):
    for seed in range(5):
        for beta in (0.0, 5e-4):
            score = (100.0 + seed + 1e5 * beta * (1 + seed / 10),)
            task, agent = "pybullet/hopper", "td3"
            write_run(tmp_path, agent=agent, task=task, seed=seed, beta=beta, returns=score, profile="smoke")
    comparison = compared(tmp_path, "table1", profile="smoke", seeds=5)
    found = statements(comparison)
    assert not found["Holds"]
    assert any("PEER against TD3" in line for line in found["Not clear"])
    section, _ = comparison_section(comparison)
    assert "NOT comparable" in html_of(section)


def write_evaluations(path, rows):
    lines = [
        {"step": step, "frame": frame, "mean": mean, "returns": [mean], "lengths": [1]} for step, frame, mean in rows
    ]
    (path / "eval.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_dmcontrol_is_read_at_both_budgets_and_at_agent_steps(tmp_path):
    task = "dmc/reacher-easy"
    for beta in (0.0, 5e-4):
        path = write_run(tmp_path, agent="curl-sac", task=task, beta=beta)
        score = [(25_000, 100_000, 300 + beta), (100_000, 400_000, 800 + beta), (125_000, 500_000, 900 + beta)]
        write_evaluations(path, score)
    comparison = compared(tmp_path, "table2", seeds=1, tasks=(task,))
    shown = {grid.budget.title: row(grid_table(comparison, grid), task, "CURL") for grid in comparison.grids}
    assert [(cells["paper"], cells["ours"]) for cells in shown.values()] == [
        ("929 ± 44, from the CURL paper", "900"),
        ("538 ± 233, from the CURL paper", "300"),
        ("538 ± 233, from the CURL paper", "800"),
    ]
    planet = row(grid_table(comparison, comparison.grids[0]), task, "PlaNet")
    assert planet["ours"] == "missing"
    again = row(grid_table(comparison, comparison.grids[0]), task, "PEER+CURL")  # the appendix's name for PEER
    assert (again["paper"], again["ours"]) == ("980 ± 3 (best)", "900 (best)")
    fewer = compared(tmp_path, "table2", seeds=1, tasks=(task,), agents=("curl-sac",))
    assert row(grid_table(fewer, fewer.grids[0]), task, "DrQ")["ours"] == "not planned"
    tdmpc = row(grid_table(comparison, comparison.grids[1]), task, "PEER+TDMPC")
    assert (tdmpc["paper"], tdmpc["ours"]) in [("841 ± 115 (best)", "not available"), ("841 ± 115 (best)", "missing")]


def test_a_run_that_ends_before_a_budget_is_not_taken_for_it(tmp_path):
    task = "dmc/reacher-easy"
    path = write_run(tmp_path, agent="curl-sac", task=task)
    write_evaluations(path, [(2_500, 10_000, 100.0)])
    comparison = compared(tmp_path, "table2", seeds=1, tasks=(task,))
    assert row(grid_table(comparison, comparison.grids[0]), task, "CURL")["ours"] == "not reached"


def test_conv_features_are_compared_with_the_one_backbone(tmp_path):
    game = {"task": "atari/pong", "agent": "curl-rainbow"}
    for seed in range(3):
        final = ([-20.0] * 100, [10] * 100)
        write_run(tmp_path, **game, seed=seed, beta=0.0, final=final)
        better = ([-10.0 + seed] * 100, [10] * 100)
        write_run(tmp_path, **game, seed=seed, beta=5e-4, final=better, features="conv")
    comparison = compared(tmp_path, "table3", seeds=3, tasks=("atari/pong",))
    cells = row(grid_table(comparison, comparison.grids[0]), "atari/pong", "PEER+CURL")
    assert cells["our difference [95 %] (pairs)"].startswith("+11.0 [")
    assert cells["paper's difference"] == "+7"
    conv = next(group for group in group_runs(find_runs([tmp_path])) if group.config.beta)
    assert conv.backbone == ("paper", "atari/pong", "curl-rainbow+beta0")
    assert "features-conv" in conv.label


def test_figure_1_has_the_sign_of_drd_and_its_curves(tmp_path):
    for seed in range(6):
        for beta, drd in ((0.0, -0.1), (5e-4, -0.3)):
            path = write_run(tmp_path, agent="td3", task="pybullet/ant", seed=seed, beta=beta)
            lines = [{"step": step, "frame": step, "drd": drd - seed / 1000} for step in (10, 20, 30)]
            (path / "diagnostics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    section, tables = comparison_section(compared(tmp_path, "figure1", tasks=("pybullet/ant",)))
    table = next(table for name, table in tables if name.endswith("DRD"))
    assert row(table, "pybullet/ant", "TD3")["our runs"] == "agrees"
    assert row(table, "pybullet/ant", "PEER")["difference to backbone"].startswith("-0.2000")
    assert "DRD, pybullet/ant" in html_of(section)


def test_figure_4_divides_by_state_sac(tmp_path):
    for task, states, pixels in (("dmc/reacher-easy", 800, 400), ("dmc/cheetah-run", 400, 200)):
        write_evaluations(write_run(tmp_path, agent="sac", task=task), [(500_000, 500_000, states)])
        write_evaluations(write_run(tmp_path, agent="curl-sac", task=task), [(125_000, 500_000, pixels)])
    tasks = ("dmc/reacher-easy", "dmc/cheetah-run")
    _, tables = comparison_section(compared(tmp_path, "figure4", seeds=1, tasks=tasks))
    table = next(table for name, table in tables if name.endswith("shares of State SAC"))
    curl = row(table, "CURL", "at 500,000 environment steps")
    assert curl["ours"] == "0.500 (2 tasks)"
    assert curl["paper"] == f"{(929 + 518) / (923 + 795):.3f} (2 tasks)"
    assert row(table, "PEER+DrQ", "at 500,000 environment steps")["paper"] == "not in a table"


def test_a_plain_report_shows_the_papers_rows_for_what_it_finds(bullet, tmp_path):
    found = comparisons_of(group_runs(find_runs([bullet])))
    assert [comparison.experiment.name for comparison in found] == ["table1"]
    assert found[0].grids[0].tasks == ["pybullet/hopper"]
    records = find_runs([bullet])
    page = write_report(records, tmp_path / "out", title="t").read_text()
    assert "Paper against ours: table1, profile paper" in page
    assert "2,106 ± 164 (best)" in page
    assert "2,106 ± 164 (best)" in (tmp_path / "out/table.md").read_text()
    again = write_report(records, tmp_path / "again", title="t").read_text()
    assert again.replace("/again/", "/out/") == page


def test_a_report_without_any_of_the_papers_tasks_has_no_such_section(tmp_path):
    write_run(tmp_path / "runs", task="gym/CartPole-v1", returns=(1.0,))
    assert not comparisons_of(group_runs(find_runs([tmp_path / "runs"])))
