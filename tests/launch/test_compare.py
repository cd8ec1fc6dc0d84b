"""peer-rl compare: its numbers by hand from the logs, beta 0 bit for bit, and a comparison that was killed."""

import csv
import html
import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from running import final, peer_rl, surroundings
from sb3_models import OURS, STOCK, tiny

from peer_rl.errors import PeerError
from peer_rl.launch.compare import Plan, jobs_of, report, run_in_process
from peer_rl.report.compare import effects, sentence
from peer_rl.report.runs import find_runs, group_runs
from peer_rl.sb3.layer_norm import LayerNormReLU, layer_norm_kwargs, normalise_critic
from peer_rl.training.files import read_json_lines
from peer_rl.training.script_loader import load_script

FUNCTION = """
    import numpy as np

    def train(seed, beta, log):
        rng = np.random.default_rng(seed)
        for step in range(10, 201, 10):
            log(step=step, return_=rng.normal() + 4000 * beta * rng.random(), loss=np.float32(0.5), cosine=0.9)
"""
MODEL = """
    from sb3_models import OURS, tiny

    def make(seed, beta, regularizer="peer"):
        return tiny(OURS["{kind}"], beta=beta, regularizer=regularizer, seed=seed)
"""
SHORT = {"evaluations": 2, "eval_episodes": 2, "final_episodes": 3, "diagnoses": 2}


def script_in(folder: Path, text: str, name: str = "train") -> str:
    file = folder / f"script_{abs(hash((folder, text))):x}.py"
    file.write_text(textwrap.dedent(text))
    return f"{file}:{name}"


def run_all(spec: str, plan: Plan, runs: Path):
    """What the workers do, one after the other in this process."""
    script = load_script(spec)
    return [run_in_process(script, config, runs) for config in plan.configs(script)]


def table_of(folder: Path) -> dict[str, dict[str, str]]:
    with (folder / "table.csv").open(newline="") as file:
        return {row["variant"]: row for row in csv.DictReader(file)}


# -- the numbers -------------------------------------------------------------------------------------------------------


def test_the_numbers_are_those_computed_by_hand_from_the_logs(tmp_path):
    spec = script_in(tmp_path, FUNCTION)
    plan = Plan(seeds=range(7), steps=200)
    run_all(spec, plan, tmp_path / "runs")
    report(load_script(spec), plan, tmp_path / "runs", tmp_path / "out")
    score = {}
    for path in (tmp_path / "runs").rglob("eval.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert len(lines) == 20
        score[path.parts[-3], int(path.parts[-2][4:])] = np.mean([line["mean"] for line in lines[-10:]])
    plain, peer = sorted({name for name, _ in score}, key=lambda name: "beta0" not in name)
    differences = np.array([score[peer, seed] - score[plain, seed] for seed in range(7)])
    rows = table_of(tmp_path / "out")
    assert float(rows[plain]["mean"]) == pytest.approx(np.mean([score[plain, seed] for seed in range(7)]))
    assert float(rows[peer]["difference"]) == pytest.approx(differences.mean())
    flips = np.array(list(itertools.product((1, -1), repeat=7)))
    p = np.mean(np.abs(flips @ differences) >= abs(differences.sum()) - 1e-12)
    assert float(rows[peer]["p"]) == pytest.approx(p)
    assert float(rows[peer]["low"]) < differences.mean() < float(rows[peer]["high"])
    assert int(rows[peer]["pairs"]) == 7
    (effect,) = effects(group_runs(find_runs([tmp_path / "runs"])))
    assert effect.differences == pytest.approx(differences.tolist())
    assert sentence(effect) in html.unescape((tmp_path / "out" / "report.html").read_text())


def test_what_a_function_logs_goes_where_reports_look_for_it(tmp_path):
    (path,) = run_all(script_in(tmp_path, FUNCTION), Plan(betas=(0,), seeds=(3,), steps=200), tmp_path)
    last = {name: read_json_lines(path / f"{name}.jsonl")[-1] for name in ("eval", "diagnostics", "metrics")}
    assert last["diagnostics"]["cosine"] == 0.9
    assert last["metrics"]["loss"] == 0.5
    assert {row["step"] for row in last.values()} == {200}
    assert json.loads((path / "status.json").read_text())["state"] == "finished"


def test_a_step_beyond_the_budget_ends_the_function(tmp_path):
    (path,) = run_all(script_in(tmp_path, FUNCTION), Plan(betas=(0,), seeds=(0,), steps=95), tmp_path)
    assert [row["step"] for row in read_json_lines(path / "eval.jsonl")] == list(range(10, 91, 10))


def test_identical_returns_are_reported(tmp_path):
    text = FUNCTION.replace("4000 * beta", "0")
    run_all(script_in(tmp_path, text), Plan(seeds=range(2), steps=200), tmp_path / "runs")
    (effect,) = effects(group_runs(find_runs([tmp_path / "runs"])))
    assert effect.identical
    assert effect.estimate.value == 0


# -- Stable-Baselines3 models ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["TD3", "SAC", "DQN"])
def test_beta_0_is_the_stock_agent_bit_for_bit(tmp_path, kind):
    spec = script_in(tmp_path, MODEL.format(kind=kind), "make")
    plan = Plan(betas=(0, 0.01), seeds=(4,), steps=60, protocol=SHORT)
    plain, peer = run_all(spec, plan, tmp_path / "runs")
    stock = tiny(STOCK[kind], seed=4).learn(60)
    weights = final(plain).components["agent"]
    expected = stock.policy.state_dict()
    assert weights.keys() == expected.keys()
    for name, weight in expected.items():
        assert torch.equal(weights[name], weight), name
    other = final(peer).components["agent"]
    assert any(not torch.equal(other[name], weight) for name, weight in expected.items())
    evaluations = read_json_lines(plain / "eval.jsonl")
    assert [row["step"] for row in evaluations] == [30, 60]
    assert [len(row["returns"]) for row in evaluations] == [2, 3]
    seeds = [[row["seeds"] for row in read_json_lines(path / "eval.jsonl")] for path in (plain, peer)]
    assert seeds[0] == seeds[1]
    diagnosed = read_json_lines(plain / "diagnostics.jsonl")
    assert [row["step"] for row in diagnosed] == [30, 60]
    assert 0 < diagnosed[-1]["cosine"] <= 1
    assert diagnosed[-1]["gradient_ratio"] == 0
    measured = [row["gradient_ratio"] for row in read_json_lines(peer / "diagnostics.jsonl")]
    assert measured[-1] > 0
    again = tiny(OURS[kind], beta=0.01, seed=4).learn(60)  # measuring leaves the update as it is
    assert all(torch.equal(other[name], weight) for name, weight in again.policy.state_dict().items())


def test_regularizers_and_the_layer_norm_control_are_variants_of_their_own(tmp_path):
    spec = script_in(tmp_path, MODEL.format(kind="TD3"), "make")
    plan = Plan(seeds=(0,), steps=40, regularizers=("peer", "cosine-peer"), controls=("layer-norm",), protocol=SHORT)
    paths = run_all(spec, plan, tmp_path / "runs")
    assert len({path.parent.name for path in paths}) == 4
    labels = [group.label for group in group_runs(find_runs([tmp_path / "runs"]))]
    assert sorted(labels) == [
        "LayerNorm critic",
        "PEER (beta = 0.0005)",
        "cosine-peer (beta = 0.0005)",
        "stock agent",
    ]


@pytest.mark.parametrize("kind", list(OURS))
def test_a_normalised_critic_keeps_its_weights_and_normalises_phi(kind):
    plain, model = tiny(OURS[kind], beta=0), normalise_critic(tiny(OURS[kind], beta=0))
    for name, weight in plain.policy.state_dict().items():
        assert torch.equal(model.policy.state_dict()[name], weight)
    critics = model.critic if hasattr(model, "critic") else model.policy
    assert any(isinstance(module, LayerNormReLU) for module in critics.modules())
    if hasattr(model, "actor") and model.actor is not None:
        assert not any(isinstance(module, LayerNormReLU) for module in model.actor.modules())
    model.learn(30)


def test_layer_norm_kwargs_normalise_every_hidden_layer():
    model = tiny(OURS["TD3"], beta=0, policy_kwargs=layer_norm_kwargs(net_arch=[16]))
    rows = torch.randn(5, 16)
    module = next(module for module in model.critic.modules() if isinstance(module, LayerNormReLU))
    expected = torch.relu((rows - rows.mean(1, keepdim=True)) / (rows.var(1, correction=0, keepdim=True) + 1e-5).sqrt())
    torch.testing.assert_close(module(rows), expected)


# -- stopping and going on ---------------------------------------------------------------------------------------------


def test_finished_runs_are_kept_and_unfinished_ones_start_again(tmp_path):
    spec, plan = script_in(tmp_path, FUNCTION), Plan(seeds=(0,), steps=200)
    plain, peer = run_all(spec, plan, tmp_path / "runs")
    before = (plain / "eval.jsonl").read_bytes()
    old = (plain / "eval.jsonl").stat().st_mtime_ns
    (peer / "status.json").write_text(json.dumps({"state": "running"}))
    with (peer / "eval.jsonl").open("a") as file:
        file.write('{"step": 5, "half a line')
    wanted = read_json_lines(peer / "eval.jsonl")
    run_all(spec, plan, tmp_path / "runs")
    assert (plain / "eval.jsonl").stat().st_mtime_ns == old
    assert (plain / "eval.jsonl").read_bytes() == before
    assert read_json_lines(peer / "eval.jsonl") == wanted
    assert all(job.finished() for job in jobs_of(load_script(spec), plan, tmp_path / "runs"))


def test_finished_runs_of_other_code_are_refused_and_comments_do_not_count(tmp_path):
    spec, plan = script_in(tmp_path, FUNCTION), Plan(seeds=(0,), steps=200)
    run_all(spec, plan, tmp_path / "runs")
    file = Path(spec.rpartition(":")[0])
    file.write_text("# a comment\n" + file.read_text())
    again = peer_rl("compare", spec, "--seeds", 1, "--steps", 200, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    file.write_text(file.read_text().replace("rng.normal()", "rng.random()"))
    again = peer_rl("compare", spec, "--seeds", 1, "--steps", 200, cwd=tmp_path)
    assert again.returncode == 2
    assert "script has changed" in again.stderr
    assert "Traceback" not in again.stderr


SLOW_FUNCTION = """
    import time

    def train(seed, beta, log):
        for step in range(1, 41):
            time.sleep(0.1)
            log(step=step, return_=seed + step * beta)
"""


@pytest.mark.slow
def test_killed_and_typed_again(tmp_path):
    """kill -9 takes the whole comparison along; typed again, nothing is lost and nothing is counted twice."""
    spec = script_in(tmp_path, SLOW_FUNCTION)
    words = [sys.executable, "-m", "peer_rl", "compare", spec, "--seeds", "2", "--steps", "40", "--workers", "1"]
    process = subprocess.Popen(words, cwd=tmp_path, env=surroundings(), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240

    def states() -> list[str]:
        found = sorted((tmp_path / "runs").rglob("status.json"))
        return [json.loads(path.read_text())["state"] for path in found]

    while states().count("finished") < 1 or "running" not in states():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = {
        path.parent: (path.stat().st_mtime_ns, (path.parent / "eval.jsonl").read_bytes())
        for path in (tmp_path / "runs").rglob("status.json")
        if json.loads(path.read_text())["state"] == "finished"
    }
    assert 1 <= len(done) < 4
    time.sleep(2)  # the worker sees that its starter is gone
    again = subprocess.run(words, cwd=tmp_path, env=surroundings(), capture_output=True, text=True, timeout=240)
    assert again.returncode == 0, again.stderr
    for path, (modified, content) in done.items():
        assert (path / "status.json").stat().st_mtime_ns == modified
        assert (path / "eval.jsonl").read_bytes() == content
    runs = sorted((tmp_path / "runs").rglob("eval.jsonl"))
    assert len(runs) == 4
    for path in runs:
        assert [row["step"] for row in read_json_lines(path)] == list(range(1, 41))
    rows = table_of(tmp_path / "compare")
    (peer,) = (row for row in rows.values() if row["difference"])
    assert float(peer["difference"]) == pytest.approx(5e-4 * np.mean(range(31, 41)))


def test_a_run_that_fails_before_its_first_step_stops_the_others(tmp_path):
    text = """
        def make(seed, beta):
            raise ValueError("no such\\nthing")
    """
    result = peer_rl("compare", script_in(tmp_path, text, "make"), "--seeds", 5, "--steps", 40, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.count("FAILED") < 10
    *_, last = result.stderr.splitlines()
    assert last.startswith("peer-rl: ")
    assert "seed0: ValueError: no such thing (log: " in last
    assert "the other runs were stopped" in last
    assert not (tmp_path / "compare" / "report.html").exists()


# -- wrong use ---------------------------------------------------------------------------------------------------------

WRONG = {
    "no target critic": (
        "from stable_baselines3 import PPO\ndef make(seed, beta): return PPO('MlpPolicy', 'CartPole-v1', device='cpu')",
        "PPO has no critic with a target network",
    ),
    "a stock model with a beta": (
        "from sb3_models import *\ndef make(seed, beta): return tiny(STOCK['TD3'], seed=seed)",
        "takes no beta",
    ),
    "a stock class that is given beta": (
        "from stable_baselines3 import TD3\ndef make(seed, beta): return TD3('MlpPolicy', 'Pendulum-v1', beta=beta)",
        "argument 'beta': import the class from peer_rl.integrations.sb3",
    ),
    "beta not passed on": (
        "from sb3_models import *\ndef make(seed, beta): return tiny(OURS['TD3'], beta=0.1, seed=seed)",
        "pass beta on",
    ),
    "no model": ("def make(seed, beta): return 1", "not a Stable-Baselines3 model"),
    "one environment for two models": (
        "from sb3_models import *\nENV = env_for('TD3')\n"
        "def make(seed, beta): return tiny(OURS['TD3'], ENV, beta=beta, seed=seed)",
        "share one",
    ),
    "nothing logged": ("def make(seed, beta, log): log(step=1, loss=2)", "no return_"),
    "steps that go back": (
        "def make(seed, beta, log):\n    log(step=2, return_=1)\n    log(step=1, return_=1)",
        "never go back",
    ),
    "no number": ("def make(seed, beta, log): log(step=2, return_='high')", "log takes numbers"),
    "other parameters": ("def make(): pass", "must be callable"),
    "an import that fails": ("import nothing_of_this_name", "No module named"),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_wrong_use_is_one_sentence(tmp_path, name):
    text, words = WRONG[name]
    with pytest.raises(PeerError, match=words):
        run_all(script_in(tmp_path, text, "make"), Plan(seeds=(0,), betas=(5e-4,), steps=40), tmp_path / "runs")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--betas", "5e-4"), "betas must include 0"),
        (("--betas", 0), "betas must include a value above 0"),
        (("--betas", "-1"), "beta must be 0 or above"),
        (("--seeds", 0), "seeds must be above 0"),
        (("--out", "file"), "cannot write file (File exists); choose another place with --out"),
        (("--engine", "ray", "--address", "nowhere"), "no Ray cluster at nowhere"),
    ],
)
def test_what_answers_nothing_is_refused_before_any_training(tmp_path, arguments, words):
    (tmp_path / "file").touch()
    result = peer_rl("compare", script_in(tmp_path, FUNCTION), "--steps", 20, *arguments, cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert words in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.rglob("eval.jsonl"))


def test_a_module_that_is_not_found_is_named_as_a_file(tmp_path):
    result = peer_rl("compare", "no_such_module_of_mine:make", cwd=tmp_path)
    assert result.returncode == 2
    assert "name the file, no_such_module_of_mine.py, or put its folder on PYTHONPATH" in result.stderr
