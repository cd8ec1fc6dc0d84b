"""One hue for PEER and its backbone, solid and dashed; titles that call only the paper's settings the paper's."""

from pathlib import Path

from synthetic import write_run

from peer_rl.report.charts import group_styles, styles_of
from peer_rl.report.results import task_results
from peer_rl.report.runs import find_runs, group_runs, shared_settings, terms


def groups_of(runs: Path):
    return group_runs(find_runs([runs]))


def test_a_variant_is_solid_and_its_backbone_dashed_in_the_same_hue(tmp_path: Path) -> None:
    for beta in (0.0, 0.01):
        write_run(tmp_path, beta=beta)
        write_run(tmp_path, beta=beta, tau=0.5)
    styles = group_styles(groups_of(tmp_path))
    plain, peer, other, other_peer = (
        styles[name]
        for name in ("DQN (beta = 0)", "PEER (beta = 0.01)", "DQN (beta = 0), tau0.5", "PEER (beta = 0.01), tau0.5")
    )
    assert plain[0] == peer[0] != other[0] == other_peer[0]
    assert (plain[1], peer[1], other[1], other_peer[1]) == ("dashed", "solid", "dashed", "solid")


def test_every_line_is_distinct_however_many_there_are() -> None:
    lines = [("plain", ""), *((f"beta {index}", "plain") for index in range(9))]
    styles = styles_of(lines)
    assert list(styles) == [label for label, _ in lines]
    assert len(set(styles.values())) == len(lines)
    assert styles["plain"][0] == styles["beta 0"][0]


def test_a_line_without_a_partner_is_solid() -> None:
    assert styles_of([("alone", ""), ("orphan", "not shown")])["alone"][1] == "solid"


def test_only_runs_with_the_papers_settings_are_of_profile_paper(tmp_path: Path) -> None:
    write_run(tmp_path / "paper", beta=0.01)
    write_run(tmp_path / "own", episodes=9, gamma=0.9)
    write_run(tmp_path / "gym", task="gym/CartPole-v1")
    write_run(tmp_path / "small", profile="small")
    told = {name: terms(groups_of(tmp_path / name)) for name in ("paper", "own", "gym", "small")}
    assert told == {
        "paper": "profile paper",
        "own": "own settings",
        "gym": "default settings",
        "small": "profile small",
    }
    (result,) = task_results(groups_of(tmp_path / "own"))
    assert result.heading == "gridworld/paper, own settings"


def test_what_all_variants_share_is_said_once(tmp_path: Path) -> None:
    for beta in (0.0, 0.01):
        write_run(tmp_path, beta=beta, gamma=0.9)
    groups = groups_of(tmp_path)
    assert [group.label for group in groups] == ["DQN (beta = 0)", "PEER (beta = 0.01)"]
    assert shared_settings(groups) == "All of them with gamma0.9."
