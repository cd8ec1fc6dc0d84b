"""Sweeps on a Ray cluster: stopped, left by a node, and with a run that another process still writes."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock
from running import peer_rl, surroundings
from sweeping import assert_same, newest_checkpoints, start, training_processes, wait_until, write_grid

from peer_rl.cli.train import read_options
from peer_rl.errors import PeerError
from peer_rl.launch import ray_engine as module
from peer_rl.launch.engine import make_engine
from peer_rl.launch.jobs import Job
from peer_rl.launch.ray_engine import RayEngine
from peer_rl.launch.sweep import read_sweep
from peer_rl.settings import configure
from peer_rl.training.rundir import RunDirectory, run_path
from peer_rl.version import __version__

TOO_LARGE = "[[grid]]\n[[grid]]\nthreads = 64\nseeds = [9]\n"
on_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")


@pytest.fixture
def cluster(monkeypatch):
    """A head without cores, and two nodes with one each: processes of this machine, as if it were three."""
    for name, value in {**surroundings(), "RAY_USAGE_STATS_ENABLED": "0"}.items():
        monkeypatch.setenv(name, value)
    from ray.cluster_utils import Cluster

    fast = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}  # to notice a dead node
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": fast})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        cluster.shutdown()


def node_of(cluster, training: int):
    """The node on which a run trains: one of Ray's processes above it is the node's."""
    above = [training]
    while above[-1] > 1:
        above.append(int(Path(f"/proc/{above[-1]}/stat").read_text().rpartition(")")[2].split()[1]))
    (node,) = (
        node
        for node in cluster.worker_nodes
        if any(info.process.pid in above for infos in node.all_processes.values() for info in infos)
    )
    return node


def is_waiting(job: Job) -> bool:
    return job.last_words().startswith("waiting: another process still writes this run")


@pytest.mark.slow
@on_linux
def test_a_sweep_that_is_stopped_and_loses_a_node_ends_as_if_nothing_had_happened(cluster, undisturbed, tmp_path):
    """First SIGINT. Then, under the same command, one node is killed, and a stray process holds one of the runs.

    A run that no node can hold is added, and fails alone.
    """
    runs, file = tmp_path / "ray", write_grid(tmp_path)
    words = [file, "--engine", "ray", "--address", cluster.address, "--runs", runs]
    default = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with start(*words, stderr=subprocess.PIPE, text=True, **default) as sweep:
        wait_until(lambda: newest_checkpoints(runs), "a node trains")
        sweep.send_signal(signal.SIGINT)
        assert sweep.wait(timeout=300) == 130
        assert "the same command resumes" in sweep.stderr.read()
    wait_until(lambda: not training_processes(runs), "the runs stop with the sweep", seconds=30)

    begun = newest_checkpoints(runs)
    assert begun, "the runs were stopped, not waited for"
    held = next(job for job in read_sweep(file, runs).jobs if str(job.path.relative_to(runs)) in begun)
    file.write_text(file.read_text() + TOO_LARGE)
    with stray_training(held) as stray, start(*words, stderr=subprocess.PIPE, text=True) as sweep:
        wait_until(lambda: is_waiting(held), "the task waits for the run")
        victim, name = wait_until(lambda: in_the_middle(runs), "the other node trains another run")
        tries = tries_of(runs / name)
        cluster.remove_node(node_of(cluster, victim), allow_graceful=False)
        stray.kill()
        _, told = sweep.communicate(timeout=900)
    assert sweep.returncode == 2
    reasons = told.splitlines()[-1].partition("1 of 4 runs failed. ")[2]
    assert "seed9: no node of the cluster has 64 CPU, 0.5 GB of memory, which the run needs" in reasons, told
    assert tries_of(runs / name) == tries + 1, "the run was started once more after the node's death"
    assert_same(runs, undisturbed)
    assert not list(runs.glob(".shared-*")), "the token is taken away"


@contextmanager
def stray_training(job: Job) -> Iterator[subprocess.Popen]:
    """A process that has the run and does not move."""
    stray = subprocess.Popen([sys.executable, "-m", "peer_rl", *job.words, "--quiet"], env=surroundings())
    try:
        wait_until(lambda: is_locked(job), "it has the run")
        stray.send_signal(signal.SIGSTOP)
        yield stray
    finally:
        stray.kill()
        stray.wait()


def in_the_middle(runs: Path) -> tuple[int, str] | None:
    """A run of the sweep that has a checkpoint and is far from its end, and its run."""
    found = newest_checkpoints(runs)
    for pid, words in training_processes(runs).items():
        options, _ = read_options(words[words.index("train") + 1 :])
        name = str(run_path(options.run, runs).relative_to(runs))
        if 0 < found.get(name, 0) < 800:
            return pid, name
    return None


def tries_of(run: Path) -> int:
    return (run / "log.txt").read_text().count("task of Ray")


def is_locked(job: Job) -> bool:
    """Asked of the system: whoever tries the lock has it for a moment, and a run that begins then is refused."""
    lock = job.path / ".lock"
    return lock.exists() and f":{lock.stat().st_ino} " in Path("/proc/locks").read_text()


@pytest.fixture
def order(tmp_path):
    token = tmp_path / ".shared-x"
    token.touch()
    return module._Order(("train",), str(tmp_path), 1, str(tmp_path), str(token), __version__)


def test_a_node_says_why_it_cannot_train(order, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SHARE_SECONDS", 0.0)
    assert module._problem_here(order) == ""
    assert "but the sweep was started with 99" in module._problem_here(replace(order, version="99"))
    elsewhere = replace(order, token="/not/shared/.shared-x")
    code, complaint = module._train(elsewhere)
    assert code == 2
    assert "does not see /not/shared; choose a --runs on a file system that all nodes share" in complaint


def test_the_wait_for_a_run_is_bounded_and_reported(tmp_path):
    with FileLock(tmp_path / ".lock"):
        assert not module._wait_for_lock(tmp_path, seconds=0.3)
    assert "waiting: another process still writes this run" in (tmp_path / "log.txt").read_text()
    assert module._wait_for_lock(tmp_path, seconds=0.3)


def test_a_killed_run_is_tried_again(order, tmp_path, monkeypatch):
    monkeypatch.setattr(module.child, "start", lambda *_, **__: subprocess.Popen(["sh", "-c", "kill -9 $$"]))
    with pytest.raises(module.TrainingKilledError, match="killed by SIGKILL"):
        module._train(order)


def test_shares_of_cores_memory_and_gpus(tmp_path):
    """Agents that see pixels get a share of a GPU where there is one; a run stays on the device that it began on."""
    engine = RayEngine(workers=None, address="auto", gpu_share=0.1)
    pixels = Job.of(configure("curl-rainbow", "atari/pong", threads=2), tmp_path)
    pixels.memory = 7
    state = Job.of(configure("td3", "pybullet/hopper"), tmp_path)
    chosen = Job.of(configure("td3", "pybullet/hopper", device="cuda:0"), tmp_path)
    assert [engine._device(job) for job in (pixels, state, chosen)] == ["cpu", "cpu", "cuda:0"]
    engine._gpus = True
    assert [engine._device(job) for job in (pixels, state)] == ["cuda", "cpu"]
    assert engine._wants(pixels, "cuda") == {"CPU": 2, "GPU": 0.1, "memory": 7}
    assert engine._wants(state, "cpu")["GPU"] == 0
    with RunDirectory(pixels.path, replace(pixels.config, device="cpu")):
        pass
    assert engine._device(pixels) == "cpu"


def test_workers_get_absolute_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    engine = RayEngine(workers=None, address="auto", gpu_share=None)
    order = engine._order(Job.of(configure("dqn", "gridworld/paper"), Path("runs")), "cpu")
    assert order.words[-4:] == ("--runs", f"{tmp_path}/runs", "--device", "cpu")
    assert order.path == f"{tmp_path}/runs/paper/gridworld-paper/dqn/seed0"


def test_without_ray_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    sentence = r"--engine ray needs ray; install it with: pip install 'peer-rl\[ray\]'"
    with pytest.raises(PeerError, match=sentence), make_engine("ray"):
        pass


@pytest.mark.slow
def test_no_cluster_at_the_address(tmp_path):
    result = peer_rl(
        "sweep", write_grid(tmp_path), "--engine", "ray", "--address", "auto", cwd=tmp_path, RAY_ADDRESS=""
    )
    assert result.returncode == 2
    assert re.search(r"no Ray cluster at auto; start one with: ray start --head", result.stderr)
