"""``--search beta``: the same twice, resumes where it was stopped, and prints how sure its result is."""

import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from running import peer_rl
from synthetic import write_run

from peer_rl.errors import ConfigError, PeerError, RunError
from peer_rl.launch.jobs import Job
from peer_rl.launch.search import search_beta
from peer_rl.launch.sweep import read_sweep

GRID = 'agents = ["dqn"]\ntask = "gridworld/paper"\nprofile = "smoke"\nseeds = 2\n'
SEARCH = "[search]\ntrials = 12\nround = 3\nlow = 1e-5\n"


def read(folder: Path, text: str):
    folder.mkdir(exist_ok=True)
    (folder / "sweep.toml").write_text(text)
    return read_sweep(folder / "sweep.toml", folder / "runs")


class Trainer:
    """In the place of the engine: a run's score is highest at beta 1e-3, and at most ``patience`` runs are trained."""

    def __init__(self, patience: float = math.inf, fails_above: float = math.inf) -> None:
        self.patience, self.fails_above = patience, fails_above
        self.trained: list[tuple[float, int]] = []

    def __call__(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            beta, seed = job.config.beta, job.config.seed
            if (job.path / "status.json").exists() or beta > self.fails_above:
                continue
            if len(self.trained) >= self.patience:
                raise KeyboardInterrupt
            self.trained.append((beta, seed))
            score = 100 - 10 * (math.log10(beta) + 3) ** 2 + seed if beta else 20.0 + seed
            write_run(job.runs, seed=seed, beta=beta, returns=(score,), profile="smoke")
        if any(job.config.beta > self.fails_above for job in jobs):
            raise RunError("1 of 6 runs failed. it diverged")


def test_it_finds_the_best_beta_and_prints_its_interval(tmp_path):
    search = search_beta(read(tmp_path, GRID + "betas = [0, 0.5]\n" + SEARCH))
    trainer = Trainer()
    assert search.run(trainer) is None
    (family,) = search.families
    searched = [trial.beta for trial in family.trials if trial.asked is not None]
    assert len(searched) == 12
    assert searched[0] == 0.5, "the file's own beta comes first"
    assert all(1e-5 <= beta <= 1 for beta in searched)
    assert sorted(trainer.trained) == sorted((beta, seed) for beta in {0.0, *searched} for seed in (0, 1))
    best = min(searched, key=lambda beta: abs(math.log10(beta) + 3))
    printed = search.summary()
    header, columns, first, *_ = printed.splitlines()
    assert header == "dqn on gridworld/paper, profile smoke, seeds 0, 1:"
    assert columns.split() == ["beta", "mean", "score", "std", "seed", "0", "seed", "1"]
    score = 100 - 10 * (math.log10(best) + 3) ** 2
    assert first.split() == [f"{best:g}", f"{score + 0.5:.2f}", "0.71", f"{score:.2f}", f"{score + 1:.2f}"]
    assert "0 (backbone)" in printed
    assert f"best beta: {best:g}, mean score" in printed
    assert f"chosen as the best of 12 on these seeds, so its score is optimistic: confirm it with fresh ones, betas = [0, {best:g}] and seeds = [2, 3, 4, 5, 6]" in printed  # noqa: E501  # fmt: skip


def test_stopped_and_started_again_it_asks_for_the_same_betas_and_repeats_no_run(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    undisturbed, first, second = Trainer(), Trainer(patience=9), Trainer()
    one = search_beta(read(whole, GRID + SEARCH))
    one.run(undisturbed)
    with pytest.raises(KeyboardInterrupt):
        search_beta(read(broken, GRID + SEARCH)).run(first)
    other = search_beta(read(broken, GRID + SEARCH))
    other.run(second)
    assert first.trained + second.trained == undisturbed.trained
    assert other.summary() == one.summary()


def test_another_seed_of_the_sampler_asks_for_other_betas(tmp_path):
    def betas(text: str) -> set[float]:
        return {job.config.beta for job in search_beta(read(tmp_path, GRID + text)).first_round()}

    assert betas(SEARCH) == betas(SEARCH)
    assert betas(SEARCH) & betas(SEARCH + "seed = 1\n") == {5e-4}, "the paper's own comes first with any"


def test_a_beta_with_which_training_fails_is_not_chosen_and_is_reported(tmp_path):
    search = search_beta(read(tmp_path, GRID + "betas = [0.5, 0.001]\n" + SEARCH))
    failure = search.run(Trainer(fails_above=0.1))
    assert "it diverged" in str(failure)
    printed = search.summary()
    assert re.search(r"^ *0\.5 +- +- +failed +failed$", printed, re.MULTILINE)
    assert "best beta: 0.001" in printed


def test_every_agent_task_and_regularizer_has_a_search_of_its_own(tmp_path):
    text = 'agents = ["dqn"]\ntasks = ["gridworld/paper", "gym/CartPole-v1"]\nregularizers = ["peer", "dr3"]\n'
    search = search_beta(read(tmp_path, text + "betas = [0, 0.01]\n"))
    assert [family.name.partition(",")[0] for family in search.families] == [
        "dqn on gridworld/paper",
        "dqn with dr3 on gridworld/paper",
        "dqn on gym/CartPole-v1",
        "dqn with dr3 on gym/CartPole-v1",
    ]
    assert all(family.backbone for family in search.families)
    metd3 = search_beta(read(tmp_path, 'agent = "metd3"\ntask = "pybullet/hopper"\n'))
    assert [(family.first, family.backbone) for family in metd3.families] == [([], True)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('agent = "ppo"\ntask = "gym/CartPole-v1"', "ppo takes no beta, so there is nothing to search; leave it out"),
        (GRID + "beta = 2\n", r"beta 2 is outside the search's range \[1e-06, 1\]"),
    ],
)
def test_a_search_that_makes_no_sense(text, words, tmp_path):
    with pytest.raises(ConfigError, match=words):
        search_beta(read(tmp_path, text))


def test_without_optuna_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(PeerError, match=r"--search needs optuna; install it with: pip install 'peer-rl\[search\]'"):
        search_beta(read(tmp_path, GRID))


def test_from_the_command_line(tmp_path):
    text = "steps = 60\nstart-steps = 20\neval-every = 30\neval-episodes = 1\n[search]\ntrials = 2\nround = 2\n"
    (tmp_path / "sweep.toml").write_text(GRID.replace("seeds = 2", "seed = 4") + text)
    words = ["sweep", "sweep.toml", "--search", "beta"]
    result = peer_rl(*words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "best beta: " in result.stdout
    assert len(list((tmp_path / "runs").glob("*/*/*/seed4/eval.jsonl"))) == 2
    plan = peer_rl(*words, "--dry-run", cwd=tmp_path)
    assert plan.stdout.splitlines()[-1] == "2 runs: 2 done, 0 begun, 0 to do", plan.stderr
