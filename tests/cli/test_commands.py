"""Every command with right input, as a user types it."""

import json
import re
import sys

import pytest
from running import command

import peer_rl as package


@pytest.fixture(scope="module")
def cartpole(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    short = ["--steps", 600, "--start-steps", 300, "--diagnose-every", 100]
    result = command(
        "train", "dqn", "--task", "gym/CartPole-v1", "--seed", 3, "--profile", "smoke", "--runs", runs, *short
    )
    assert result.returncode == 0, result.stderr
    return result, runs / "smoke/gym-CartPole-v1/dqn+diagnose-every100+start-steps300+steps600/seed3"


def test_train_says_where_the_run_is_and_the_run_is_there(cartpole):
    result, run = cartpole
    assert f"run: {run}" in result.stdout
    files = {path.name for path in run.iterdir()} - {".lock"}
    logs = {"metrics.jsonl", "eval.jsonl", "diagnostics.jsonl", "timing.jsonl"}
    assert files == logs | {"config.toml", "manifest.json", "status.json", "checkpoint"}
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["command"][:4] == ["peer-rl", "train", "dqn", "--task"]
    assert set(manifest["packages"]) >= {"peer-rl", "torch", "gymnasium"}
    assert json.loads((run / "status.json").read_text())["state"] == "finished"


def test_wall_clock_times_are_in_timing_alone(cartpole):
    _, run = cartpole
    for name in ("metrics", "eval", "diagnostics"):
        assert "second" not in (run / f"{name}.jsonl").read_text()
    assert "steps_per_second" in (run / "timing.jsonl").read_text()


def test_diagnostics_hold_what_the_docs_promise(cartpole):
    _, run = cartpole
    row = json.loads((run / "diagnostics.jsonl").read_text().splitlines()[-1])
    promised = {"drd", "cosine", "feature_norm", "effective_rank", "dormant_fraction", "bellman_gap", "gradient_ratio"}
    assert promised <= set(row)
    assert 0 < row["cosine"] <= 1
    assert row["gradient_ratio"] > 0


def test_eval_prints_and_writes_nothing(cartpole):
    _, run = cartpole
    before = sorted((p, p.stat().st_mtime_ns) for p in run.rglob("*"))
    result = command("eval", run, "--episodes", 3)
    assert result.returncode == 0, result.stderr
    assert "return " in result.stdout
    assert "600 steps = 600 frames" in result.stdout
    assert sorted((p, p.stat().st_mtime_ns) for p in run.rglob("*")) == before


def test_load_acts_on_one_observation_and_on_a_batch(cartpole):
    import gymnasium as gym
    import numpy as np

    _, run = cartpole
    policy = package.load(run)
    env = gym.make("CartPole-v1")
    obs, _ = env.reset(seed=0)
    action = policy.act(obs)
    assert env.action_space.contains(action)
    batch = policy.act(np.stack([obs, obs]))
    assert batch.tolist() == [action, action]
    with pytest.raises(ValueError, match="obs must have shape"):
        policy.act(np.zeros(5))
    with pytest.raises(ValueError, match="obs must be finite, but holds NaN"):
        policy.act(np.full(4, np.nan))


def test_dry_run_shows_every_setting_with_its_origin_and_writes_nothing(tmp_path):
    result = command("train", "dqn", "--task", "gridworld/paper", "--gamma", "0.9", "--dry-run", cwd=tmp_path)
    assert result.returncode == 0
    assert "runs/paper/gridworld-paper/dqn+gamma0.9/seed0" in result.stdout
    assert "PEER appendix, grid-world table" in result.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("rainbow", "--task", "atari/pong", "--regularizer", "beer", "--beta", "0.1"), "has no linear last layer"),
        (("dqn", "--task", "atari/pong", "--buffer-size", "1000000000", "--steps", "1000000000"), "needs 7082.00 GB"),
        (("dqn", "--task", "gym/CartPole-v1", "--encoder.kernels", "9", "4", "3"), "nothing to encode in a vector"),
    ],
)
def test_dry_run_refuses_what_training_would_refuse_and_shows_the_settings_all_the_same(tmp_path, words, problem):
    result = command("train", *words, "--dry-run", cwd=tmp_path)
    assert result.returncode == 2
    assert problem in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "--encoder.kernels" in result.stdout
    assert not list(tmp_path.iterdir())


def test_dry_run_reports_what_the_replay_grows_to(tmp_path):
    result = command("train", "dqn", "--task", "atari/pong", "--dry-run", cwd=tmp_path)
    assert result.returncode == 0
    assert result.stdout.endswith("the replay grows to 100000 frames of 1x84x84, 0.71 GB\n")
    assert not list(tmp_path.iterdir())


def test_frames_are_steps_times_action_repeat(tmp_path):
    result = command("train", "dqn", "--task", "gridworld/paper", "--frames", "300", "--dry-run", cwd=tmp_path)
    assert "dqn+steps300" in result.stdout


@pytest.mark.parametrize(
    ("what", "word"), [("agents", "dqn"), ("tasks", "gridworld/paper"), ("experiments", "gridworld")]
)
def test_list(what, word):
    result = command("list", what)
    assert result.returncode == 0
    assert word in result.stdout
    assert word in command("list").stdout


def test_doctor_finds_this_machine_healthy_and_names_the_fix_for_a_bad_place(tmp_path):
    result = command("doctor", "--runs", tmp_path)
    assert result.returncode == 0, result.stdout
    assert "everything that training needs is installed" in result.stdout
    for words in (
        "PyBullet's tasks: pybullet 3",
        "MuJoCo's tasks: mujoco 3",
        "DMControl's tasks: dm-control 1",
        "Atari's games: ale-py 0",
        "peer-rl watch: imageio-ffmpeg 0",
        "pygame 2",
        "peer-rl export --onnx: onnx 1",
        "MuJoCo can",
    ):
        assert words in result.stdout
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = command("doctor", "--runs", blocked / "runs")
    assert result.returncode == 2
    assert "fix: choose another place with --runs" in result.stdout


def test_doctor_names_the_line_that_brings_a_missing_extra(monkeypatch, capsys, tmp_path):
    from peer_rl.cli import doctor

    monkeypatch.setitem(sys.modules, "mujoco", None)
    monkeypatch.setitem(sys.modules, "wandb", None)
    monkeypatch.setitem(sys.modules, "cv2", None)
    monkeypatch.setitem(sys.modules, "pygame", None)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.main(["--runs", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "MuJoCo's tasks: mujoco not installed\n          fix: pip install 'peer-rl[mujoco]'" in said
    assert "Atari's games: cv2 not installed\n          fix: pip install 'peer-rl[atari]'" in said
    assert "Weights & Biases: wandb not installed\n          fix: pip install 'peer-rl[wandb]'" in said
    assert "peer-rl watch: pygame not installed\n          fix: pip install 'peer-rl[video]'" in said
    assert "peer-rl export --onnx: onnxruntime not installed\n          fix: pip install 'peer-rl[export]'" in said
    assert "no C++ compiler, which --compile needs\n          fix: apt-get install g++" in said


def test_list_reports_dimensions_and_where_they_differ_from_the_papers():
    rows = command("list", "tasks").stdout
    assert re.search(r"pybullet/ant +Four legs run; 28 observations, 8 actions\n", rows)
    assert re.search(r"atari/ms-pacman +MsPacman .*; 9 actions\n", rows)
    assert re.search(r"mujoco/ant +.*105 observations, 8 actions; the paper's has 111", rows)


def test_version_and_bare_command():
    assert package.__version__ in command("--version").stdout
    bare = command()
    assert bare.returncode == 2
    assert "usage" in bare.stdout
