"""The laws that Stable-Baselines3's agents keep under our protocol: 2, 6, 7, 8, and same seed, same run."""

import dataclasses
import os
import random
import signal
import subprocess
import sys
import time

import gymnasium as gym
import numpy as np
import pytest
import torch
from running import final, interrupted, leavings, peer_rl, tiny_config, tiny_run, weights
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import peer_rl as package
from peer_rl.errors import ConfigError, RunError
from peer_rl.launch.api import load, train
from peer_rl.report.runs import find_runs, group_runs
from peer_rl.rng import episode_seed
from peer_rl.sb3.trainer import OnPolicyTrainer
from peer_rl.settings import AGENTS, as_dict, configure
from peer_rl.settings.tasks import TASKS, find_task
from peer_rl.training.files import read_json_lines
from peer_rl.training.rundir import LOGS, read_config, read_json

THEIRS = sorted(name for name, entry in AGENTS.items() if entry.packages)
each = pytest.mark.parametrize("agent", THEIRS)


def global_state():
    return torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002


def test_they_are_ppo_and_trpo():
    assert THEIRS == ["ppo", "trpo"]


@each
def test_law_2_observers_are_inert(agent, tmp_path):
    quiet = tiny_run(agent, tmp_path / "quiet", **{"protocol.eval_every": 0})
    noisy = tiny_run(agent, tmp_path / "noisy", **{"protocol.eval_every": 50, "protocol.eval_episodes": 1})
    assert weights(quiet) == weights(noisy)
    assert (quiet / "metrics.jsonl").read_bytes() == (noisy / "metrics.jsonl").read_bytes()
    assert not (quiet / "eval.jsonl").read_bytes()
    assert len(read_json_lines(noisy / "eval.jsonl")) == 600 // 50


def test_law_2_holds_for_an_environment_that_draws_from_the_global_generator(tmp_path):
    runs = {}
    for every in (0, 50):
        config = tiny_config("ppo", **{"protocol.eval_every": every})
        runs[every] = train(dataclasses.replace(config, task="toy_envs:global_noise"), runs=tmp_path)
    assert weights(runs[0]) == weights(runs[50])


@each
def test_law_6_no_file_of_a_run_is_a_pickle(agent, tmp_path):
    path = tiny_run(agent, tmp_path)
    files = [file for file in path.rglob("*") if file.is_file()]
    kinds = {file.suffix or file.name for file in files}
    assert kinds == {".toml", ".json", ".jsonl", ".safetensors", "SHA256SUMS"} | (kinds & {".lock"})
    assert not [file for file in files if file.read_bytes()[:2] in (b"\x80\x04", b"\x80\x02", b"PK")]
    assert not (path / "diagnostics.jsonl").read_bytes()


@each
def test_law_7_both_counters_on_every_line(agent, tmp_path, monkeypatch):
    config = tiny_config(agent)
    monkeypatch.setitem(TASKS, config.task, dataclasses.replace(find_task(config.task), action_repeat=4))
    path = train(config, runs=tmp_path)
    rows = [row for log in (*LOGS, "timing") for row in read_json_lines(path / f"{log}.jsonl")]
    assert len(rows) > 15
    assert all(row["frame"] == 4 * row["step"] for row in rows)
    assert max(row["step"] for row in rows) == 600


@each
def test_law_8_a_run_directory_is_all_that_is_needed_to_run_it_again(agent, tmp_path):
    first = tiny_run(agent, tmp_path / "first", seed=3)
    assert leavings(train(read_config(first), runs=tmp_path / "again")) == leavings(first)
    [group] = group_runs(find_runs([tmp_path / "first"]))
    assert group.seeds == [3]
    assert group.label.startswith(agent.upper())
    assert "beta" not in group.label


@each
def test_same_seed_same_run_and_the_global_generators_are_given_back(agent, tmp_path):
    leftovers = []
    for number in (1, 2):
        torch.manual_seed(number)
        np.random.seed(number)  # noqa: NPY002
        random.seed(number)
        before = global_state()
        leftovers.append(leavings(tiny_run(agent, tmp_path / str(number))))
        assert global_state() == before
    assert leftovers[0] == leftovers[1]


@each
def test_another_seed_another_run(agent, tmp_path):
    first, second = (tiny_run(agent, tmp_path, seed=seed) for seed in (0, 1))
    assert weights(first) != weights(second)
    assert (first / "metrics.jsonl").read_bytes() != (second / "metrics.jsonl").read_bytes()
    seeds = [read_json_lines(path / "eval.jsonl")[0]["seeds"] for path in (first, second)]
    assert not set(seeds[0]) & set(seeds[1])


class TestStoppedRuns:
    """They start again, and leave what an undisturbed run leaves."""

    @pytest.mark.slow
    def test_kill_9_and_the_same_command_again(self, tmp_path):
        command = ["train", "trpo", "--task", "gym/CartPole-v1", "--steps", "4000", "--eval-episodes", "2"]
        assert peer_rl(*command, "--runs", tmp_path / "whole").returncode == 0
        run = "paper/gym-CartPole-v1/trpo+eval-episodes2+steps4000/seed0"
        arguments = [sys.executable, "-m", "peer_rl", *command, "--runs", str(tmp_path / "broken")]
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        status, deadline = tmp_path / "broken" / run / "status.json", time.monotonic() + 60
        while not status.exists():
            assert process.poll() is None, "the run ended before it could be killed; make it longer"
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert read_json(status)["state"] == "running"
        again = peer_rl(*command, "--runs", tmp_path / "broken")
        assert again.returncode == 0
        assert "trpo cannot resume" in again.stderr
        assert leavings(tmp_path / "broken" / run) == leavings(tmp_path / "whole" / run)

    @each
    def test_lines_of_a_stopped_run_are_not_doubled(self, agent, shared_run, tmp_path):
        with interrupted(OnPolicyTrainer, "_observe", lambda trainer, **_: trainer.progress.step == 500):
            tiny_run(agent, tmp_path)
        assert leavings(tiny_run(agent, tmp_path)) == leavings(shared_run(agent))

    @each
    def test_a_finished_run_is_left_alone(self, agent, tmp_path):
        path = tiny_run(agent, tmp_path)
        before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
        assert tiny_run(agent, tmp_path) == path
        assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before

    def test_killed_between_the_checkpoint_and_the_last_status(self, tmp_path):
        path = tiny_run("trpo", tmp_path)
        finished = read_json(path / "status.json")
        (path / "status.json").write_text('{"state": "running"}')
        tiny_run("trpo", tmp_path)
        assert read_json(path / "status.json") == finished


class TestBudgets:
    @each
    def test_steps_are_met_exactly_and_a_full_last_batch_is_learned_from(self, agent, tmp_path):
        counts = {}
        for steps in (512, 600):
            path = tiny_run(agent, tmp_path, steps=steps)
            rows = [row for row in read_json_lines(path / "metrics.jsonl") if "updates" in row]
            assert [row["step"] for row in rows] == [128, 256, 384, 512]
            assert read_json(path / "status.json")["step"] == steps
            counts[steps] = weights(path)
        assert final(tmp_path / path).step == 600
        networks = [load(run).agent.state_dict()["network"] for run in sorted(path.parent.parent.glob("*/seed0"))]
        assert all(torch.equal(networks[0][name], networks[1][name]) for name in networks[0])

    def test_an_evaluation_where_a_batch_ends_comes_after_what_was_learned_there(self, tmp_path):
        """Whether the run ends there or continues; and it is what the loaded policy does."""
        protocol = {"protocol.eval_every": 256, "protocol.eval_episodes": 6}
        short, long = (tiny_run("ppo", tmp_path, steps=steps, **protocol) for steps in (256, 512))
        rows = read_json_lines(long / "eval.jsonl")
        assert [row["step"] for row in rows] == [256, 512]
        assert read_json_lines(short / "eval.jsonl") == [{**rows[0], "final": True}]
        env, policy, lengths = gym.make("InvertedPendulum-v5"), load(short), []
        for seed in rows[0]["seeds"]:
            obs, _ = env.reset(seed=seed)
            count, over = 0, False
            while not over:
                obs, _, terminated, truncated, _ = env.step(policy.act(obs))
                count, over = count + 1, terminated or truncated
            lengths.append(count)
        assert lengths == rows[0]["lengths"]

    def test_episodes(self, tmp_path):
        path = tiny_run("trpo", tmp_path, episodes=20, steps=None)
        assert read_json(path / "status.json")["episode"] == 20
        assert read_json_lines(path / "eval.jsonl")[-1]["episode"] == 20

    def test_the_learning_rate_has_its_own_horizon(self, tmp_path):
        rates = {}
        for steps in (256, 512):
            path = tiny_run("ppo", tmp_path, steps=steps, **{"settings.lr_decay_steps": 300})
            rates[steps] = [row["learning_rate"] for row in read_json_lines(path / "metrics.jsonl") if "updates" in row]
        assert rates[512] == [3e-4 * (1 - 128 / 300), 3e-4 * (1 - 256 / 300), 0.0, 0.0]
        assert rates[256] == rates[512][:2]


class Plain(gym.Wrapper):
    """What a script for Stable-Baselines3 would do: single precision, actions in [-1, 1], a seed for each episode."""

    episode = 0

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, **_):
        self.episode += 1
        obs, info = self.env.reset(seed=episode_seed(3, "environment", self.episode - 1))
        return obs.astype(np.float32), info

    def step(self, action):
        obs, *rest = self.env.step(3 * action)
        return obs.astype(np.float32), *rest


def test_a_run_of_ours_is_a_script_of_theirs_bit_for_bit(tmp_path):
    """InvertedPendulum's actions are in [-3, 3]; both sides act in [-1, 1]."""
    ours = tiny_run("ppo", tmp_path, seed=3, steps=512, **{"settings.lr_decay_steps": 512})
    vector = VecNormalize(DummyVecEnv([lambda: Plain(gym.make("InvertedPendulum-v5"))]), gamma=0.99)
    networks = {"net_arch": {"pi": [64, 64], "vf": [64, 64]}}
    options = {"n_steps": 128, "batch_size": 32, "n_epochs": 3, "vf_coef": 0.25, "policy_kwargs": networks}
    theirs = PPO("MlpPolicy", vector, learning_rate=lambda left: 3e-4 * left, seed=3, device="cpu", **options)
    theirs.learn(512)
    state = load(ours).agent.state_dict()
    for name, tensor in theirs.policy.state_dict().items():
        assert torch.equal(state["network"][name], tensor), name
    assert np.array_equal(state["moments"]["mean"], vector.obs_rms.mean)
    assert np.array_equal(state["moments"]["var"], vector.obs_rms.var)
    obs = np.array([0.01, -0.02, 0.3, 0.4], np.float32)
    said, _ = theirs.predict(vector.normalize_obs(obs), deterministic=True)
    assert np.array_equal(load(ours).act(obs), 3 * said)


class TestPolicies:
    @each
    def test_act_on_one_observation_and_on_a_batch_and_explore(self, agent, tmp_path):
        policy = load(tiny_run(agent, tmp_path))
        space = gym.make(policy.config.task.removeprefix("gym/")).action_space
        obs = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
        assert space.contains(policy.act(obs))
        # some processors round a product of one row otherwise than one of two
        np.testing.assert_allclose(policy.act(np.stack([obs, obs]))[0], policy.act(obs), rtol=1e-6)
        before = global_state()
        explored = [policy.act(obs, explore=True) for _ in range(40)]
        assert all(space.contains(action) for action in explored)
        assert len({str(action) for action in explored}) > 1
        assert global_state() == before
        assert policy.evaluate(episodes=2).lengths
        assert policy.agent.value(obs[None]).shape == (1,)

    def test_raw_observations_and_rewards(self, tmp_path):
        raw = {"settings.observation_clip": 0.0, "settings.reward_clip": 0.0}
        policy = load(tiny_run("ppo", tmp_path, **raw))
        assert policy.agent.moments is None
        assert policy.act(np.zeros(4, np.float32)).shape == (1,)


class TestRefusals:
    @each
    @pytest.mark.parametrize(
        ("given", "option"), [({"beta": 5e-4}, "--beta"), ({"regularizer": "dr3"}, "--regularizer")]
    )
    def test_a_beta(self, agent, given, option):
        words = f"^{agent} has no TD target, so PEER does not apply; leave out {option}$"
        with pytest.raises(ConfigError, match=words):
            tiny_config(agent, **given)
        with pytest.raises(ConfigError, match=words):
            train(dataclasses.replace(tiny_config(agent), **given), runs="nowhere")

    @each
    def test_beta_0_and_none_are_the_same_run(self, agent):
        assert tiny_config(agent, beta=0.0) == tiny_config(agent, regularizer="none") == tiny_config(agent)

    @each
    @pytest.mark.parametrize(
        "name", ["batch_size", "buffer_size", "n_step", "start_steps", "update_every", "updates", "diagnose_every"]
    )
    def test_settings_that_mean_nothing_to_them(self, agent, name):
        assert name in {path.rpartition(".")[2] for path in as_dict(tiny_config("dqn"))}
        with pytest.raises(ConfigError, match=f"unknown setting '{name}'"):
            tiny_config(agent, **{name: 3})

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--beta", "5e-4"], "ppo has no TD target, so PEER does not apply; leave out --beta"),
            (["--batch-size", "32"], "Unrecognized options: --batch-size"),
            (["--minibatches", "7"], "batch_steps 2048 cannot be split into 7 equal minibatches"),
            (["--steps", "0"], "steps must be above 0"),
        ],
    )
    def test_the_command_says_so_in_one_line(self, arguments, words, tmp_path):
        result = peer_rl("train", "ppo", "--task", "gym/CartPole-v1", *arguments, cwd=tmp_path)
        assert result.returncode == 2
        assert words in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(("task", "words"), [("nan_reward", "reward nan"), ("nan_observation", "not finite")])
    def test_nan_from_the_environment(self, task, words, tmp_path):
        config = tiny_config("ppo", steps=2_000, **{"protocol.eval_every": 0})
        with pytest.raises(RunError, match=f"stopped at step 249: .*{words}"):
            train(dataclasses.replace(config, task=f"toy_envs:{task}"), runs=tmp_path)

    @pytest.mark.parametrize("rate", [1e2, 1e30])
    def test_a_policy_that_blows_up(self, rate, tmp_path):
        """At 1e30 a weight becomes infinite; at 100 the deviation of the actions becomes 0."""
        with pytest.raises(RunError, match=r"stopped at step \d+: .*a smaller --learning-rate may help"):
            tiny_run("ppo", tmp_path, **{"settings.learning_rate": rate})
        assert not list(tmp_path.rglob("checkpoint"))

    def test_a_loss_that_is_not_finite(self, tmp_path, monkeypatch):
        def learn_badly(model: PPO) -> None:
            learn(model)
            model.logger.record("train/value_loss", float("inf"))

        learn = PPO.train
        monkeypatch.setattr(PPO, "train", learn_badly)
        with pytest.raises(RunError, match="stopped at step 128: value_loss became inf"):
            tiny_run("ppo", tmp_path)

    @pytest.mark.parametrize(("agent", "missing"), [("ppo", "stable-baselines3"), ("trpo", "sb3-contrib")])
    def test_a_missing_package_before_anything_is_written(self, agent, missing, tmp_path, monkeypatch):
        path = tiny_run(agent, tmp_path / "there")
        monkeypatch.setitem(sys.modules, missing.replace("-", "_"), None)
        words = rf"^{agent} needs {missing}; install it with: pip install 'peer-rl\[sb3\]'$"
        with pytest.raises(ConfigError, match=words):
            tiny_run(agent, tmp_path / "here")
        with pytest.raises(ConfigError, match=words):
            load(path)
        assert not (tmp_path / "here").exists()


def test_profiles_leave_out_what_an_agent_does_not_have(more_settings):
    more_settings("gym", {"learning.start_steps": 10, "protocol.eval_every": 123}, profile="smoke")
    assert configure("ppo", "gym/CartPole-v1", profile="smoke").protocol.eval_every == 123
    assert configure("dqn", "gym/CartPole-v1", profile="smoke").learning.start_steps == 10


@pytest.mark.slow
@each
@pytest.mark.parametrize(("task", "steps"), [("toy_envs:choice_from_five", 4_096), ("toy_envs:reach", 8_192)])
def test_they_learn(agent, task, steps, tmp_path):
    """Two signs to distinguish, discrete; a number to name, continuous. Without rewards: 0.5 and below 0.6."""
    settings = {"batch_steps": 256, "eval_every": 0, "steps": steps}
    if agent == "ppo":
        settings |= {"minibatches": 4, "learning_rate": 1e-3}
    path = package.train(configure(agent, task, **settings), runs=tmp_path)
    assert load(path).evaluate(episodes=50).mean > 0.9
