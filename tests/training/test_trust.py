"""A run directory may come from anybody: training never follows a link, and believes no log that was changed."""

import os
import shutil

import pytest
from running import leavings, tiny_config, tiny_run

from peer_rl.errors import CheckpointError, PeerError, RunError
from peer_rl.launch.api import train
from peer_rl.report.runs import read_run
from peer_rl.training.checkpoint import Checkpoints
from peer_rl.training.rundir import LOGS, RunDirectory, read_config, read_status, run_path

SHORT = {"steps": 300, "learning.start_steps": 100, "protocol.eval_every": 100}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run."""
    return tiny_run("dqn", tmp_path_factory.mktemp("whole"), checkpoint_seconds=0.0, **SHORT)


@pytest.fixture
def run(whole, tmp_path):
    """A copy of it that a test may damage."""
    path = run_path(tiny_config("dqn", **SHORT), tmp_path / "runs")
    shutil.copytree(whole, path)
    return path


def again(path):
    return train(tiny_config("dqn", **SHORT), runs=path.parents[3])


def unfinish(path):
    """As if the run had been killed after its last checkpoint but one."""
    shutil.rmtree(path / "checkpoint" / f"{Checkpoints(path / 'checkpoint').steps()[-1]:012d}")
    (path / "status.json").unlink()


NAMES = ["config.toml", "manifest.json", "status.json", "eval.jsonl", "timing.jsonl", ".status.json.new", ".lock"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_behind_a_link_stays_as_it_was(run, tmp_path, name):
    outside = tmp_path / "outside"
    outside.write_bytes((run / name).read_bytes() if (run / name).exists() else b"precious")
    before = outside.read_bytes()
    unfinish(run)
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(outside)
    with pytest.raises(RunError, match=name):
        again(run)
    assert outside.read_bytes() == before
    assert outside.exists()


@pytest.mark.parametrize("name", ["eval.jsonl", ".status.json.new"])
def test_a_file_with_a_second_name_outside_stays_as_it_was(run, tmp_path, name):
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    unfinish(run)
    (run / name).unlink(missing_ok=True)
    os.link(outside, run / name)
    with pytest.raises(RunError):
        again(run)
    assert outside.read_bytes() == b"precious"


@pytest.mark.parametrize("name", ["checkpoint", "checkpoint/replay"])
def test_nothing_in_a_linked_folder_is_deleted(run, tmp_path, name):
    unfinish(run)
    outside = tmp_path / "outside"
    (run / name).rename(outside)
    for stray in (".000000000007.new", "000000000001"):
        (outside / stray).mkdir()
    (outside / "precious.safetensors").write_bytes(b"precious")
    before = sorted(path.name for path in outside.iterdir())
    (run / name).symlink_to(outside)
    with pytest.raises((RunError, CheckpointError)):
        again(run)
    assert sorted(path.name for path in outside.iterdir()) == before


def test_foreign_files_among_the_checkpoints_stay(run):
    unfinish(run)
    for place in ("checkpoint/replay/mine.safetensors", "checkpoint/.mine.new/note", "checkpoint/²/note"):
        (run / place).parent.mkdir(exist_ok=True)
        (run / place).write_text("mine")
    again(run)
    assert (run / "checkpoint/replay/mine.safetensors").read_text() == "mine"
    assert (run / "checkpoint/.mine.new/note").read_text() == "mine"
    assert (run / "checkpoint/²/note").read_text() == "mine"


@pytest.mark.parametrize("name", ["manifest.json", "eval.jsonl", "status.json", "config.toml"])
def test_a_pipe_stops_nobody(run, name):
    """Opening a pipe for reading waits for a writer, for ever."""
    (run / name).unlink()
    os.mkfifo(run / name)
    with pytest.raises(RunError, match=name):
        again(run)
    assert name in read_run(run).problem


@pytest.mark.parametrize("log", LOGS)
def test_a_changed_digit_before_the_checkpoint_is_noticed_on_resume(run, log):
    unfinish(run)
    change_a_digit(run / f"{log}.jsonl")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != ".lock"}
    with pytest.raises(RunError, match=rf"{log}\.jsonl was changed"):
        again(run)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("log", [*LOGS, "timing"])
@pytest.mark.parametrize("harm", ["change", "shorten", "repeat", "delete"])
def test_a_finished_run_with_a_damaged_log_is_reported_as_damaged(run, log, harm):
    assert read_run(run).usable
    path = run / f"{log}.jsonl"
    if harm == "change":
        change_a_digit(path)
    elif harm == "shorten":
        path.write_bytes(path.read_bytes()[:-3])
    elif harm == "repeat":
        path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[-1])
    else:
        path.unlink()
    record = read_run(run)
    assert not record.usable
    assert log in record.problem


@pytest.mark.parametrize("name", ["config.toml", "manifest.json", "status.json"])
def test_settings_manifest_and_status_of_a_finished_run_are_believed_only_as_written(run, name):
    change_a_digit(run / name)
    record = read_run(run)
    assert record.problem
    assert not record.usable
    with pytest.raises(PeerError):
        again(run)


def test_a_manifest_changed_before_the_run_ends_stops_its_resume(run):
    status = read_status(run)
    unfinish(run)
    with RunDirectory(run, read_config(run)) as directory:
        directory.write_status("running", step=status["step"])
    (run / "manifest.json").write_text((run / "manifest.json").read_text().replace("gymnasium", "gymnasion"))
    with pytest.raises(RunError, match=r"manifest\.json was changed"):
        again(run)


def test_the_last_return_outlives_a_kill_before_the_last_status(run):
    last = read_status(run)["last_return"]
    (run / "status.json").unlink()
    again(run)
    assert read_status(run)["last_return"] == last is not None


def change_a_digit(path):
    content = bytearray(path.read_bytes())
    at = next(index for index in range(len(content) // 3, len(content)) if content[index : index + 1].isdigit())
    content[at] = ord("1") if content[at] != ord("1") else ord("2")
    path.write_bytes(content)


def test_deep_lines_of_wall_clock_times_are_left_out(run):
    status = read_status(run)
    with RunDirectory(run, read_config(run)) as directory:
        directory.write_status("stopped", step=status["step"])
    (run / "timing.jsonl").write_bytes(b"[" * 100_000 + b"\n")
    assert read_run(run).rows["timing"] == []


def test_a_run_resumed_after_such_checks_ends_as_if_undisturbed(run, whole):
    unfinish(run)
    again(run)
    assert leavings(run) == leavings(whole)
    assert read_run(run).usable


def test_a_run_whose_lock_was_deleted_writes_no_checkpoint(tmp_path):
    config = tiny_config("dqn", **SHORT)
    path = run_path(config, tmp_path)
    with RunDirectory(path, config) as run:
        run.check_lock()
        (path / ".lock").unlink()
        with pytest.raises(RunError, match="lock"):
            run.check_lock()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("status.json", b"[" * 100_000),
        ("manifest.json", b'{"schema": ' + b"[" * 100_000),
        ("manifest.json", b'{"schema": 1' + b"0" * 5_000 + b"}"),
        ("config.toml", b"a = " + b"[" * 100_000),
        ("eval.jsonl", b'{"mean": ' + b"[" * 100_000 + b"\n"),
        ("status.json", b'{"state": "finished", "logs": {"eval": {"length": "many"}}}'),
        ("status.json", b'{"state": "finished", "logs": 3}'),
        ("status.json", b'{"state": "finished", "step": 1' + b"0" * 400 + b"}"),
        ("eval.jsonl", b'{"mean": 1' + b"0" * 400 + b"}\n"),
    ],
)
def test_a_crafted_file_is_one_sentence(run, name, content):
    (run / name).write_bytes(content)
    record = read_run(run)
    assert not record.usable
    assert name in record.problem
    assert "\n" not in record.problem


@pytest.mark.parametrize(
    ("old", "new"), [("beta = 0.0005", "beta = 1"), ("seed = 0", "seed = 1"), ("steps = 300", "steps = 1")]
)
def test_a_number_without_end_in_the_config_is_one_sentence(run, old, new):
    text = (run / "config.toml").read_text()
    assert old in text
    (run / "config.toml").write_text(text.replace(old, new + "0" * 400))
    assert not read_run(run).usable
