"""TensorBoard and W&B show what the logs hold, and change nothing."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from running import interrupted, interrupted_at, leavings, peer_rl, tiny_config, weights

from peer_rl.cli.train import main, read_options
from peer_rl.errors import ConfigError
from peer_rl.launch.api import train
from peer_rl.training.files import read_json_lines
from peer_rl.training.loggers import TensorBoard, WandB, scalars
from peer_rl.training.loop import Trainer
from peer_rl.training.rundir import LOGS

Points = dict[str, list[tuple[int, float]]]
GRID = ["train", "dqn", "--task", "gridworld/paper", "--profile", "smoke", "--steps", "700"]


def shown(run: Path) -> Points:
    """Every point that TensorBoard shows."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def logged(run: Path) -> Points:
    """The same points from the JSON lines: float32, as TensorBoard keeps them."""
    points: Points = {}
    frames: dict[int, int] = {}
    for log in LOGS:
        for row in read_json_lines(run / f"{log}.jsonl"):
            step = row.pop("step")
            frames[step] = row.pop("frame")
            del row["episode"]
            for name, value in row.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    points.setdefault(f"{log}/{name}", []).append((step, float(np.float32(value))))
    return points | {"frame": [(step, float(frame)) for step, frame in sorted(frames.items())]}


def test_tensorboard_shows_what_the_logs_hold(tmp_path):
    run = train(tiny_config("dqn"), runs=tmp_path, mirrors=[TensorBoard()])
    points = shown(run)
    assert points == logged(run)
    assert {"metrics/return", "metrics/td_loss", "eval/mean", "diagnostics/cosine"} <= set(points)
    assert [step for step, _ in points["eval/mean"]] == [100, 200, 300]


def test_a_mirror_changes_no_bit_of_a_run(tmp_path):
    plain = train(tiny_config("dqn"), runs=tmp_path / "plain")
    mirrored = train(tiny_config("dqn"), runs=tmp_path / "mirrored", mirrors=[TensorBoard()])
    assert leavings(mirrored) == leavings(plain)


@pytest.mark.parametrize("crash_at", [50, 125, 299])
def test_after_a_resume_no_point_is_missing_or_doubled(tmp_path, crash_at):
    """Even those that a killed run never wrote out, or wrote out after its last checkpoint."""
    keywords = {"runs": tmp_path, "checkpoint_seconds": 0.0 if crash_at > 100 else 60.0}
    mirror = TensorBoard()
    with interrupted(Trainer, "learn", lambda trainer: trainer.step == crash_at and mirror.flush() is None):
        train(tiny_config("dqn"), **keywords, mirrors=[mirror])
    run = train(tiny_config("dqn"), **keywords, mirrors=[TensorBoard()])
    assert len(list((run / "tensorboard").iterdir())) == 2
    assert shown(run) == logged(run)


class Lazy:
    """A mirror that writes rows out only when flushed, and takes back what comes again."""

    def __init__(self) -> None:
        self.kept, self.pending = [], []

    def open(self, run, config, step):
        self.pending = []
        self.kept = [(log, row) for log, row in self.kept if row["step"] <= step]

    def write(self, log, row):
        self.pending.append((log, row))

    def flush(self):
        self.kept, self.pending = self.kept + self.pending, []

    def close(self, *, failed):
        if not failed:
            self.flush()


def test_a_kill_loses_no_row_that_a_checkpoint_counts_as_written(tmp_path):
    mirror = Lazy()
    with interrupted_at(200):
        train(tiny_config("dqn"), runs=tmp_path, checkpoint_seconds=0.0, mirrors=[mirror])
    assert mirror.kept
    run = train(tiny_config("dqn"), runs=tmp_path, mirrors=[mirror])
    for name in LOGS:
        assert [row for log, row in mirror.kept if log == name] == read_json_lines(run / f"{name}.jsonl")


def test_a_finished_run_gets_no_new_event_file(tmp_path):
    for _ in range(2):
        run = train(tiny_config("dqn"), runs=tmp_path, mirrors=[TensorBoard()])
    assert len(list((run / "tensorboard").iterdir())) == 1


def test_numbers_that_do_not_exist_are_left_out():
    row = {"step": 3, "frame": 12, "episode": 1, "mean": 2, "drd": None, "q": math.nan, "returns": [1.0], "word": "x"}
    assert scalars("eval", {**row, "final": True}) == {"eval/mean": 2}


@pytest.mark.parametrize("package", ["tensorboard", "wandb"])
def test_a_missing_package_is_reported_before_anything_is_written(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=rf"pip install 'peer-rl\[{package}\]'"):
        main([*GRID[1:], f"--{package}"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "project"),
    [
        ([], None),
        (["--wandb"], "peer-rl"),
        (["--wandb", "mine"], "mine"),
        (["--wandb=mine"], "mine"),
        (["--wandb", "--quiet"], "peer-rl"),
    ],
)
def test_a_wandb_project_may_be_left_out(words, project):
    options, _ = read_options([*GRID[1:], *words])
    assert options.wandb == project
    assert options.run == read_options(GRID[1:])[0].run, "mirrors are no part of a run's config"


@pytest.mark.slow
def test_wandb_offline_leaves_a_run_for_wandb_to_sync(tmp_path):
    result = peer_rl(*GRID, "--wandb", "--quiet", "--runs", tmp_path, WANDB_MODE="offline", WANDB_SILENT="true")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    run = tmp_path / "smoke/gridworld-paper/dqn+steps700/seed0"
    (record,) = (run / "wandb").glob("offline-run-*/run-*.wandb")
    content = record.read_bytes()
    for written in (b"eval/mean", b"metrics/td_loss", b"diagnostics/cosine", b"learning.gamma", b"gridworld/paper"):
        assert written in content
    assert weights(run) == weights(train(read_options(GRID[1:])[0].run, runs=tmp_path / "plain"))


class Unreachable:
    """In W&B's place: breaks at ``init`` or at the third row."""

    step = 0

    def __init__(self, breaks: str) -> None:
        self.breaks, self.rows = breaks, 0

    def init(self, **keywords):
        if self.breaks == "init":
            raise ConnectionError("no route\nto host")
        return self

    def Settings(self, **keywords):
        return None

    def log(self, values, step):
        self.rows += 1
        if self.rows == 3:
            raise ConnectionError("no route\nto host")


@pytest.mark.parametrize("breaks", ["init", "log"])
def test_a_service_that_cannot_be_reached_costs_one_line_and_not_the_run(tmp_path, monkeypatch, capsys, breaks):
    mirror = WandB()
    monkeypatch.setitem(sys.modules, "wandb", Unreachable(breaks))
    run = train(tiny_config("dqn"), runs=tmp_path, mirrors=[mirror])
    assert capsys.readouterr().err == "peer-rl: W&B cannot be used (no route to host); training continues without it\n"
    assert '"finished"' in (run / "status.json").read_text()
    assert sys.modules["wandb"].rows == (3 if breaks == "log" else 0)


class Recorder(Unreachable):
    """In W&B's place: remembers its options."""

    def __init__(self, step: int) -> None:
        super().__init__("never")
        self.step, self.options, self.steps, self.code = step, {}, [], None

    def init(self, **keywords):
        self.options = keywords
        return self

    def log(self, values, step):
        self.steps.append(step)

    def finish(self, exit_code):
        self.code = exit_code


def test_a_resumed_wandb_run_is_the_same_run_and_gets_no_row_twice(tmp_path, monkeypatch):
    """W&B knows steps up to 150 from before the kill; the run continues from an earlier checkpoint."""
    mirror = WandB("mine")
    seen = []
    for known in (0, 150):
        monkeypatch.setitem(sys.modules, "wandb", Recorder(known))
        seen.append(sys.modules["wandb"])
        run = train(tiny_config("dqn"), runs=tmp_path, mirrors=[mirror])
        for path in sorted(run.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    first, second = seen
    assert first.options["id"] == second.options["id"]
    assert first.options["resume"] == "allow"
    assert first.options["project"] == "mine"
    assert first.options["config"]["learning.gamma"] == tiny_config("dqn").learning.gamma
    assert min(first.steps) < 150 <= min(second.steps)
    assert [step for step in first.steps if step >= 150] == second.steps
    assert first.code == second.code == 0
    monkeypatch.setitem(sys.modules, "wandb", Recorder(0))
    other = sys.modules["wandb"]
    train(tiny_config("dqn", seed=1), runs=tmp_path, mirrors=[mirror])
    assert other.options["id"] != first.options["id"]
