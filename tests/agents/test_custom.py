"""An agent of the user's own, the one on docs/your-own-agent.md, keeps the laws of ours."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from running import final, interrupted_at, leavings, peer_rl, weights

from peer_rl.agents.custom import build
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.launch.api import load, train
from peer_rl.plugin import PEER
from peer_rl.report.runs import find_runs, group_runs
from peer_rl.rng import Stream
from peer_rl.settings import configure
from peer_rl.settings.custom import CustomConfig
from peer_rl.training.files import read_json_lines
from peer_rl.training.rundir import read_config
from peer_rl.training.trees import pack

PAGE = Path(__file__).parents[2] / "docs" / "your-own-agent.md"
NAME = "agent_of_the_page:DoubleDQN"
TINY = {
    "steps": 500,
    "start_steps": 100,
    "batch_size": 16,
    "eval_every": 250,
    "eval_episodes": 2,
    "diagnose_every": 100,
    "log_every": 50,
    "options": ("hidden=16",),
}


@pytest.fixture(autouse=True)
def module(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("own")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 70
    (folder / "agent_of_the_page.py").write_text(code)
    monkeypatch.syspath_prepend(folder)
    yield folder
    sys.modules.pop("agent_of_the_page", None)


def config(**changes):
    return configure(NAME, "gym/CartPole-v1", **{**TINY, **changes})


def test_it_trains_resumes_and_observers_are_inert(tmp_path):
    whole = train(config(), runs=tmp_path / "whole")
    rows = read_json_lines(whole / "diagnostics.jsonl")
    assert rows[-1]["gradient_ratio"] > 0
    assert [row["step"] for row in read_json_lines(whole / "eval.jsonl")] == [250, 500]
    for step in (150, 333):
        with interrupted_at(step):
            train(config(), runs=tmp_path / "broken", checkpoint_seconds=0.0)
    assert leavings(train(config(), runs=tmp_path / "broken", checkpoint_seconds=0.0)) == leavings(whole)
    quiet = train(config(eval_every=0, diagnose_every=0), runs=tmp_path / "quiet")
    assert weights(quiet) == weights(whole)
    assert weights(train(config(seed=1), runs=tmp_path / "seed")) != weights(whole)


def test_beta_0_is_paired_with_beta(tmp_path):
    plain, peer = (train(config(beta=beta), runs=tmp_path) for beta in (0, 0.05))
    assert weights(plain) != weights(peer)
    streams = [pack(final(path).components["loop"]["streams"]) for path in (plain, peer)]
    assert streams[0] == streams[1]
    groups = group_runs(find_runs([tmp_path]))
    assert [group.label.partition(",")[0] for group in groups] == ["DoubleDQN (beta = 0)", "PEER (beta = 0.05)"]
    assert groups[1].backbone == groups[0].key
    policy = load(peer)
    assert policy.act(np.zeros(4, np.float32)) in (0, 1)


def test_a_report_reads_the_run_without_importing_the_agent(tmp_path, monkeypatch):
    path = train(config(), runs=tmp_path)
    sys.modules.pop("agent_of_the_page")
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if "own" not in folder])
    assert read_config(path).settings.options == ("hidden=16",)
    assert find_runs([tmp_path])[0].usable
    assert "agent_of_the_page" not in sys.modules


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("hiden=3",), "did you mean 'hidden'"),
        (("hidden=wide",), "option hidden"),
        (("hidden",), "NAME=VALUE"),
        (("hidden=3", "hidden=4"), "twice"),
    ],
)
def test_wrong_options_are_one_sentence(options, words):
    with pytest.raises(ConfigError, match=words):
        made(NAME, options)


def test_what_is_no_agent_is_refused(module):
    (module / "no_agent.py").write_text("class Half:\n    def act(self): pass\n")
    with pytest.raises(ConfigError, match="temporal_difference"):
        made("no_agent:Half", ())
    with pytest.raises(ConfigError, match="cannot load"):
        made("no_agent:Whole", ())


def made(name: str, options: tuple[str, ...]):
    device = torch.device("cpu")
    spec = EnvSpec((4,), "float32", actions=2)
    stream = Stream(0, "initialise", device=device)
    return build(name, CustomConfig(options), spec, regularizer=PEER(), rng=stream, device=device)


def test_options_have_the_types_of_their_defaults():
    agent = made(NAME, ("hidden=8", "epsilon=1"))
    assert agent.critic.head.in_features == 8
    assert agent.epsilon == 1.0
    assert type(agent.epsilon) is float


def test_the_command_line(tmp_path, module):
    words = ["--steps", 300, "--start-steps", 50, "--eval-every", 0, "--options", "hidden=8", "--quiet"]
    task = ["--task", "gym/CartPole-v1", "--runs", tmp_path]
    result = peer_rl("train", NAME, *task, *words, PYTHONPATH=f"{module}:{':'.join(filter(None, sys.path))}")
    assert result.returncode == 0, result.stderr
    (path,) = tmp_path.rglob("status.json")
    assert path.parts[-3] == "agent_of_the_page-DoubleDQN+eval-every0+hidden8+start-steps50+steps300"
