"""Wrong input: one clear line, exit code 2, no traceback, nothing lost."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import command, leavings, peer_rl

from peer_rl.launch.api import train
from peer_rl.settings import configure
from peer_rl.training.checkpoint import Checkpoints

GRID = ["train", "dqn", "--task", "gridworld/paper"]


def complaint(*arguments: object, **keywords) -> str:
    result = command(*arguments, **keywords)
    assert result.returncode == 2, result
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trian"], "unknown command 'trian'; did you mean 'train'?"),
        (["train", "dqm", "--task", "gridworld/paper"], "unknown agent 'dqm'; did you mean 'dqn'?"),
        (["train", "--task", "gridworld/paper"], "name the agent first"),
        (["train", "dqn"], "name the task: peer-rl train dqn --task TASK"),
        (["train", "dqn", "--task"], "--task needs a value"),
        (
            ["train", "dqn", "--task", "gridworld/paperr"],
            "unknown task 'gridworld/paperr'; did you mean 'gridworld/paper'?",
        ),
        (["train", "dqn", "--task", "CartPole-v1"], "unknown task 'CartPole-v1'; did you mean 'gym/CartPole-v1'?"),
        (["train", "DQN", "--task", "gym/CartPole-v1"], "unknown agent 'DQN'; did you mean 'dqn'?"),
        (["xray", "a.zip", "--algo", "td3"], "peer-rl xray needs --env STR (A Gymnasium id: the environment"),
        ([*GRID, "--beta", "-1"], "beta must be 0 or above, and finite, but is -1"),
        ([*GRID, "--beta", "nan"], "beta must be 0 or above, and finite, but is nan"),
        ([*GRID, "--beta", "much"], "--beta takes FLOAT|{auto}, but was given 'much'"),
        ([*GRID, "--steps", "ten"], "--steps takes a whole number, but was given 'ten'"),
        ([*GRID, "--steps", "0"], "steps must be above 0, but is 0"),
        ([*GRID, "--steps", "5", "--episodes", "5"], "give one budget, not 2: --steps and --episodes"),
        ([*GRID, "--stepz", "5"], "did you mean --steps?"),
        ([*GRID, "--profile", "huge"], "unknown profile 'huge'; there are: paper, small, smoke"),
        ([*GRID, "--preset", "x"], "dqn has no preset 'x'"),
        ([*GRID, "--regularizer", "peeer", "--steps", "5"], "did you mean 'peer'"),
        ([*GRID, "--device", "tpu", "--steps", "5"], "unknown device 'tpu'"),
        ([*GRID, "--frames", "-4"], "frames must be above 0"),
        (["train", "dqn", "--task", "gym/CartPol-v1", "--steps", "5"], "cannot make task gym/CartPol-v1"),
        (["train", "dqn", "--task", "toy_envs:continuous", "--steps", "5"], "dqn needs discrete actions"),
        (
            ["train", "td3", "--task", "gym/CartPole-v1", "--steps", "5"],
            "but gym/CartPole-v1 has discrete ones; agents that fit: dqn, rainbow, ",
        ),
        (["train", "td3", "--task", "pybullet/hoper"], "did you mean"),
        (["train", "rainbow", "--task", "atari/pong", "--regularizer", "dr3"], "give --beta with --regularizer dr3"),
        (["train", "curl-rainbow", "--task", "atari/roadrunner"], "did you mean 'atari/road-runner'?"),
        (
            ["train", "redq", "--task", "mujoco/hopper", "--target-heads", "11"],
            "target_heads must be from 1 to heads, 10",
        ),
        (["train", "metd3", "--task", "mujoco/hopper", "--dropout", "1"], "dropout must be in [0, 1), but is 1.0"),
        (["train", "td3", "--task", "gym/Pendulum"], "names no version; did you mean gym/Pendulum-v1?"),
        (["train", "td3", "--task", "gym/Pendulum-v1", "--critic.layer-norm", "True"], "a switch takes no value"),
        (["train", "td3", "--task", "gym/Pendulum-v1", "--critic.layernorm"], "did you mean --critic.layer-norm?"),
        (["bench", "--rounds", "0"], "rounds must be above 0"),
        (["bench", "--agents", "ppo"], "or td3, but was given 'ppo'"),
        (
            ["train", "td3", "--task", "mujoco/ant", "--mujoco-version", "v3"],
            "--mujoco-version takes v4 or v5, but was given 'v3'",
        ),
        (["train", "dqn", "--task", "toy_envs:dict_observations", "--steps", "5"], "Dict observation space"),
        (["eval", "no/such/run"], "no/such/run is not a run directory"),
        (["eval"], "peer-rl eval --help"),
        (["reproduce", "gridwrld"], "unknown experiment 'gridwrld'; did you mean 'gridworld'?"),
        (["reproduce", "gridworld", "--seeds", "0"], "seeds must be above 0"),
        (["reproduce", "gridworld", "--betas", "-1"], "betas must be 0 or above"),
        (["list", "everything"], "everything"),
    ],
)
def test_one_line_and_exit_code_2(arguments, words, tmp_path):
    assert words in complaint(*arguments, cwd=tmp_path)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_process_of_its_own_ends_the_same_way_on_any_terminal(encoding, tmp_path):
    result = peer_rl(*GRID, "--beta", "much", cwd=tmp_path, PYTHONIOENCODING=encoding)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("peer-rl: --beta takes FLOAT|{auto}, but was given 'much' (see: ")
    assert len(result.stderr.splitlines()) == 1


def test_an_unwritable_run_directory(tmp_path):
    """A file where the folder should be stops root too, whom permissions do not."""
    (tmp_path / "runs").write_text("mine")
    said = complaint(*GRID, "--steps", "5", "--runs", tmp_path / "runs")
    assert "cannot write" in said
    assert "--runs" in said
    assert (tmp_path / "runs").read_text() == "mine"


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A finished run with two checkpoints."""
    runs = tmp_path_factory.mktemp("finished")
    result = command(*GRID, "--profile", "smoke", "--steps", "700", "--runs", runs, "--checkpoint-seconds", "0")
    assert result.returncode == 0, result.stderr
    return runs


def copy_of(finished: Path, tmp_path: Path) -> tuple[Path, Path]:
    runs = tmp_path / "runs"
    shutil.copytree(finished, runs)
    return runs, runs / "smoke/gridworld-paper/dqn+steps700/seed0"


def everything(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name != ".lock"}


@pytest.mark.parametrize("how", ["flipped", "pickle"])
def test_a_tampered_checkpoint_is_refused_and_nothing_is_lost(finished, tmp_path, how):
    runs, run = copy_of(finished, tmp_path)
    newest = run / "checkpoint" / f"{Checkpoints(run / 'checkpoint').steps()[-1]:012d}" / "agent.safetensors"
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content if how == "flipped" else b"\x80\x04\x95" + bytes(40))
    before = everything(run)
    again = [*GRID, "--profile", "smoke", "--steps", "700", "--runs", runs]
    words = "does not match its checksum" if how == "flipped" else "holds a pickle"
    for arguments in (again, ["eval", run]):
        said = complaint(*arguments)
        assert words in said
        assert "Delete that folder to continue from step" in said
        assert everything(run) == before
    shutil.rmtree(newest.parent)
    assert command(*again).returncode == 0
    assert leavings(run) == leavings(finished / run.relative_to(runs))


def test_a_finished_run_is_left_alone(finished, tmp_path):
    runs, run = copy_of(finished, tmp_path)
    before = everything(run)
    result = command(*GRID, "--profile", "smoke", "--steps", "700", "--runs", runs)
    assert result.returncode == 0
    assert "finished" in result.stdout
    assert everything(run) == before


def test_other_settings_are_refused_with_the_differences(finished, tmp_path):
    runs, run = copy_of(finished, tmp_path)
    before = everything(run)
    said = complaint(*GRID, "--profile", "smoke", "--steps", "700", "--runs", runs, "--threads", "2")
    assert "threads was 1 and is 2" in said
    assert everything(run) == before


def test_a_damaged_config_is_named(finished, tmp_path):
    runs, run = copy_of(finished, tmp_path)
    (run / "config.toml").write_text("agent = ")
    assert "config.toml is damaged" in complaint(*GRID, "--profile", "smoke", "--steps", "700", "--runs", runs)


def test_a_log_that_lost_lines_is_refused(finished, tmp_path):
    runs, run = copy_of(finished, tmp_path)
    (run / "eval.jsonl").write_bytes(b"")
    assert "lines are missing" in complaint(*GRID, "--profile", "smoke", "--steps", "700", "--runs", runs)


@pytest.mark.slow
def test_a_second_process_on_the_same_run(tmp_path):
    """The first one is long enough to be still at it, and continues undisturbed."""
    arguments = [*GRID, "--steps", "100000", "--runs", str(tmp_path), "--quiet"]
    first = subprocess.Popen([sys.executable, "-m", "peer_rl", *arguments])
    try:
        deadline = time.monotonic() + 60
        status = tmp_path / "paper/gridworld-paper/dqn+steps100000/seed0/status.json"
        while not status.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert "another process is writing" in complaint(*arguments)
        before = status.read_text()
        while status.read_text() == before:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert first.poll() is None
    finally:
        first.kill()
        first.wait()


def test_nan_stops_the_run_and_keeps_the_last_good_checkpoint(tmp_path):
    said = complaint(
        "train", "dqn", "--task", "toy_envs:nan_reward", "--steps", "2000", "--runs", tmp_path,
        "--checkpoint-seconds", "0", "--start-steps", "200", "--quiet",
    )  # fmt: skip
    assert "stopped at step 249: the environment gave the reward nan" in said
    assert "the last good checkpoint, at step 249, is kept" in said
    run = tmp_path / "paper/toy_envs-nan_reward/dqn+start-steps200+steps2000/seed0"
    assert command("eval", run).returncode == 0


def test_a_nan_observation_never_reaches_the_replay(tmp_path):
    said = complaint(
        "train", "dqn", "--task", "toy_envs:nan_observation", "--steps", "2000", "--runs", tmp_path, "--quiet"
    )
    assert "stopped at step 249: the environment gave an observation that is not finite" in said


@pytest.mark.parametrize("beta", ["0", "5e-4"])
def test_a_diverging_loss_stops_the_run(tmp_path, beta):
    said = complaint(
        "train", "dqn", "--task", "gridworld/paper", "--steps", "3000", "--runs", tmp_path, "--learning-rate", "1e30",
        "--checkpoint-seconds", "0", "--beta", beta, "--quiet",
    )  # fmt: skip
    assert "stopped at step" in said
    assert "is kept" in said


def test_weights_that_are_not_finite_are_never_saved(tmp_path):
    said = complaint(
        *GRID, "--steps", "1001", "--regularizer", "toy_envs:nan_gradient", "--quiet", "--runs", tmp_path,
        "--diagnose-every", "0", "--eval-every", "0",
    )  # fmt: skip
    assert "a weight became NaN or infinite; there is no checkpoint yet" in said
    assert not list(tmp_path.rglob("agent.safetensors"))


def test_a_regularizer_that_returns_no_scalar(tmp_path):
    said = complaint(
        *GRID, "--steps", "1100", "--regularizer", "toy_envs:vector_regularizer", "--quiet", "--runs", tmp_path
    )
    assert "vector_regularizer must return a scalar tensor, not shape (64,)" in said


def test_a_finished_run_without_its_checkpoint_is_not_cut(finished, tmp_path):
    runs, run = copy_of(finished, tmp_path)
    shutil.rmtree(run / "checkpoint")
    before = everything(run)
    assert "its checkpoint is gone" in complaint(*GRID, "--profile", "smoke", "--steps", "700", "--runs", runs)
    assert everything(run) == before


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{}", "does not describe the run's observations and actions"),
        ('{"spec": {"actions": 4}}', "does not describe the run's observations and actions"),
        ("[]", "is damaged: it holds no JSON object"),
    ],
)
def test_a_foreign_manifest_is_refused_by_eval(finished, tmp_path, content, reason):
    _, run = copy_of(finished, tmp_path)
    (run / "manifest.json").write_text(content)
    (run / "status.json").unlink()  # which holds the manifest's checksum
    assert f"manifest.json {reason}" in complaint("eval", run)


def test_files_where_folders_should_be(finished, tmp_path):
    _, run = copy_of(finished, tmp_path)
    assert "is not a run directory" in complaint("eval", run / "config.toml")
    (tmp_path / "file").write_text("mine")
    said = complaint("reproduce", "gridworld", "--profile", "smoke", "--runs", tmp_path / "file", cwd=tmp_path)
    assert "file" in said


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on a file's size")
def test_a_file_that_may_not_grow_loses_nothing(tmp_path):
    """As a full disk, but without root: 120 kB are enough for the replay's segment of some 600 steps."""
    import resource

    limit = (120 << 10, 120 << 10)

    words = [*GRID, "--encoding", "one-hot", "--steps", "1200", "--quiet", "--checkpoint-seconds", "0", "--runs"]
    limited = subprocess.run(
        [sys.executable, "-m", "peer_rl", *words, str(tmp_path / "limited")],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )
    assert limited.returncode == 2, limited
    assert len(limited.stderr.strip().splitlines()) == 1, limited.stderr
    assert "may not grow any more" in limited.stderr
    (run,) = tmp_path.glob("limited/paper/gridworld-paper/*/seed0")
    kept = Checkpoints(run / "checkpoint").load().step
    assert 400 < kept < 800
    assert f"resumes from the checkpoint at step {kept}\n" in limited.stderr
    assert command(*words, tmp_path / "limited").returncode == 0
    assert leavings(run) == leavings(
        train(configure("dqn", "gridworld/paper", steps=1200, encoding="one-hot"), runs=tmp_path / "roomy")
    )


@pytest.mark.slow
def test_a_full_disk_loses_nothing(small_disk, tmp_path):
    """A disk of 400 kB fills up during training; with room again, the run ends as if nothing had happened."""
    disk = small_disk("400k")
    words = [*GRID, "--steps", "3000", "--quiet", "--checkpoint-seconds", "0.1", "--runs"]
    said = complaint(*words, disk)
    kept = Checkpoints(disk / "paper/gridworld-paper/dqn+steps3000/seed0/checkpoint").load().step
    assert "the disk is full" in said
    assert said.endswith(f"resumes from the checkpoint at step {kept}")
    subprocess.run(["mount", "-o", "remount,size=50m", disk], check=True)
    assert command(*words, disk).returncode == 0
    assert command(*words, tmp_path / "roomy").returncode == 0
    run = "paper/gridworld-paper/dqn+steps3000/seed0"
    assert leavings(disk / run) == leavings(tmp_path / "roomy" / run)
