"""Keeping freed memory: it works here, the user has the last word, and no bit of a run depends on it."""

import os
import platform
import subprocess
import sys

import pytest
from running import leavings, peer_rl, tiny_config

from peer_rl.cli.train import read_options
from peer_rl.launch import api
from peer_rl.training.process import keep_freed_memory

GRID = ["dqn", "--task", "gridworld/paper", "--profile", "smoke", "--steps", "700"]
glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")

FAULTS = """
import resource, sys
import numpy as np
from peer_rl.training.process import keep_freed_memory
kept = keep_freed_memory() if sys.argv[1] == "keep" else False
def update():
    arrays = [np.ones(2**20) for _ in range(3)]  # 8 MiB each
update()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    update()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(how: str, **environment: str) -> tuple[bool, int]:
    """Whether glibc agreed, and the page faults of twenty rounds of allocating and freeing."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", FAULTS, how]
    result = subprocess.run(command, env=env | environment, capture_output=True, text=True, check=True)
    agreed, faults = result.stdout.split()
    return agreed == "True", int(faults)


@glibc
def test_arrays_are_not_faulted_in_again():
    _, default = page_faults("leave")
    agreed, kept = page_faults("keep")
    assert agreed
    assert kept < default / 10


@glibc
def test_calling_it_again_does_no_harm():
    assert keep_freed_memory() is True
    assert keep_freed_memory() is True


@glibc
@pytest.mark.parametrize(
    "environment",
    [
        {"MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_MMAP_THRESHOLD_": "131072"},
        {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072:glibc.malloc.mmap_threshold=131072"},
    ],
)
def test_thresholds_that_the_user_has_set_are_left_alone(environment):
    agreed, faults = page_faults("keep", **environment)
    assert not agreed
    assert faults > 6000  # of about 20 x 6,000 small pages; some come together


def test_nothing_happens_on_another_system(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("ctypes.CDLL", lambda name: pytest.fail("no C library may be asked"))
    assert keep_freed_memory() is False


def test_nothing_happens_with_another_c_library(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    assert keep_freed_memory() is False


def test_a_run_asks_once(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(api, "keep_freed_memory", lambda: calls.append(1))
    api.train(tiny_config("dqn", steps=20), runs=tmp_path)
    assert calls == [1]


def test_no_bit_of_a_run_depends_on_it(tmp_path):
    kept = api.train(read_options(GRID)[0].run, runs=tmp_path / "kept")
    thresholds = {"MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_MMAP_THRESHOLD_": "131072"}
    assert peer_rl("train", *GRID, "--quiet", "--runs", tmp_path / "given-back", **thresholds).returncode == 0
    given_back = tmp_path / "given-back" / kept.relative_to(tmp_path / "kept")
    assert leavings(given_back) == leavings(kept)
