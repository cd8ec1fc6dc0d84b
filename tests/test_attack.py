"""The attack of tools/attack finds nothing in a few cases of each kind, and finds a defect that is planted."""

import random
import shutil

import attack.__main__ as attacker
import pytest
from attack import damaged

from peer_rl.report import runs


@pytest.fixture(scope="module", autouse=True)
def loaded():
    attacker.load()


@pytest.mark.parametrize("kind", ["inputs", "damaged", "crafted", pytest.param("kills", marks=pytest.mark.slow)])
def test_a_few_cases_find_nothing(kind):
    found = attacker.attack(kind, 8, seed=1, workers=1)
    assert (found["failures"], found["cases"]) == ([], 8)


def test_logs_that_are_not_verified_are_found(monkeypatch, tmp_path):
    """The planted defect: a report that believes every log."""
    base, home = tmp_path / "base", tmp_path / "home"
    base.mkdir()
    damaged.prepare(base)
    shutil.copytree(base / "finished" / "runs", home / "runs")
    log = damaged.the_run(home) / "eval.jsonl"
    log.write_text(log.read_text().replace('"mean": ', '"mean": 1', 1))
    assert damaged.use(random.Random(0), home, base, finished=True)[0] == []
    monkeypatch.setattr(runs, "check_logs", lambda path, status: None)
    failures, _ = damaged.use(random.Random(0), home, base, finished=True)
    assert any(failure.startswith("reported as good: rows: eval") for failure in failures)
