import json
from pathlib import Path

import pytest
from synthetic import write_run

from peer_rl.errors import RunError
from peer_rl.report.runs import describe, find_runs, group_runs


def test_runs_are_grouped_by_variant_with_sorted_seeds(tmp_path: Path) -> None:
    for seed in (2, 0, 10):
        write_run(tmp_path, seed=seed)
    write_run(tmp_path, seed=1, beta=0.01)
    write_run(tmp_path, seed=1, beta=0.01, profile="smoke")
    groups = group_runs(find_runs([tmp_path]))
    assert [(group.key, group.seeds) for group in groups] == [
        (("paper", "gridworld/paper", "dqn+beta0"), [0, 2, 10]),
        (("paper", "gridworld/paper", "dqn+beta0.01"), [1]),
        (("smoke", "gridworld/paper", "dqn+beta0.01"), [1]),
    ]
    assert [group.label for group in groups[:2]] == ["DQN (beta = 0)", "PEER (beta = 0.01)"]
    assert groups[1].backbone == groups[0].key
    assert groups[0].backbone is None


def test_an_adaptive_beta_is_a_variant_like_the_others(tmp_path: Path) -> None:
    for beta in (0.0, 0.01, "auto"):
        write_run(tmp_path, beta=beta)
    write_run(tmp_path, beta="auto", beta_target=0.8, beta_rate=0.1)
    plain, fixed, other, auto = group_runs(find_runs([tmp_path]))
    assert auto.label == "cosine-peer (beta = auto for cosine 0.9)"
    assert other.label == "cosine-peer (beta = auto for cosine 0.8 at rate 0.1)"
    assert auto.backbone == other.backbone == fixed.backbone == plain.key


def test_the_backbone_keeps_every_other_setting(tmp_path: Path) -> None:
    write_run(tmp_path, beta=0.01, **{"settings.tau": 0.5})
    (group,) = group_runs(find_runs([tmp_path]))
    assert group.backbone == ("paper", "gridworld/paper", "dqn+beta0+tau0.5")
    assert group.label == "PEER (beta = 0.01), tau0.5"


def test_a_label_holds_only_what_differs_between_the_variants_of_a_task(tmp_path: Path) -> None:
    for beta, more in ((0.0, {}), (0.01, {}), (0.01, {"batch_size": 16})):
        write_run(tmp_path / "several", task="gym/CartPole-v1", beta=beta, steps=70, **more)
    groups = group_runs(find_runs([tmp_path / "several"]))
    labels = ["DQN (beta = 0)", "PEER (beta = 0.01), batch-size16", "PEER (beta = 0.01)"]
    assert [group.label for group in groups] == labels
    assert all("steps70" in describe([group]) for group in groups)
    write_run(tmp_path / "one", task="gym/CartPole-v1", steps=70)
    (alone,) = group_runs(find_runs([tmp_path / "one"]))
    assert "steps70" in alone.label


def test_a_path_may_be_a_run_and_overlapping_paths_count_once(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    assert [record.path for record in find_runs([path])] == [path]
    assert len(find_runs([path, tmp_path, tmp_path / "paper"])) == 1


def test_nothing_inside_a_run_is_taken_for_a_run(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    inner = path / "checkpoint" / "seed3"
    inner.mkdir(parents=True)
    (inner / "config.toml").write_text("")
    assert [record.path for record in find_runs([tmp_path])] == [path]


def test_a_copy_of_a_run_is_not_another_seed(tmp_path: Path) -> None:
    write_run(tmp_path / "a", state="running")
    finished = write_run(tmp_path / "b")
    records = find_runs([tmp_path])
    assert [record.state for record in records] == ["duplicate", "finished"]
    assert str(finished) in records[0].problem
    (group,) = group_runs(records)
    assert group.seeds == [0]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no folder"):
        find_runs([tmp_path / "nowhere"])


def damage_config(path: Path) -> None:
    (path / "config.toml").write_text('agent = "dqn')


def unknown_setting(path: Path) -> None:
    (path / "config.toml").write_text((path / "config.toml").read_text().replace("beta =", "bete ="))


def damage_line(path: Path) -> None:
    (path / "eval.jsonl").write_text('{"step": 1}\n{"step": \n{"step": 3}\n')


def line_of_another_kind(path: Path) -> None:
    (path / "metrics.jsonl").write_text("[1, 2]\n")


def not_utf8(path: Path) -> None:
    (path / "config.toml").write_bytes(b"\xff\xfe")


def no_manifest(path: Path) -> None:
    (path / "manifest.json").unlink()


def manifest_of_another_kind(path: Path) -> None:
    (path / "manifest.json").write_text("[]")


def half_a_status(path: Path) -> None:
    (path / "status.json").write_text('{"state": "fin')


def newer_schema(path: Path) -> None:
    (path / "manifest.json").write_text(json.dumps({"schema": 99}))
    (path / "config.toml").write_text("wholly = 'new'")


def folder_in_the_way(path: Path) -> None:
    (path / "eval.jsonl").unlink()
    (path / "eval.jsonl").mkdir()


def empty(path: Path) -> None:
    for file in path.iterdir():
        file.unlink()


def only_config(path: Path) -> None:
    for file in path.iterdir():
        if file.name != "config.toml":
            file.unlink()


DAMAGES = {
    damage_config: ("damaged", "config.toml is damaged"),
    unknown_setting: ("damaged", "unknown setting 'bete'"),
    damage_line: ("damaged", "eval.jsonl is damaged"),
    line_of_another_kind: ("damaged", "it holds no JSON object"),
    not_utf8: ("damaged", "config.toml is damaged"),
    no_manifest: ("damaged", "has no manifest.json"),
    manifest_of_another_kind: ("damaged", "manifest.json is damaged"),
    half_a_status: ("damaged", "status.json is damaged"),
    newer_schema: ("other version", "version 99 of the format"),
    folder_in_the_way: ("damaged", "is a link, a folder"),
    empty: ("empty", "nothing was written yet"),
    only_config: ("empty", "nothing was written yet"),
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_run_is_listed_with_its_problem(tmp_path: Path, damage) -> None:
    write_run(tmp_path, seed=0)
    damage(write_run(tmp_path, seed=1))
    whole, broken = find_runs([tmp_path])
    assert whole.usable
    state, words = DAMAGES[damage]
    assert not broken.usable
    assert broken.state == state
    assert words in broken.problem
    assert "\n" not in broken.problem


def test_a_last_line_still_being_written_is_no_damage(tmp_path: Path) -> None:
    path = write_run(tmp_path, returns=(1.0, 2.0))
    with (path / "eval.jsonl").open("a") as file:
        file.write('{"step": 3, "mea')
    (record,) = find_runs([tmp_path])
    assert record.usable
    assert [row["mean"] for row in record.rows["eval"]] == [1.0, 2.0]


def test_an_unfinished_run_is_found_but_gives_no_number(tmp_path: Path) -> None:
    write_run(tmp_path, state="running")
    (record,) = find_runs([tmp_path])
    assert (record.state, record.problem, record.usable) == ("stopped", "", False)
    (group,) = group_runs([record])
    assert group.finished == []


def test_the_command_is_quoted_for_a_shell(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    (path / "manifest.json").write_text(json.dumps({"schema": 1, "command": ["peer-rl", "train", "a b"]}))
    (record,) = find_runs([tmp_path])
    assert record.command == "peer-rl train 'a b'"
