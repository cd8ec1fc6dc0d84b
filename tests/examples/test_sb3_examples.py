"""The examples for Stable-Baselines3 run, with few steps, as a user starts them."""

import runpy
import sys
from pathlib import Path

import gymnasium as gym
import pytest
from sb3_models import OURS, STOCK, assert_same_bits, tiny

EXAMPLES = Path(__file__).parents[2] / "examples"


def main_of(name: str, arguments: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the example in this process, which spares a second import of everything."""
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


@pytest.mark.parametrize("task", ["CartPole-v1", "Pendulum-v1"])
def test_drop_in(task, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    steps = 600 if task == "CartPole-v1" else 120
    main_of("sb3_drop_in.py", ["--task", task, "--steps", steps], monkeypatch)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("beta ")]
    assert [line.split(":")[0] for line in lines] == ["beta 0", "beta 0.0005"]
    assert all("cosine" in line for line in lines)
    assert {path.name for path in (tmp_path / "runs" / "sb3").iterdir()} == {f"{task}-beta0_1", f"{task}-beta0.0005_1"}


def test_drop_in_is_short():
    assert len((EXAMPLES / "sb3_drop_in.py").read_text().splitlines()) < 60


@pytest.mark.parametrize(
    ("kind", "algorithm", "env"),
    [
        (OURS["TD3"], "TD3", "Pendulum-v1"),
        (STOCK["DQN"], "DQN", "CartPole-v1"),
        (STOCK["QRDQN"], "QRDQN", "CartPole-v1"),
    ],
    ids=["ours", "DQN", "distributional"],
)
def test_diagnose(kind, algorithm, env, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tiny(kind, env).save(tmp_path / "model.zip")
    before = (tmp_path / "model.zip").read_bytes()
    arguments = ["model.zip", "--algorithm", algorithm, "--env", env, "--steps", 100, "--rows", 64]
    main_of("diagnose_a_trained_agent.py", arguments, monkeypatch)
    printed = capsys.readouterr().out
    assert "cosine" in printed
    assert ("nan" in printed.splitlines()[0]) == (algorithm == "QRDQN")  # drd
    assert (tmp_path / "representation.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "model.zip").read_bytes() == before


def test_diagnose_leaves_the_agent_as_it_was(tmp_path):
    roll_out = runpy.run_path(str(EXAMPLES / "diagnose_a_trained_agent.py"))["roll_out"]
    for name, env in (("DQN", "CartPole-v1"), ("TD3", "Pendulum-v1")):
        saved = tiny(STOCK[name], env, **({"target_update_interval": 5} if name == "DQN" else {})).learn(60)
        saved.save(tmp_path / "model.zip")
        rolled = roll_out(tmp_path / "model.zip", name, gym.make(env), 100, 0)
        assert rolled.replay_buffer.size() == 100
        assert_same_bits(rolled, saved)
