"""The design's laws, over each of our agents. What a test only reads is trained once, by ``shared_run``."""

import dataclasses
import random
import shutil

import numpy as np
import pytest
import torch
from running import OURS, REGULARIZED, final, interrupted_at, leavings, tiny_config, tiny_run, toy_config, weights

from peer_rl.agents.make import build_agent
from peer_rl.envs.make import env_of, spec_of
from peer_rl.launch.api import train
from peer_rl.plugin import NoRegularizer
from peer_rl.rng import Stream
from peer_rl.settings import AGENTS
from peer_rl.settings.replay import SequenceConfig
from peer_rl.settings.tasks import TASKS, find_task
from peer_rl.training.files import read_json_lines
from peer_rl.training.loop import Trainer
from peer_rl.training.rundir import LOGS, RunDirectory, read_config
from peer_rl.training.trees import pack, unpack

each = pytest.mark.parametrize("agent", OURS)
each_with_beta = pytest.mark.parametrize("agent", REGULARIZED)
pytestmark = pytest.mark.filterwarnings("ignore:phi has negative entries")  # td-mpc's features are an ELU's
CPU = torch.device("cpu")


def usual(agent: str) -> dict[str, object]:
    """Every agent that can regularizes, those whose default is beta 0 included."""
    return {"beta": 0.01} if AGENTS[agent].td_target else {}


def fresh(agent: str, **changes: object):
    config = tiny_config(agent, **changes)
    return build_agent(config, spec_of(env_of(config)), CPU)


@pytest.fixture
def usual_run(agent, shared_run):
    """The agent's tiny run, undisturbed."""
    return shared_run(agent, **usual(agent))


@pytest.fixture
def often_saved_run(agent, shared_run):
    """The same with a checkpoint after every episode, and other intervals for every observer."""
    loud = {"protocol.eval_every": 80, "protocol.diagnose_every": 20, "protocol.log_every": 10}
    return shared_run(agent, folder="often-saved", checkpoint_seconds=0.0, **usual(agent), **loud)


@pytest.fixture
def repeated_run(agent, usual_run, shared_run):
    """The same once more, from its directory's config alone and with other global generators."""
    torch.manual_seed(2)
    np.random.seed(2)  # noqa: NPY002
    random.seed(2)
    before = global_generators()
    path = shared_run(agent, folder="repeated", config=read_config(usual_run))
    assert global_generators() == before
    return path


def global_generators() -> tuple:
    return torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002


class TestLaw1:
    """beta = 0 is the backbone, bit for bit."""

    @each_with_beta
    def test_beta_0_and_a_loss_without_the_term_give_the_same_bits(self, agent, shared_run, tmp_path, monkeypatch):
        monkeypatch.setattr("peer_rl.agents.make._regularizer_of", lambda config: _Nothing())
        without = tiny_run(agent, tmp_path, beta=0.3, **{"protocol.diagnose_every": 0})
        monkeypatch.undo()
        assert weights(shared_run(agent, beta=0.0)) == weights(without)

    @each_with_beta
    def test_a_beta_above_0_does_something(self, agent, shared_run, usual_run):
        assert weights(shared_run(agent, beta=0.0)) != weights(usual_run)

    @each_with_beta
    def test_initial_weights_and_random_draws_do_not_depend_on_beta(self, agent, shared_run, usual_run):
        assert pack(fresh(agent, beta=0.0).state_dict()) == pack(fresh(agent, beta=0.3).state_dict())
        runs = shared_run(agent, beta=0.0), usual_run
        first, second = (pack(final(run).components["loop"]["streams"]) for run in runs)
        assert first == second

    @each
    def test_no_regularizer_and_beta_0_are_one_run(self, agent, shared_run):
        assert shared_run(agent, regularizer="none") == shared_run(agent, beta=0.0)


class _Nothing(NoRegularizer):
    """Whatever it is added to stays the very same tensor: the loss without a term."""

    def __call__(self, features):
        return self

    def __radd__(self, loss):
        return loss

    def detach(self):
        return torch.zeros(())

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        assert function in (torch.Tensor.add, torch.Tensor.__add__), function
        return args[0]


@each
def test_law_2_observers_are_inert(agent, often_saved_run, tmp_path):
    silent = {"protocol.eval_every": 0, "protocol.diagnose_every": 0, "protocol.log_every": 10**9}
    quiet = tiny_run(agent, tmp_path, checkpoint_seconds=1e9, **usual(agent), **silent)
    assert weights(quiet) == weights(often_saved_run)
    assert not (quiet / "eval.jsonl").read_bytes()
    assert (often_saved_run / "eval.jsonl").read_bytes()


@each
class TestLaw3:
    """Resumed equals uninterrupted; tests/contracts/test_kill.py does it with kill -9."""

    def test_crashes_at_any_step_leave_no_trace(self, agent, usual_run, tmp_path):
        for step in (1, 125, 217, 299):
            with interrupted_at(step):
                tiny_run(agent, tmp_path, checkpoint_seconds=0.0, **usual(agent))
        assert leavings(tiny_run(agent, tmp_path, checkpoint_seconds=0.0, **usual(agent))) == leavings(usual_run)

    def test_a_resumed_run_really_loads(self, agent, usual_run, tmp_path, monkeypatch):
        """Without the agent's state the result differs: the test above can fail."""
        with interrupted_at(200):
            tiny_run(agent, tmp_path, checkpoint_seconds=0.0, **usual(agent))
        monkeypatch.setattr(type(fresh(agent)), "load_state_dict", lambda self, state: None)
        assert leavings(tiny_run(agent, tmp_path, **usual(agent))) != leavings(usual_run)

    def test_the_next_update_after_a_load_is_the_same(self, agent, usual_run, tmp_path):
        """The optimizer's state included: a loaded agent and the one that was saved stay equal through an update."""
        path = shutil.copytree(usual_run, tmp_path / "run")
        trainer = Trainer(read_config(path), RunDirectory(path, read_config(path)))
        with trainer.run:
            trainer._resume()
        batch = trainer.replay.sample(np.random.default_rng(0))
        again = fresh(agent, **usual(agent))
        again.load_state_dict(unpack(pack(trainer.agent.state_dict())))
        for one in (trainer.agent, again):
            one.update(batch, index=0, rng=Stream(0, "test", device=CPU))
        assert pack(again.state_dict()) == pack(trainer.agent.state_dict()) != weights(path)

    def test_a_resume_before_the_first_checkpoint_counts_the_logs_anew(self, agent, usual_run, tmp_path):
        """Stopped with lines but no checkpoint; then a checkpoint before the first new line; then stopped again."""
        for step, seconds in ((240, 60.0), (125, 0.0)):
            with interrupted_at(step):
                tiny_run(agent, tmp_path, checkpoint_seconds=seconds, **usual(agent))
        assert leavings(tiny_run(agent, tmp_path, **usual(agent))) == leavings(usual_run)


@each
class TestLaw4:
    """Same seed, same run; another seed, another run; no global generator."""

    def test_same_seed_same_run_whatever_the_global_generators_hold(self, agent, usual_run, repeated_run):
        assert leavings(repeated_run) == leavings(usual_run)

    def test_another_seed_gives_other_weights_actions_and_episodes(self, agent, usual_run, tmp_path):
        assert pack(fresh(agent, seed=0).state_dict()) != pack(fresh(agent, seed=1).state_dict())
        other = tiny_run(agent, tmp_path, seed=1, steps=100, **usual(agent))
        first, second = (read_json_lines(path / "metrics.jsonl")[:3] for path in (usual_run, other))
        assert first != second
        first, second = (read_json_lines(path / "eval.jsonl")[0]["seeds"] for path in (usual_run, other))
        assert not set(first) & set(second)


@pytest.mark.slow
@each_with_beta
def test_law_5_truncation_bootstraps_and_termination_does_not(agent, tmp_path):
    """Reward 1 a step, gamma 0.5: value 2 if the episode is only cut off, 1 if it ends."""
    value = {}
    for kind in ("truncating", "terminating"):
        windows = isinstance(tiny_config(agent).learning, SequenceConfig)  # of single steps
        settings = {"learning.gamma": 0.5} | ({} if windows else {"learning.n_step": 3})
        path = train(toy_config(agent, kind, steps=1_500, beta=0.0, **settings), runs=tmp_path)
        env = env_of(read_config(path))
        spec = spec_of(env)
        agent_there = build_agent(read_config(path), spec, CPU)
        agent_there.load_state_dict(final(path).components["agent"])
        value[kind] = agent_there.value(spec.encode(env.reset(seed=0)[0])[None]).item()
    assert value["truncating"] == pytest.approx(2.0, abs=0.1)
    assert value["terminating"] == pytest.approx(1.0, abs=0.1)


@each
def test_law_6_no_file_of_a_run_is_a_pickle(agent, often_saved_run):
    files = [file for file in often_saved_run.rglob("*") if file.is_file()]
    kinds = {file.suffix or file.name for file in files}
    assert kinds == {".toml", ".json", ".jsonl", ".safetensors", "SHA256SUMS"} | (kinds & {".lock"})
    assert not [file for file in files if file.read_bytes()[:2] in (b"\x80\x04", b"\x80\x02", b"PK")]


@each
def test_law_7_both_counters_on_every_line(agent, tmp_path, monkeypatch):
    config = tiny_config(agent, steps=150)
    task = dataclasses.replace(find_task(config.task), action_repeat=4)
    monkeypatch.setitem(TASKS, config.task, task)
    path = train(config, runs=tmp_path)
    rows = [row for log in (*LOGS, "timing") for row in read_json_lines(path / f"{log}.jsonl")]
    assert len(rows) > 5
    assert all(row["frame"] == 4 * row["step"] for row in rows)


@each
def test_law_8_a_run_directory_is_all_that_is_needed_to_run_it_again(agent, usual_run, repeated_run):
    assert read_config(repeated_run) == read_config(usual_run)
    assert leavings(repeated_run) == leavings(usual_run)
