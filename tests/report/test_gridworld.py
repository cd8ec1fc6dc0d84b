import math
import re
from pathlib import Path

import numpy as np
import pytest
from synthetic import write_lines, write_run

from peer_rl.paper.report import write_report
from peer_rl.report.findings import sort_findings, verdict
from peer_rl.report.gridworld import (
    CLAIMS,
    STEPS,
    episode_lengths,
    final_values,
    moving_mean,
    studies,
)
from peer_rl.report.gridworld_figure import draw_verdicts, rows_of
from peer_rl.report.gridworld_tables import (
    controls,
    findings,
    mechanism,
    mechanism_table,
    overview_table,
    study_tables,
    verdict_table,
)
from peer_rl.report.runs import find_runs, group_runs
from peer_rl.report.scores import Estimate


def study_of(runs: Path):
    (study,) = studies(group_runs(find_runs([runs])))
    return study


def test_the_moving_mean_by_hand() -> None:
    np.testing.assert_allclose(moving_mean(np.array([1.0, 3.0, 8.0, 10.0]), 2), [1, 2, 5.5, 9])
    np.testing.assert_allclose(moving_mean(np.array([4.0]), 50), [4])
    assert moving_mean(np.array([]), 50).size == 0


@pytest.mark.parametrize(
    ("difference", "sign", "words"),
    [
        (None, -1, "cannot tell: no seed ran both with and without PEER"),
        (Estimate(0.0, 0.0, 0.0, 6, 1.0), -1, "no difference"),
        (Estimate(-1.0, -2.0, -0.5, 6, 0.03), -1, "agrees"),
        (Estimate(-1.0, -2.0, 0.5, 6, 0.1), -1, "agrees, but the interval includes zero"),
        (Estimate(1.0, 0.5, 2.0, 6, 0.03), -1, "disagrees"),
        (Estimate(1.0, -0.5, 2.0, 6, 0.1), -1, "disagrees, but the interval includes zero"),
        (Estimate(1.0, 0.5, 2.0, 6, 0.03), +1, "agrees"),
        (Estimate(-1.0, -2.0, -0.5, 6, 0.03), +1, "disagrees"),
        (Estimate(-1.0, -2.0, -0.5, 6, 0.06), -1, "agrees, but the sign-flip test has p = 0.06"),
        (Estimate(-1.0, math.nan, math.nan, 1), -1, "agrees, but one pair gives no interval"),
        (Estimate(-1.0, -2.0, -0.5, 5, 0.06), -1, "agrees, but 5 pairs are too few to decide"),
    ],
)
def test_verdicts_in_words(difference, sign, words) -> None:
    assert verdict(difference, sign) == words


def write_pair(runs: Path, *, seeds: int = 6, **peer: object) -> None:
    for seed in range(seeds):
        write_run(runs, seed=seed, cosine=0.99, difference=0.05, length=20)
        write_run(runs, seed=seed, beta=0.01, **{"cosine": 0.9, "difference": 0.09, "length": 10, **peer})


def test_numbers_like_the_papers_agree_with_it(tmp_path: Path) -> None:
    write_pair(tmp_path)
    study = study_of(tmp_path)
    words = {found.claim.measure.name: found.words for found in study.verdicts}
    assert words == dict.fromkeys(
        ("final_cosine", "final_q_error", "final_q_difference", "episode_steps"), "agrees"
    ) | {
        "q_order": "no difference",
        "greedy_steps": "no difference",
    }
    assert [len(lines) for lines in sort_findings(findings(study)).values()] == [4, 2, 0]


def test_numbers_against_the_paper_disagree_with_it(tmp_path: Path) -> None:
    write_pair(tmp_path, cosine=0.999, difference=-0.01, length=30)
    study = study_of(tmp_path)
    words = {found.claim.measure.name: found.words for found in study.verdicts}
    assert words.pop("greedy_steps") == "no difference"
    assert set(words.values()) == {"disagrees"}
    assert [len(lines) for lines in sort_findings(findings(study)).values()] == [0, 1, 5]


def test_a_greater_difference_beyond_the_exact_one_is_not_closer(tmp_path: Path) -> None:
    write_pair(tmp_path, difference=3.0)
    closer, greater, _ = (found for found in study_of(tmp_path).verdicts if found.claim.panel == "c")
    assert (greater.words, closer.words) == ("agrees", "disagrees")
    assert closer.difference.value == pytest.approx(abs(3.0 - 0.1) - abs(0.05 - 0.1))


def test_mixed_signs_are_not_clear(tmp_path: Path) -> None:
    for seed, cosine in enumerate((0.90, 0.999, 0.98, 0.995, 0.90, 0.999)):
        write_run(tmp_path, seed=seed, cosine=0.99)
        write_run(tmp_path, seed=seed, beta=0.01, cosine=cosine)
    study = study_of(tmp_path)
    assert study.verdicts[0].words == "agrees, but the interval includes zero"
    assert any("includes zero" in "".join(line) for line in sort_findings(findings(study))["Not clear"])


def test_the_paper_claims_nothing_about_other_regularizers(tmp_path: Path) -> None:
    write_run(tmp_path)
    write_run(tmp_path, beta=0.01, regularizer="dr3")
    assert study_of(tmp_path).verdicts == []


def test_without_the_backbone_nothing_is_claimed(tmp_path: Path) -> None:
    write_run(tmp_path, beta=0.01)
    assert {found.words for found in study_of(tmp_path).verdicts} == {
        "cannot tell: no seed ran both with and without PEER"
    }


def test_panels_hold_every_seed(tmp_path: Path) -> None:
    for seed, cosine in enumerate((0.8, 0.9)):
        path = write_run(tmp_path, seed=seed, cosine=cosine, episodes=9)
        rows = [{"episode": episode, "step": episode, "length": 10 * (seed + 1)} for episode in range(1, 10)]
        write_lines(path / "metrics.jsonl", rows)
    study = study_of(tmp_path)
    (cosine,) = study.cosine
    np.testing.assert_allclose(cosine.x, [1, 9])
    np.testing.assert_allclose(cosine.mean, [0.5, 0.85])
    assert cosine.high[-1] - cosine.mean[-1] == pytest.approx(np.std([0.8, 0.9], ddof=1) / 2)
    (steps,) = study.steps
    np.testing.assert_allclose(steps.mean, 15)
    np.testing.assert_allclose(steps.x, np.arange(1, 10))
    assert study.exact == pytest.approx(0.1)


def test_only_episode_rows_have_a_length(tmp_path: Path) -> None:
    write_run(tmp_path, episodes=3, length=12)
    (record,) = find_runs([tmp_path])
    assert episode_lengths(record).tolist() == [12, 12, 12]


def test_values_of_the_cells_are_those_at_the_end(tmp_path: Path) -> None:
    for seed, value in enumerate((2.0, 4.0)):
        path = write_run(tmp_path, seed=seed)
        write_lines(
            path / "diagnostics.jsonl",
            [{"episode": 1, "probe_max_q": [99.0] * 19}, {"episode": 2, "probe_max_q": [value] * 19}, {"episode": 3}],
        )
    (group,) = group_runs(find_runs([tmp_path]))
    values = final_values(group)
    assert values[:19].tolist() == [3.0] * 19
    assert math.isnan(values[19])


def test_runs_from_before_the_probes_still_make_a_study(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    write_lines(path / "diagnostics.jsonl", [{"step": 1, "episode": 1, "cosine": 0.5}])
    study = study_of(tmp_path)
    assert (study.values, study.cosine) == ({}, [])
    assert study_tables(study)[0].rows[0][2] == "-"


def test_tables_show_numbers_counters_and_pairs(tmp_path: Path) -> None:
    write_pair(tmp_path, seeds=2)
    write_run(tmp_path, seed=7, beta=0.01, state="running")
    study = study_of(tmp_path)
    numbers, differences = study_tables(study)
    peer = dict(zip(numbers.header, numbers.rows[1], strict=True))
    assert peer["variant"] == "PEER (beta = 0.01)"
    assert peer["seeds"] == "2 of 3"
    assert peer["Final cosine"] == "0.9000 ± 0.0000"
    assert peer["Steps per episode"] == "10.00 ± 0.00"
    assert peer["Greedy steps at the end"] == "7.0 ± 0.0"
    assert (peer["agent steps"], peer["frames"]) == ("80", "80")
    assert differences.rows[0] == ["Final cosine", "-0.0900 [-0.0900, -0.0900] (p 0.5)"]
    for table in (numbers, differences, verdict_table(study)):
        assert table.caption.startswith("Profile paper; task gridworld/paper; seeds 0, 1; trained for 2,000 episodes.")


def test_each_encoding_and_each_budget_is_a_study_of_its_own(tmp_path: Path) -> None:
    write_pair(tmp_path, seeds=1)
    for beta in (0.0, 0.01):
        write_run(tmp_path, beta=beta, encoding="one-hot")
        write_run(tmp_path, beta=beta, steps=80, diagnose_every=500)
    found = studies(group_runs(find_runs([tmp_path])))
    assert sorted((study.encoding, study.axis) for study in found) == [
        ("integer", "episode"),
        ("integer", "step"),
        ("one-hot", "episode"),
    ]
    for study in found:
        assert [group.label for group in study.groups] == study.paper == ["DQN (beta = 0)", "PEER (beta = 0.01)"]
    (by_step,) = [study for study in found if study.axis == "step"]
    assert by_step.steps[0].x.tolist() == [10.0 * episode for episode in range(1, 9)]


def test_steps_that_the_budget_cut_off_count(tmp_path: Path) -> None:
    path = write_run(tmp_path, steps=90, episodes=8, length=10)
    status = path / "status.json"
    status.write_text(status.read_text().replace('"step": 80', '"step": 90'))
    table = study_tables(study_of(tmp_path))[0]
    assert dict(zip(table.header, table.rows[0], strict=True))["Steps per episode"] == "11.25"


def write_controls(runs: Path, *, turning: int, shrinking: int, norm: int = 40) -> None:
    """Ten seeds in which PEER halves the steps of plain DQN, 40, with a little noise."""
    for seed in range(10):
        for given, length in (
            ({"beta": 0.0}, 40),
            ({"beta": 0.01}, 20),
            ({"beta": 0.01, "regularizer": "cosine-peer"}, turning),
            ({"beta": 0.01, "regularizer": "feature-norm"}, shrinking),
            ({"beta": 0.0, "critic.layer_norm": True}, norm),
        ):
            write_run(runs, seed=seed, length=length + seed % 3 if length != 40 else 40, **given)


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        ({"turning": 20, "shrinking": 40}, "the turning"),
        ({"turning": 40, "shrinking": 20}, "the shrinking"),
        ({"turning": 20, "shrinking": 20}, "both"),
        ({"turning": 40, "shrinking": 50}, "neither alone"),
        ({"turning": 20, "shrinking": 40, "norm": 15}, "the turning; not PEER's alone"),
    ],
)
def test_what_peers_effect_comes_from(tmp_path: Path, lengths, words) -> None:
    write_controls(tmp_path, **lengths)
    assert mechanism(study_of(tmp_path)) == {0.01: words}


def test_the_controls_are_compared_with_plain_dqn_and_with_peer(tmp_path: Path) -> None:
    write_controls(tmp_path, turning=30, shrinking=50, norm=15)
    study = study_of(tmp_path)
    found = {one.group.label.split(" ")[0] + str("LayerNorm" in one.group.label): one for one in controls(study)}
    assert {name: one.verdict for name, one in found.items()} == {
        "PEERFalse": "helps",
        "cosine-peerFalse": "helps",
        "feature-normFalse": "hurts",
        "DQNTrue": "helps",
    }
    assert found["cosine-peerFalse"].to_peer.value == pytest.approx(10)
    assert found["DQNTrue"].to_plain.value == pytest.approx(-24.1)
    table = mechanism_table(study)
    assert table.rows[0][0] == "DQN (beta = 0)"
    assert "beta 0.01" in table.caption


def answers(study) -> list[str]:
    """What the table says of the only beta, of (b), (c), (d) and the mechanism."""
    table = overview_table([study], 10)
    assert [head[:3] for head in table.header] == ["sta", "bet", "(b)", "(c)", "(d)", "wha"]
    ((encoding, beta, *cells),) = table.rows
    assert (encoding, beta) == ("integer", "0.01")
    return cells


def test_the_answer_needs_all_pairs_and_says_where_the_effect_comes_from(tmp_path: Path) -> None:
    write_controls(tmp_path / "ten", turning=20, shrinking=40)
    cosine, error, steps, cause = answers(study_of(tmp_path / "ten"))
    assert cosine.startswith("not decided: +0.0")  # alike in every run
    assert error.startswith("not decided: +0.0")
    assert re.match(r"yes: -19\.\d+ \[-", steps)
    assert cause.startswith("rotation: ")
    write_pair(tmp_path / "six", length=30)
    for cell, difference in zip(answers(study_of(tmp_path / "six")), ("-0.09", "-0.04", "+10.0"), strict=False):
        assert cell.startswith(f"open, 6 of 10 pairs: {difference}")
    assert answers(study_of(tmp_path / "six"))[-1] == "the halves were not run"


def test_the_answer_names_the_controls_that_help_too(tmp_path: Path) -> None:
    write_controls(tmp_path, turning=40, shrinking=20, norm=15)
    cause = answers(study_of(tmp_path))[-1]
    assert cause.startswith("shrinkage: ")
    assert cause.endswith("; also helps: LayerNorm critic")


def test_the_image_of_the_verdicts_has_every_variant_and_decides_with_all_pairs_only(tmp_path: Path) -> None:
    write_controls(tmp_path / "runs", turning=40, shrinking=20)
    study = study_of(tmp_path / "runs")
    steps = next(claim for claim in CLAIMS if claim.measure == STEPS)
    rows = rows_of(study, steps, 10)
    names = ["PEER, beta 0.01", "LayerNorm critic", "only rotates, beta 0.01", "only shrinks, beta 0.01"]
    assert sorted(row.name for row in rows) == sorted(names)
    assert rows[0].name == names[0]
    assert rows[0].pairs == [-20 + seed % 3 for seed in range(10)]
    colours = {row.name: row.colour for row in rows}
    assert colours[names[0]] == colours[names[3]] != colours[names[2]]
    assert {row.colour for row in rows_of(study, steps, 11)} == {colours["LayerNorm critic"]}
    draw_verdicts([study, study], tmp_path / "verdicts", 10)
    assert (tmp_path / "verdicts.png").stat().st_size > 10_000


def test_the_answer_says_no_where_the_paper_is_contradicted(tmp_path: Path) -> None:
    for seed in range(10):
        write_run(tmp_path, seed=seed, cosine=0.9, length=10)
        write_run(tmp_path, seed=seed, beta=0.01, cosine=0.95 + 0.001 * seed, length=20 + seed)
        for half in ("cosine-peer", "feature-norm"):
            write_run(tmp_path, seed=seed, beta=0.01, regularizer=half)
    cosine, _, steps, cause = answers(study_of(tmp_path))
    assert cosine.startswith("no, the opposite: +0.05")
    assert steps.startswith("no, the opposite: +14.5")
    assert cause == "PEER's own effect: hurts"


def test_without_controls_there_is_no_word_on_the_mechanism(tmp_path: Path) -> None:
    write_pair(tmp_path)
    study = study_of(tmp_path)
    assert (controls(study), mechanism(study), mechanism_table(study)) == ([], {}, None)


def test_a_report_draws_the_controls_and_only_the_papers_variants_in_figure_3(tmp_path: Path) -> None:
    for seed in range(2):
        for given in ({"beta": 0.0}, {"beta": 0.01}, {"beta": 0.01, "regularizer": "cosine-peer"}):
            write_run(tmp_path / "runs", seed=seed, **given)
    page = write_report(find_runs([tmp_path / "runs"]), tmp_path / "out", title="")
    assert {path.name for path in (tmp_path / "out").glob("*.png")} >= {"figure3.png", "controls.png"}
    assert (tmp_path / "out" / "controls.png").stat().st_size > 10_000
    text = (tmp_path / "out" / "figure3.svg").read_text()
    assert "PEER (beta" in text
    assert "cosine-peer" not in text
    assert "Controls: Norm of phi" in page.read_text()
