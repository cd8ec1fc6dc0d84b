"""A user's environment, held to Gymnasium's API: whatever breaks it is one sentence, at the step where it happens."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from peer_rl.errors import ConfigError, RunError

_STEP = "(observation, reward, terminated, truncated, info)"


class Checked(gym.Wrapper[Any, Any, Any, Any]):
    """Checks the form of what ``reset`` and ``step`` return; EnvSpec checks the observation itself."""

    def __init__(self, env: gym.Env[Any, Any], task: str) -> None:
        super().__init__(env)
        self._task = task
        try:
            inspect.signature(env.reset).bind(seed=0)
            inspect.signature(env.step).bind(0)
        except TypeError as error:
            raise ConfigError(f"task {task}: its reset must take a seed, and its step an action ({error})") from error

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Reset, and check that an observation and info come back."""
        found = self._call(self.env.reset, seed=seed)
        if not (isinstance(found, tuple) and len(found) == 2):
            raise self._wrong("reset", "(observation, info)", found)
        return found

    def step(self, action: Any) -> Any:
        """Step, and check number and types of what comes back."""
        found = self._call(self.env.step, action)
        if not (isinstance(found, tuple) and len(found) == 5):
            raise self._wrong("step", _STEP, found)
        _, reward, terminated, truncated, info = found
        if not _is_number(reward):
            raise self._wrong("step", "a number as the reward", reward)
        for flag in (terminated, truncated):
            if not isinstance(flag, bool | np.bool_):
                raise self._wrong("step", "True or False as terminated and truncated", flag)
        if not isinstance(info, dict):
            raise self._wrong("step", "a dict as info", info)
        return found

    def close(self) -> None:
        """Close."""
        self._call(self.env.close)

    def _call(self, method: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        try:
            return method(*arguments, **keywords)
        except SystemExit as error:
            raise RunError(f"task {self._task}: its {method.__name__} ended the process (SystemExit)") from error

    def _wrong(self, method: str, expected: str, found: Any) -> ConfigError:
        kind = f"a {type(found).__name__}" + (f" of {len(found)}" if isinstance(found, tuple | list) else "")
        return ConfigError(f"task {self._task}: its {method} must return {expected}, but returned {kind}")


def _is_number(value: Any) -> bool:
    if isinstance(value, str | bytes):
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
