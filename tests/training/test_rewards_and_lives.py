"""What the loop stores of a step: clipped rewards, and lost lives that stop bootstrapping while the game continues."""

import pytest
from picture_envs import Lives

from peer_rl.launch.api import train
from peer_rl.replay.replay import Replay
from peer_rl.settings import configure
from peer_rl.training.files import read_json_lines

GAME = len(Lives.rewards)
ENDS = [False] * (GAME - 1) + [True]


@pytest.fixture
def stored(monkeypatch):
    """Every row that the replay is given."""
    rows, add = [], Replay.add

    def spied(replay, **row):
        rows.append(row)
        add(replay, **row)

    monkeypatch.setattr(Replay, "add", spied)
    return rows


def play(runs, **settings: object) -> list[dict]:
    """Two games and a half; returns the lines of metrics.jsonl about games."""
    config = configure(
        "dqn", "picture_envs:lives", steps=15, start_steps=5, batch_size=4, eval_every=15, eval_episodes=1, **settings
    )
    run = train(config, runs=runs)
    assert read_json_lines(run / "eval.jsonl")[-1]["returns"] == [sum(Lives.rewards)], "evaluation is unclipped"
    return [row for row in read_json_lines(run / "metrics.jsonl") if "return" in row]


def test_as_the_environment_gives_them(stored, tmp_path):
    play(tmp_path)
    assert [row["reward"] for row in stored[:GAME]] == list(Lives.rewards)
    assert [row["discount"] for row in stored[: 2 * GAME]] == 2 * [1, 1, 1, 1, 1, 0]
    assert [row["last"] for row in stored[: 2 * GAME]] == 2 * ENDS


def test_clipped_rewards_are_for_learning_alone(stored, tmp_path):
    games = play(tmp_path, clip_rewards=True)
    assert [row["reward"] for row in stored[:GAME]] == [-1.0, 0.5, 1.0, -0.25, 0.0, 1.0]
    assert [game["return"] for game in games] == 2 * [sum(Lives.rewards)]


def test_a_lost_life_stops_bootstrapping_and_nothing_else(stored, tmp_path):
    games = play(tmp_path, lost_life_ends=True)
    assert [row["discount"] for row in stored[: 2 * GAME]] == 2 * [1, 0, 1, 0, 1, 0]
    assert [row["last"] for row in stored[: 2 * GAME]] == 2 * ENDS
    assert [game["length"] for game in games] == 2 * [GAME]
    assert [row["reward"] for row in stored[:GAME]] == list(Lives.rewards)


def test_truncation_is_the_last_row_and_bootstraps(stored, tmp_path):
    config = configure(
        "dqn", "toy_envs:truncating", steps=8, start_steps=4, batch_size=4, lost_life_ends=True, beta=0.0
    )
    train(config, runs=tmp_path)
    assert [(row["discount"], row["last"]) for row in stored[:4]] == 2 * [(1.0, False), (1.0, True)]
