"""Frames per second of DMControl's tasks, by renderer, quality and size, each renderer in a process of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from typing import Any

import numpy as np

from peer_rl.envs.headless import found_backends
from peer_rl.envs.make import make_env
from peer_rl.settings.tasks import Rendering, find_task

TASKS = ("dmc/cartpole-swingup", "dmc/cheetah-run")
SIZES = (84, 64)
QUALITIES = ("full", "draft")
Row = dict[str, Any]


def measure_renderers(pictures: int, report: Callable[[str], None]) -> list[Row]:
    """Agent steps per second of one core's time, physics at the paper's action repeat and one frame each.

    Nothing is learned. Empty where dm_control or every renderer is missing.
    """
    rows: list[Row] = []
    for backend in found_backends() if find_spec("dm_control") else ():
        report(f"DMControl drawn by {backend}")
        with get_context("spawn").Pool(1) as process:  # dm_control takes one renderer for good when it is imported
            rows += process.apply(_measure, (backend, pictures))
    return rows


def _measure(backend: str, pictures: int) -> list[Row]:
    os.environ["MUJOCO_GL"] = os.environ["PYOPENGL_PLATFORM"] = backend  # an inherited platform would win
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return [
        {
            "renderer": backend,
            "task": task,
            "size": size,
            "quality": quality,
            "pictures_per_second": _pictures_per_second(task, Rendering(size, quality), pictures),
        }
        for task, size, quality in product(TASKS, SIZES, QUALITIES)
    ]


def _pictures_per_second(task: str, rendering: Rendering, pictures: int) -> float:
    limit = pictures + 10  # no reset is timed
    env = make_env(find_task(task), rendering=rendering, max_episode_steps=limit)
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (pictures + 5, *(env.action_space.shape or ())))
    for action in actions[:5]:
        env.step(action)
    began = time.process_time()  # of all of the renderer's threads, which share the one core
    for action in actions[5:]:
        env.step(action)
    seconds = time.process_time() - began
    env.close()
    return pictures / seconds
