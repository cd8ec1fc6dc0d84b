"""What a replay takes is printed and checked before it is allocated."""

import json
import os
import sys
from pathlib import Path

import pytest
from replay.plain import CPU, PlainReplay, frame_spec, replay_of
from running import tiny_config, tiny_run

from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.launch.api import train
from peer_rl.replay import make
from peer_rl.replay.frames import FrameStore
from peer_rl.replay.make import check_memory, make_replay, replay_size
from peer_rl.replay.memory import available_memory
from peer_rl.replay.priority import PrioritisedSampler
from peer_rl.replay.replay import UniformSampler
from peer_rl.replay.store import VectorStore
from peer_rl.settings.replay import PrioritisedConfig
from peer_rl.settings.run import LearningConfig

ATARI = EnvSpec((4, 84, 84), "uint8", stack=4, actions=18)
BOX = {"action_shape": (6,), "action_low": (-1.0,) * 6, "action_high": (1.0,) * 6}
DMCONTROL = EnvSpec((9, 100, 100), "uint8", stack=3, **BOX)
CHEETAH = EnvSpec((17,), "float32", **BOX)
FULL = LearningConfig(buffer_size=100_000)


@pytest.mark.parametrize("spec", [ATARI, DMCONTROL, CHEETAH])
@pytest.mark.parametrize("kind", [LearningConfig, PrioritisedConfig])
def test_the_formula_is_what_the_arrays_take(spec, kind):
    learning = kind(buffer_size=1000)
    replay = make_replay(learning, spec, CPU)
    arrays = [*replay.ring.columns.values()]
    arrays += [replay.store._row_of] if spec.stack > 1 else []
    arrays += [replay.sampler._tree._nodes] if kind is PrioritisedConfig else []
    assert replay_size(learning, spec).bytes == sum(array.nbytes for array in arrays)


def test_the_designs_limits_hold():
    """100k frames: Atari in 0.75 GB, with priorities; DMControl in 3.1 GB."""
    assert replay_size(PrioritisedConfig(buffer_size=100_000), ATARI).bytes == 100_000 * (7056 + 8 + 10 + 8) + 2**21
    assert replay_size(PrioritisedConfig(buffer_size=100_000), ATARI).bytes < 0.75e9
    assert replay_size(FULL, DMCONTROL).bytes < 3.1e9


@pytest.mark.parametrize(("spec", "store"), [(ATARI, FrameStore), (CHEETAH, VectorStore)])
@pytest.mark.parametrize(
    ("learning", "sampler"),
    [
        (LearningConfig(), UniformSampler),
        (PrioritisedConfig(), PrioritisedSampler),
        (PrioritisedConfig(priority_exponent=0.0), UniformSampler),
    ],
)
def test_observations_choose_the_store_and_settings_the_sampler(spec, store, learning, sampler):
    replay = make_replay(learning, spec, CPU)
    assert type(replay.store) is store
    assert type(replay.sampler) is sampler


def test_a_run_too_short_to_fill_its_replay_needs_less():
    assert (
        replay_size(FULL, CHEETAH, steps=1_000).bytes == replay_size(LearningConfig(buffer_size=1_000), CHEETAH).bytes
    )
    assert replay_size(FULL, ATARI, steps=1_000).rows == 2_000, "an episode of one step has two frames"
    assert replay_size(FULL, ATARI, steps=10**6) == replay_size(FULL, ATARI)


def test_a_short_runs_replay_never_holds_more_rows_than_printed():
    replay, plain = replay_of(frame_spec(2, (1, 2, 2)), 1_000), PlainReplay(2, (1, 2, 2))
    for _ in range(100):
        plain.play(replay, "terminated")
    size = replay_size(LearningConfig(buffer_size=1_000), frame_spec(2, (1, 2, 2)), steps=100)
    assert replay.ring.total == size.rows


def test_a_replay_that_does_not_fit_is_refused_in_one_sentence_that_names_the_option():
    with pytest.raises(ConfigError) as caught:
        check_memory(replay_size(FULL, ATARI), 350_000_000)
    assert str(caught.value) == (
        "the replay of 100000 frames of 1x84x84 needs 0.71 GB, but this machine has 0.35 GB available; "
        "choose a smaller --buffer-size"
    )
    check_memory(replay_size(FULL, ATARI), 800_000_000)
    check_memory(replay_size(FULL, ATARI), None)


def test_it_is_refused_before_anything_is_allocated_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(make, "available_memory", lambda: 10_000)
    monkeypatch.setattr(make, "Ring", lambda *arguments: pytest.fail("allocated"))
    with pytest.raises(ConfigError, match=r"the replay of 300 transitions with observations of 20 needs 0\.1 MB, but"):
        train(tiny_config("dqn", encoding="one-hot", buffer_size=500), runs=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_manifest_reports_the_size(tmp_path):
    manifest = json.loads((tiny_run("dqn", tmp_path, encoding="one-hot") / "manifest.json").read_text())
    assert manifest["replay"] == {
        "rows": 180,
        "what": "transitions with observations of 20",
        "bytes": 180 * (2 * 4 * 20 + 8 + 9),
    }


@pytest.mark.parametrize(
    ("rows", "plan"),
    [(1_000_000, "the replay grows to 1000000 transitions with observations of 20, 0.18 GB"), (1_000, "")],
)
def test_a_large_replay_is_reported_when_training_begins(rows, plan, tmp_path):
    seen = []
    config = tiny_config("dqn", encoding="one-hot", steps=None, episodes=2, **{"learning.buffer_size": rows})
    train(config, runs=tmp_path, show=lambda progress: seen.append(progress.plan))
    assert set(seen) == {plan}


# -- what the machine has ----------------------------------------------------------------------------------------------


def files(root: Path, contents: dict[str, str]) -> Path:
    for name, content in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


MEMINFO = {"proc/meminfo": "MemTotal:       4000 kB\nMemFree:         100 kB\nMemAvailable:   3000 kB\n"}
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these files")


@linux
def test_what_the_system_calls_available(tmp_path):
    assert available_memory(files(tmp_path, MEMINFO)) == 3000 * 1024


@linux
def test_a_containers_limit_counts_and_its_caches_do_not(tmp_path):
    group = "sys/fs/cgroup/user/job"
    contents = {
        "proc/self/cgroup": "0::/user/job\n",
        f"{group}/memory.max": "2000000\n",
        f"{group}/memory.current": "1500000\n",
        f"{group}/memory.stat": "anon 900000\ninactive_file 100000\nactive_file 5\n",
        "sys/fs/cgroup/user/memory.max": "max\n",
        "sys/fs/cgroup/user/memory.current": "1700000\n",
    }
    assert available_memory(files(tmp_path, MEMINFO | contents)) == 600_000
    (tmp_path / "sys/fs/cgroup/user/memory.max").write_text("1750000\n")
    assert available_memory(tmp_path) == 50_000, "the limit of a group above holds too"


@linux
def test_the_first_version_of_control_groups(tmp_path):
    """In a container the path is the host's, and the limit lies at the mount."""
    contents = {
        "proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/docker/0123\n0::/\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "1000000\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "400000\n",
        "sys/fs/cgroup/memory/memory.stat": "inactive_file 7\ntotal_inactive_file 50000\n",
    }
    assert available_memory(files(tmp_path, MEMINFO | contents)) == 650_000
    (tmp_path / "sys/fs/cgroup/memory/memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert available_memory(tmp_path) == 3000 * 1024


@linux
def test_more_used_than_the_limit_leaves_nothing(tmp_path):
    group = {"sys/fs/cgroup/memory.max": "10\n", "sys/fs/cgroup/memory.current": "20\n", "proc/self/cgroup": "0::/\n"}
    assert available_memory(files(tmp_path, MEMINFO | group)) == 0


@linux
def test_files_that_are_missing_mean_that_nobody_knows(tmp_path):
    assert available_memory(tmp_path) is None


def test_this_machine_has_some():
    assert available_memory() > 10_000_000


def test_elsewhere_it_is_the_physical_memory_or_unknown(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}[name])
    assert available_memory() == 4_096_000
    monkeypatch.delattr(os, "sysconf")
    assert available_memory() is None
