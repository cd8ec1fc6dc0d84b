"""Makes any task's environment ready for our loop: arrays out, a time limit always."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import find_highest_version, get_env_id, parse_env_id

from peer_rl.envs.checked import Checked
from peer_rl.envs.headless import check_backend, choose_backend, draw_quickly
from peer_rl.envs.pixels import StackedFrames, is_image
from peer_rl.envs.simulators import check_installed, engine_of, quiet, settle
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.objects import load_object
from peer_rl.settings.environment import check_environment, rendering_of, task_of
from peer_rl.settings.run import AnyRunConfig
from peer_rl.settings.tasks import Rendering, Task

Env = gym.Env[Any, Any]
_MOST_STATES = 1 << 20
TIME_LIMIT = 10_000
"""Agent steps of an episode where neither the environment nor the user sets a limit."""


def env_of(config: AnyRunConfig, *, render_mode: str | None = None) -> Env:
    """A run's environment; ``render_mode`` is for videos. Training and evaluation both make it here."""
    check_environment(config)
    rendering, limit = rendering_of(config), config.max_episode_steps
    env = make_env(task_of(config), rendering=rendering, max_episode_steps=limit, render_mode=render_mode)
    if config.frame_stack is not None and not isinstance(env, StackedFrames):
        env.close()
        raise ConfigError(f"task {config.task} renders no frames to stack; leave out --frame-stack")
    if config.encoding == "one-hot":
        return env
    if not isinstance(env.observation_space, spaces.Discrete):
        env.close()
        raise ConfigError(f"task {config.task} has no numbered states; leave out --encoding")
    return IntegerState(env)


class IntegerState(gym.Wrapper[Any, Any, Any, Any]):
    """Marks an environment whose states reach the agent as numbers instead of one-hot vectors."""


def make_env(
    task: Task,
    *,
    rendering: Rendering | None = None,
    max_episode_steps: int | None = None,
    render_mode: str | None = None,
) -> Env:
    """The task's environment; a ``rendering`` is what it shows instead of its state. Seed every reset."""
    if task.suite == "custom":
        env = _factory(task, render_mode)
    elif task.suite == "dmc":
        env = _control(task, rendering, render_mode, endless=max_episode_steps is not None)
    else:
        env = _registered(task, max_episode_steps, render_mode)
    limited = task.suite == "dmc" or (env.spec is not None and env.spec.max_episode_steps is not None)
    if max_episode_steps is not None and task.suite in ("custom", "dmc"):
        env = gym.wrappers.TimeLimit(env, max_episode_steps)
    elif max_episode_steps is None and not limited:
        env = gym.wrappers.TimeLimit(env, TIME_LIMIT)
    _check_spaces(task, env)
    return StackedFrames(env, task.stack) if is_image(env.observation_space) else env


def _registered(task: Task, max_episode_steps: int | None, render_mode: str | None) -> Env:
    _check_version(task)
    engine = engine_of(task)
    check_installed(task, engine)
    if engine == "mujoco":
        choose_backend() if render_mode else check_backend()
    try:
        with quiet(engine):
            if engine == "atari":
                return _atari(task, max_episode_steps, render_mode)
            options = {**dict(task.options), "max_episode_steps": max_episode_steps, "render_mode": render_mode}
            env = gym.make(task.make, disable_env_checker=True, **options)
            settle(env, engine)
            if engine == "mujoco" and render_mode:
                simulated: Any = env.unwrapped
                draw_quickly(simulated.model)
            return env
    except gym.error.DependencyNotInstalled as error:
        raise ConfigError(f"task {task.name} needs a package that is missing: {error}") from error
    except Exception as error:
        raise ConfigError(f"cannot make task {task.name}: {_unknown(task, error) or _reason(error)}") from error


def _unknown(task: Task, error: Exception) -> str:
    """Most packages register their environments when they are imported, which Gymnasium does for PACKAGE:ID."""
    unknown = isinstance(error, gym.error.NameNotFound | gym.error.NamespaceNotFound)
    if not unknown or ":" in task.make or "Did you mean" in str(error):
        return ""
    said = _reason(error).rstrip(".")
    return f"{said}; if a package of yours registers it, name that too: gym/PACKAGE:{task.make}"


def _control(task: Task, rendering: Rendering | None, render_mode: str | None, *, endless: bool) -> Env:
    check_installed(task, "dmc")
    check_backend()
    # from state nothing is rendered, but the renderer is fixed when dm_control is imported, and a video may follow
    with contextlib.nullcontext() if rendering or render_mode else contextlib.suppress(ConfigError):
        choose_backend()
    try:
        with quiet("dmc"):
            from peer_rl.envs.dmc import Control

            return Control(task, rendering=rendering, endless=endless, render_mode=render_mode)
    except Exception as error:
        fix = " (if rendering fails, peer-rl doctor says what to install)" if rendering or render_mode else ""
        raise ConfigError(f"cannot make task {task.name}: {_reason(error)}{fix}") from error


def _atari(task: Task, max_episode_steps: int | None, render_mode: str | None) -> Env:
    from peer_rl.envs.atari import LostLives, make_game

    options: dict[str, Any] = {"max_episode_steps": max_episode_steps, "render_mode": render_mode}
    if task.suite == "atari":
        return make_game(task, **options)
    return LostLives(gym.make(task.make, disable_env_checker=True, **options))


def _check_version(task: Task) -> None:
    """gym/Hopper would be another environment with another Gymnasium: a run says which one it was (law 8)."""
    with contextlib.suppress(gym.error.Error):  # gym.make explains a malformed id
        space, name, version = parse_env_id(task.make.rpartition(":")[2])
        newest = find_highest_version(space, name)
        if version is None and newest is not None:
            full = get_env_id(space, name, newest)
            raise ConfigError(f"task {task.name} names no version; did you mean gym/{full}?")


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _factory(task: Task, render_mode: str | None) -> Env:
    factory = load_object(task.make)
    if render_mode and "render_mode" not in inspect.signature(factory).parameters:
        raise ConfigError(
            f"task {task.name} cannot be rendered: let its factory take render_mode, and render() return an rgb_array"
        )
    try:
        env = factory(render_mode=render_mode) if render_mode else factory()
    except (Exception, SystemExit) as error:
        raise ConfigError(f"cannot make task {task.name}: {_reason(error)}") from error
    if not isinstance(env, gym.Env):
        raise ConfigError(f"{task.name} must return a gymnasium.Env, but returned {type(env).__name__}")
    return Checked(env, task.name)


def _check_spaces(task: Task, env: Env) -> None:
    action = getattr(env, "action_space", None)
    for name, space in (("observation", getattr(env, "observation_space", None)), ("action", action)):
        if not isinstance(space, spaces.Box | spaces.Discrete):
            kind = type(space).__name__
            raise ConfigError(
                f"task {task.name} has a {kind} {name} space, but only Box and Discrete are supported; "
                + ("wrap it (gymnasium.wrappers.FlattenObservation may do)" if name == "observation" else "wrap it")
            )
        if isinstance(space, spaces.Box) and 0 in space.shape:
            raise ConfigError(f"task {task.name} has an empty {name} space, {space}; give it at least one number")
    if isinstance(action, spaces.Box):
        finite = np.isfinite(action.low).all() and np.isfinite(action.high).all()
        if not (np.issubdtype(action.dtype, np.floating) and finite and (action.low <= action.high).all()):
            raise ConfigError(
                f"task {task.name} has the action space {action}, but only Box of floats with finite bounds is "
                "supported, the lower ones first; give it some, or wrap it"
            )


def spec_of(env: Env) -> EnvSpec:
    """The spec of an environment."""
    seen, acted = env.observation_space, env.action_space
    integer = isinstance(env, IntegerState)
    if isinstance(seen, spaces.Discrete) and not integer and seen.n > _MOST_STATES:
        raise ConfigError(f"{seen.n} states are too many for a vector with one unit each; take --encoding integer")
    one_hot = int(seen.n) if isinstance(seen, spaces.Discrete) and not integer else 0
    shape = (one_hot or 1,) if isinstance(seen, spaces.Discrete) else tuple(int(size) for size in seen.shape or ())
    as_pixels = isinstance(seen, spaces.Box) and seen.dtype == np.uint8 and len(shape) == 3
    action: dict[str, Any] = {}
    if isinstance(acted, spaces.Discrete):
        action = {"actions": int(acted.n), "action_start": int(acted.start)}
    elif isinstance(acted, spaces.Box):
        action = {
            "action_shape": tuple(int(size) for size in acted.shape),
            "action_low": tuple(acted.low.ravel().tolist()),
            "action_high": tuple(acted.high.ravel().tolist()),
        }
    return EnvSpec(
        observation_shape=shape,
        observation_dtype="uint8" if as_pixels else "float32",
        stack=env.count if isinstance(env, StackedFrames) else 1,
        one_hot=one_hot,
        one_hot_start=int(seen.start) if isinstance(seen, spaces.Discrete) and one_hot else 0,
        integer=integer,
        **action,
    )
