"""The engine for a Ray cluster: every run is a task that trains in a process of its own on some node.

Nothing but words and numbers goes through Ray: run directories lie on a path that all nodes share, progress is read
from there, and a task that Ray starts again, after a worker or a whole node died, resumes from the last checkpoint.
"""

from __future__ import annotations

import os
import platform
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from filelock import FileLock, Timeout

from peer_rl.errors import PeerError, RunError
from peer_rl.launch import child
from peer_rl.launch.estimate import amount, estimate_memory
from peer_rl.launch.jobs import Ended, Job, make_folder
from peer_rl.launch.local_engine import reason_of
from peer_rl.packages import from_extra
from peer_rl.settings import find_agent
from peer_rl.settings.run import AnyRunConfig
from peer_rl.settings.tasks import find_task
from peer_rl.training.rundir import read_config
from peer_rl.version import __version__

GPU_SHARE = 0.25
_RETRIES = 5
"""Times that Ray starts a task again whose worker or node died."""
_POLL_SECONDS = 0.5
_LOCK_SECONDS = 600.0
"""A run whose worker died stops within seconds; one on a node that only lost its network may take longer."""
_SHARE_SECONDS = 30.0
"""Network file systems show a new file to other nodes with some delay."""
_STOP_SECONDS = 40.0
_STOPPED = (130, 143)
"""Exit codes of an interrupted run."""
_WAITING = "waiting:"


class TrainingKilledError(Exception):
    """The run was killed from outside, by the system or by a user: it is tried again."""


@dataclass
class _Task:
    job: Job
    log_size: int
    """Of log.txt when the task was handed to Ray: it grows when the task begins."""


@dataclass(frozen=True)
class _Order:
    """All that a worker needs to know."""

    words: tuple[str, ...]
    path: str
    threads: int
    cwd: str
    token: str
    version: str


class RayEngine:
    """Hands jobs to Ray with the cores, memory and GPU share that they need; see ``Engine`` for the methods."""

    def __init__(self, *, workers: int | None, address: str | None, gpu_share: float | None) -> None:
        self.workers, self.address = workers, address
        self.gpu_share = GPU_SHARE if gpu_share is None else gpu_share
        at_once = f", at most {workers} at a time" if workers else ""
        self.capacity = f"on {'a Ray cluster' if address else 'a Ray cluster of this machine alone'}{at_once}"
        self._ray: Any = None
        self._owned = False
        self._waiting: list[Job] = []
        self._tasks: dict[Any, _Task] = {}
        self._token: Path | None = None
        self._gpus = False

    def __enter__(self) -> RayEngine:
        _import_ray()
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue the jobs, in this order."""
        if jobs:
            estimate_memory(jobs)
            self._connect(jobs[0].runs)
            self._waiting += jobs

    def running(self) -> list[Job]:
        """The jobs whose tasks have begun; others wait for a node."""
        return [task.job for task in self._tasks.values() if _size(task.job.log) > task.log_size]

    def notes(self) -> dict[str, str]:
        """What running jobs wait for: a process on a lost node may still hold the run."""
        words = {job.title: job.last_words() for job in self.running()}
        return {title: said for title, said in words.items() if said.startswith(_WAITING)}

    def news(self) -> list[str]:
        """None but what the jobs' notes say."""
        return []

    def poll(self) -> list[Ended]:
        """Hand over what may run; then see who is through."""
        ended = self._hand_over()
        if not self._tasks:
            return ended
        try:
            ready, _ = self._ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=_POLL_SECONDS)
        except self._ray.exceptions.RayError as error:
            self._tasks.clear()
            raise RunError(f"the Ray cluster is gone ({_first_line(error)}); the same command resumes") from error
        return ended + [self._collect(reference) for reference in ready]

    def stop(self) -> None:
        """Stop all runs."""
        self._waiting.clear()
        for reference in self._tasks:
            self._ray.cancel(reference, recursive=False)
        if self._tasks:
            self._ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=_STOP_SECONDS)
        self._tasks.clear()

    def close(self) -> None:
        """Stop, and leave the cluster."""
        try:
            self.stop()
        finally:
            if self._token:
                self._token.unlink(missing_ok=True)
            if self._owned:
                self._ray.shutdown()

    def _connect(self, runs: Path) -> None:
        if self._ray:
            return
        self._ray = _import_ray()
        if not self._ray.is_initialized():
            _join(self._ray, self.address)
            self._owned = True
        self._gpus = self._ray.cluster_resources().get("GPU", 0) > 0
        make_folder(runs)
        self._token = runs.absolute() / f".shared-{uuid4().hex}"
        self._token.touch()

    def _hand_over(self) -> list[Ended]:
        refused = []
        while self._waiting and (self.workers is None or len(self._tasks) < self.workers):
            job = self._waiting.pop(0)
            device = self._device(job)
            wants = self._wants(job, device)
            if not self._some_node_has(wants):
                refused.append(Ended(job, f"no node of the cluster has {_describe(wants)}, which the run needs"))
                continue
            log_size = _size(job.log)
            options = {
                "num_cpus": wants["CPU"],
                "num_gpus": wants["GPU"],
                "memory": wants["memory"],
                "max_retries": _RETRIES,
                "retry_exceptions": [TrainingKilledError],
                "scheduling_strategy": "SPREAD",
                "name": job.title,
            }
            reference = self._ray.remote(**options)(_train).remote(self._order(job, device))
            self._tasks[reference] = _Task(job, log_size)
        return refused

    def _order(self, job: Job, device: str) -> _Order:
        there = replace(job, runs=job.runs.absolute())  # workers have other working directories
        return _Order(
            words=(*there.words, *(("--device", device) if job.config.device == "auto" else ())),
            path=str(there.path),
            threads=job.config.threads,
            cwd=os.getcwd(),
            token=str(self._token),
            version=__version__,
        )

    def _device(self, job: Job) -> str:
        """A run resumes only on the kind of device that it began on, so a task must not end up on just any."""
        if job.config.device != "auto":
            return job.config.device
        with suppress(PeerError):  # not begun, or damaged, which the run itself reports
            return read_config(job.path).device
        return "cuda" if self._gpus and self.gpu_share and sees_frames(job.config) else "cpu"

    def _wants(self, job: Job, device: str) -> dict[str, float]:
        gpu = self.gpu_share if device.startswith("cuda") else 0
        return {"CPU": job.config.threads, "GPU": gpu, "memory": job.memory}

    def _some_node_has(self, wants: dict[str, float]) -> bool:
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        return any(all(node.get(name, 0) >= value for name, value in wants.items()) for node in nodes)

    def _collect(self, reference: Any) -> Ended:
        job = self._tasks.pop(reference).job
        try:
            code, complaint = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            return Ended(job, f"Ray gave up: {_first_line(getattr(error, 'cause', None) or error)}")
        return Ended(job, complaint or reason_of(job, code))


def _train(order: _Order) -> tuple[int, str]:
    """On a worker: train in a process of its own; returns its exit code, and what is wrong with this node, if anything.

    The training stops with this worker (``child.py``); if the worker is gone and the training not yet, the next try
    finds the run locked and waits.
    """
    if threading.current_thread() is threading.main_thread():
        # Ray cancels a task as Ctrl-C would, which a node that was started in the background ignores
        signal.signal(signal.SIGINT, signal.default_int_handler)
    problem = _problem_here(order)
    if problem:
        return 2, problem
    path = Path(order.path)
    path.mkdir(parents=True, exist_ok=True)
    with (path / "log.txt").open("a") as log:
        print(f"on {platform.node()}, task of Ray", file=log)
    if not _wait_for_lock(path):
        return 2, f"another process has been writing {path} for {_LOCK_SECONDS:.0f} s; stop it, or wait for it"
    cwd = order.cwd if Path(order.cwd).is_dir() else None
    process = child.start(list(order.words), path, threads=order.threads, cwd=cwd)
    try:
        while process.poll() is None:
            time.sleep(0.1)
    finally:
        child.stop([process])
    code = process.returncode
    if code < 0 or code in _STOPPED:
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else "stopped"
        raise TrainingKilledError(f"the training was {how} on {platform.node()}")
    return code, ""


def _problem_here(order: _Order) -> str:
    """Why this node cannot train the run, if it cannot."""
    here = platform.node()
    if __version__ != order.version:
        return f"node {here} has peer-rl {__version__}, but the sweep was started with {order.version}"
    deadline = time.monotonic() + _SHARE_SECONDS
    while not Path(order.token).exists():
        if time.monotonic() > deadline:
            folder = Path(order.token).parent
            return f"node {here} does not see {folder}; choose a --runs on a file system that all nodes share"
        time.sleep(0.5)
    return ""


def _wait_for_lock(path: Path, seconds: float = _LOCK_SECONDS) -> bool:
    """Wait until no process writes the run and note it in its log. False if that takes too long."""
    lock = FileLock(path / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        with (path / "log.txt").open("a") as log:
            print(f"{_WAITING} another process still writes this run; at most {seconds:.0f} s", file=log)
        try:
            lock.acquire(timeout=seconds, poll_interval=0.2)
        except Timeout:
            return False
    lock.release()
    return True


def _import_ray() -> Any:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # no usage statistics
    with from_extra("ray", "--engine ray"):
        import ray
    return ray


def _join(ray: Any, address: str | None) -> None:
    """Connect to a cluster, or start one on this machine. Ray must not send this folder to the nodes."""
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    options: dict[str, Any] = {} if address else {"include_dashboard": False}
    try:
        ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", runtime_env={}, **options)
    except (ConnectionError, ValueError) as error:  # ValueError: no address at all
        raise RunError(
            f"no Ray cluster at {address}; start one with: ray start --head --disable-usage-stats"
        ) from error
    finally:
        if main:  # Ray installs its own, which ends the process without stopping the runs
            signal.signal(signal.SIGTERM, handler)


def sees_frames(config: AnyRunConfig) -> bool:
    """Whether the agent reads frames, as far as is known without making the environment."""
    return find_agent(config.agent).observations == "frames" or find_task(config.task).suite == "atari"


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _describe(wants: dict[str, float]) -> str:
    gpu = f" and {wants['GPU']:g} GPU" if wants["GPU"] else ""
    return f"{wants['CPU']:g} CPU, {amount(int(wants['memory']))} of memory{gpu}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
