"""Exported policies: the same actions as the run's, for every agent whose action depends on the observation alone."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from running import command

from peer_rl.errors import RunError
from peer_rl.launch import export as exporting
from peer_rl.launch.api import load, train
from peer_rl.launch.export import FORMATS, export, random_observations, without_random_actions
from peer_rl.settings import AGENTS, configure

WITHOUT = {name for name in AGENTS if re.match("td-mpc|planet|dreamer", name)}
EXPORTED = sorted(set(AGENTS) - WITHOUT)
pytestmark = pytest.mark.filterwarnings("ignore:phi has negative entries")


def torchscript(path: Path):
    module = torch.jit.load(path)
    return lambda observations: module(torch.from_numpy(observations)).numpy()


def in_onnxruntime(path: Path):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda observations: session.run(None, {"observation": observations})[0]


READERS = {"torchscript": torchscript, "onnx": in_onnxruntime}


def random_rows(spec, rows: int) -> np.ndarray:
    """Other observations than those that the export itself checks."""
    return random_observations(spec, 2 * exporting.CHECKED + rows)[-rows:]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("agent", EXPORTED)
def test_the_file_gives_the_policys_actions(agent, kind, shared_run, tmp_path):
    policy = load(shared_run(agent), "cpu")
    act = READERS[kind](export(policy, kind, tmp_path / "policy"))
    with without_random_actions(policy):
        for rows in (1, 3, 40):
            observations = random_rows(policy.spec, rows)
            expected, found = policy.act(observations), act(observations)
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(found, expected, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("agent", sorted(WITHOUT))
def test_what_cannot_be_exported_says_why_in_one_sentence(agent, shared_run):
    result = command("export", shared_run(agent), "--onnx")
    assert (result.returncode, result.stdout) == (2, "")
    reason = "acts on a memory of the whole episode" if "dreamer" in agent else "plans anew at every step"
    assert result.stderr == (
        f"peer-rl: {agent} {reason}, so its policy cannot be exported; use it from Python with peer_rl.load\n"
    )


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("task", "agent", "encoding"),
    [
        ("gridworld/paper", "dqn", "integer"),
        ("gridworld/paper", "dqn", "one-hot"),
        ("toy_envs:choice_from_five", "dqn", None),
        ("toy_envs:reach", "td3", None),
    ],
)
def test_observations_and_actions_are_the_environments(task, agent, encoding, kind, tmp_path):
    few = {"steps": 60, "start_steps": 50, "batch_size": 8, "eval_every": 0}
    chosen = {"encoding": encoding} if encoding else {}
    policy = load(train(configure(agent, task, **few, **chosen), runs=tmp_path), "cpu")
    path = export(policy, kind)
    assert path == policy.path / "export" / f"policy{FORMATS[kind].suffix}"
    act, env = READERS[kind](path), policy.make_env()
    observation, _ = env.reset(seed=0)
    for _ in range(5):
        action = act(np.asarray(observation)[None])[0]
        np.testing.assert_allclose(action, policy.act(observation), rtol=1e-5)
        assert env.action_space.contains(action)
        observation, *_ = env.step(action)
    env.close()


def test_the_command_reports_shapes_and_writes_what_the_file_is(shared_run, tmp_path):
    run = shared_run("dqn")
    result = command("export", run, "--onnx", "--out", tmp_path / "new" / "dqn.onnx")
    assert result.returncode == 0, result.stderr
    assert (result.stderr, result.stdout.splitlines()[1:3]) == (
        "",
        ["observation: batch, int64", "action: batch, int64"],
    )
    about = {row.key: row.value for row in onnx.load(tmp_path / "new" / "dqn.onnx").metadata_props}
    assert (about["agent"], about["task"], about["step"], about["beta"]) == ("dqn", "gridworld/paper", "300", "0.0005")
    extra = {"peer-rl.json": ""}
    with pytest.warns(DeprecationWarning, match=r"torch\.jit"):
        torch.jit.load(export(load(run), "torchscript", tmp_path / "dqn.pt"), _extra_files=extra)
    assert json.loads(extra["peer-rl.json"]) == about


def test_what_is_wrong_is_one_line(shared_run, tmp_path, monkeypatch):
    run = shared_run("dqn")
    (tmp_path / "link").symlink_to(tmp_path)
    for words, said in (
        ([run], "choose one format: --onnx or --torchscript"),
        ([run, "--onnx", "--torchscript"], "choose one format"),
        ([tmp_path / "nothing", "--onnx"], "is not a run directory"),
        ([run, "--torchscript", "--out", tmp_path], "Is a directory"),
    ):
        result = command("export", *words)
        assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
        assert said in result.stderr
    monkeypatch.setattr(exporting, "absent", lambda names: list(names))
    result = command("export", run, "--onnx")
    assert result.stderr == (
        "peer-rl: --onnx needs onnx and onnxscript and onnxruntime; install with: pip install 'peer-rl[export]'\n"
    )


def test_a_file_that_disagrees_is_never_written(shared_run, tmp_path, monkeypatch):
    policy = load(shared_run("td3"), "cpu")
    right = FORMATS["torchscript"]
    wrong = replace(right, read=lambda content: lambda observations: right.read(content)(observations) + 0.01)
    monkeypatch.setitem(FORMATS, "torchscript", wrong)
    with pytest.raises(RunError, match=r"nothing was written: torch\.jit does not give the actions of the policy"):
        export(policy, "torchscript", tmp_path / "policy.pt")
    assert not list(tmp_path.iterdir())
