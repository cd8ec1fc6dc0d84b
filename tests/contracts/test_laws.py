"""The design's laws, over every agent of ours."""

import dataclasses
import random

import numpy as np
import pytest
import torch
from running import OURS, final, leavings, tiny_config, tiny_run, toy, toy_config, weights

from peer_rl.agents.make import build_agent
from peer_rl.envs.make import make_env, spec_of
from peer_rl.launch.api import train
from peer_rl.plugin import NoRegularizer
from peer_rl.rng import Stream
from peer_rl.settings.tasks import TASKS, find_task
from peer_rl.training.files import read_json_lines
from peer_rl.training.loop import Trainer
from peer_rl.training.rundir import LOGS, RunDirectory, read_config
from peer_rl.training.trees import pack, unpack

pytestmark = pytest.mark.parametrize("agent", OURS)
CPU = torch.device("cpu")


def fresh(agent: str, **changes: object):
    config = tiny_config(agent, **changes)
    return build_agent(config, spec_of(make_env(find_task(config.task))), CPU)


_UNDISTURBED: dict[str, dict[str, bytes]] = {}


def undisturbed_run(agent: str, folders: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the agent's tiny run leaves behind, trained once for all tests that compare with it."""
    if agent not in _UNDISTURBED:
        _UNDISTURBED[agent] = leavings(tiny_run(agent, folders.mktemp(agent)))
    return _UNDISTURBED[agent]


class TestLaw1:
    """beta = 0 is the backbone, bit for bit."""

    def test_beta_0_and_a_loss_without_the_term_give_the_same_bits(self, agent, tmp_path, monkeypatch):
        plain = tiny_run(agent, tmp_path / "zero", beta=0.0)
        monkeypatch.setattr("peer_rl.training.loop.make", lambda name, beta: _Nothing())
        without = tiny_run(agent, tmp_path / "without", beta=0.3, **{"protocol.diagnose_every": 0})
        assert weights(plain) == weights(without)

    def test_a_beta_above_0_does_something(self, agent, tmp_path):
        assert weights(tiny_run(agent, tmp_path, beta=0.0)) != weights(tiny_run(agent, tmp_path, beta=0.01))

    def test_initial_weights_and_random_draws_do_not_depend_on_beta(self, agent, tmp_path):
        assert pack(fresh(agent, beta=0.0).state_dict()) == pack(fresh(agent, beta=0.3).state_dict())
        runs = [tiny_run(agent, tmp_path, beta=beta) for beta in (0.0, 0.01)]
        first, second = (pack(final(run).components["loop"]["streams"]) for run in runs)
        assert first == second

    def test_none_and_beta_0_are_one_run(self, agent, tmp_path):
        assert tiny_run(agent, tmp_path, regularizer="none") == tiny_run(agent, tmp_path, beta=0.0)


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


def test_law_2_observers_are_inert(agent, tmp_path):
    silent = {"protocol.eval_every": 0, "protocol.diagnose_every": 0, "protocol.log_every": 10**9}
    quiet = tiny_run(agent, tmp_path / "quiet", checkpoint_seconds=1e9, **silent)
    loud = {"protocol.eval_every": 50, "protocol.diagnose_every": 20, "protocol.log_every": 10}
    noisy = tiny_run(agent, tmp_path / "noisy", checkpoint_seconds=0.0, **loud)
    assert weights(quiet) == weights(noisy)
    assert not (quiet / "eval.jsonl").read_bytes()
    assert (noisy / "eval.jsonl").read_bytes()


class TestLaw3:
    """Resumed equals uninterrupted; tests/contracts/test_kill.py does it with kill -9."""

    @pytest.mark.parametrize("crash_at", [1, 250, 431, 899])
    def test_a_crash_at_any_step_leaves_no_trace(self, agent, crash_at, tmp_path, tmp_path_factory, monkeypatch):
        undisturbed = undisturbed_run(agent, tmp_path_factory)

        def crash(trainer: Trainer) -> None:
            learn(trainer)
            if trainer.step == crash_at:
                raise KeyboardInterrupt

        learn = Trainer.learn
        with monkeypatch.context() as patch:
            patch.setattr(Trainer, "learn", crash)
            with pytest.raises(KeyboardInterrupt):
                tiny_run(agent, tmp_path / "broken", checkpoint_seconds=0.0)
        resumed = tiny_run(agent, tmp_path / "broken", checkpoint_seconds=0.0)
        assert leavings(resumed) == undisturbed

    def test_a_resumed_run_really_loads(self, agent, tmp_path, tmp_path_factory, monkeypatch):
        """Without the agent's state the result differs: the test above can fail."""
        whole = undisturbed_run(agent, tmp_path_factory)
        learn = Trainer.learn

        def crash(trainer: Trainer) -> None:
            learn(trainer)
            if trainer.step == 600:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Trainer, "learn", crash)
            with pytest.raises(KeyboardInterrupt):
                tiny_run(agent, tmp_path / "broken", checkpoint_seconds=0.0)
        kind = type(fresh(agent))
        monkeypatch.setattr(kind, "load_state_dict", lambda self, state: None)
        assert leavings(tiny_run(agent, tmp_path / "broken")) != whole

    def test_the_next_update_after_a_load_is_the_same(self, agent, tmp_path):
        """Optimizer state included: what was saved and what goes on in memory stay equal through an update."""
        path = tiny_run(agent, tmp_path)
        trainer = Trainer(tiny_config(agent, device="cpu"), RunDirectory(path, tiny_config(agent, device="cpu")))
        with trainer.run:
            trainer._resume()
        batch = trainer.replay.sample(np.random.default_rng(0))
        again = fresh(agent)
        again.load_state_dict(unpack(pack(trainer.agent.state_dict())))
        for one in (trainer.agent, again):
            one.update(batch, index=0, rng=Stream(0, "test", device=CPU))
        assert pack(again.state_dict()) == pack(trainer.agent.state_dict()) != weights(path)

    def test_a_resume_before_the_first_checkpoint_counts_the_logs_anew(
        self, agent, tmp_path, tmp_path_factory, monkeypatch
    ):
        """Stopped with lines but no checkpoint; then a checkpoint before the first new line; then stopped again."""
        whole = undisturbed_run(agent, tmp_path_factory)
        learn = Trainer.learn
        for stop_at, seconds in ((850, 60.0), (250, 0.0)):

            def crash(trainer: Trainer, stop_at: int = stop_at) -> None:
                learn(trainer)
                if trainer.step == stop_at:
                    raise KeyboardInterrupt

            with monkeypatch.context() as patch:
                patch.setattr(Trainer, "learn", crash)
                with pytest.raises(KeyboardInterrupt):
                    tiny_run(agent, tmp_path / "broken", checkpoint_seconds=seconds)
        assert leavings(tiny_run(agent, tmp_path / "broken")) == whole


class TestLaw4:
    """Same seed, same run; another seed, another run; no global generator."""

    def test_same_seed_same_run_whatever_the_global_generators_hold(self, agent, tmp_path):
        torch.manual_seed(1)
        np.random.seed(1)  # noqa: NPY002
        random.seed(1)
        first = leavings(tiny_run(agent, tmp_path / "a"))
        torch.manual_seed(2)
        np.random.seed(2)  # noqa: NPY002
        random.seed(2)
        before = torch.get_rng_state(), np.random.get_state()[1].tobytes(), random.getstate()  # noqa: NPY002
        assert leavings(tiny_run(agent, tmp_path / "b")) == first
        after = torch.get_rng_state(), np.random.get_state()[1].tobytes(), random.getstate()  # noqa: NPY002
        assert torch.equal(before[0], after[0])
        assert before[1:] == after[1:]

    def test_another_seed_gives_other_weights_actions_and_episodes(self, agent, tmp_path):
        assert pack(fresh(agent, seed=0).state_dict()) != pack(fresh(agent, seed=1).state_dict())
        first, second = (tiny_run(agent, tmp_path, seed=seed) for seed in (0, 1))
        assert (first / "metrics.jsonl").read_bytes() != (second / "metrics.jsonl").read_bytes()
        seeds = [read_json_lines(path / "eval.jsonl")[0]["seeds"] for path in (first, second)]
        assert not set(seeds[0]) & set(seeds[1])


def test_law_5_truncation_bootstraps_and_termination_does_not(agent, tmp_path):
    """Reward 1 a step, gamma 0.5: worth 2 if the episode is only cut off, 1 if it ends."""
    worth = {}
    for kind in ("truncating", "terminating"):
        settings = {"learning.gamma": 0.5, "learning.n_step": 3}
        path = train(toy_config(agent, kind, steps=1_500, beta=0.0, **settings), runs=tmp_path)
        env = make_env(find_task(toy(agent, kind)))
        spec = spec_of(env)
        agent_there = build_agent(read_config(path), spec, CPU)
        agent_there.load_state_dict(final(path).components["agent"])
        worth[kind] = agent_there.value(spec.encode(env.reset(seed=0)[0])[None]).item()
    assert worth["truncating"] == pytest.approx(2.0, abs=0.1)
    assert worth["terminating"] == pytest.approx(1.0, abs=0.1)


def test_law_6_no_file_of_a_run_is_a_pickle(agent, tmp_path):
    path = tiny_run(agent, tmp_path, checkpoint_seconds=0.0)
    files = [file for file in path.rglob("*") if file.is_file()]
    kinds = {file.suffix or file.name for file in files}
    assert kinds == {".toml", ".json", ".jsonl", ".safetensors", "SHA256SUMS"} | (kinds & {".lock"})
    assert not [file for file in files if file.read_bytes()[:2] in (b"\x80\x04", b"\x80\x02", b"PK")]


def test_law_7_both_counters_on_every_line(agent, tmp_path, monkeypatch):
    config = tiny_config(agent)
    task = dataclasses.replace(find_task(config.task), action_repeat=4)
    monkeypatch.setitem(TASKS, config.task, task)
    path = train(config, runs=tmp_path)
    rows = [row for log in (*LOGS, "timing") for row in read_json_lines(path / f"{log}.jsonl")]
    assert len(rows) > 30
    assert all(row["frame"] == 4 * row["step"] for row in rows)


def test_law_8_a_run_directory_is_all_that_is_needed_to_run_it_again(agent, tmp_path):
    first = tiny_run(agent, tmp_path / "first", seed=3, beta=0.01)
    again = train(read_config(first), runs=tmp_path / "again")
    assert leavings(again) == leavings(first)
