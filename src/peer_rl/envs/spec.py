"""What an agent knows of its environment: shapes and types, nothing else."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from peer_rl.errors import ConfigError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class EnvSpec:
    """Observations and actions as arrays. JSON can hold it, so a policy loads without its environment.

    Agents act with an integer from 0, or with a vector in [-1, 1]; ``decode`` turns either into what the
    environment takes.
    """

    observation_shape: tuple[int, ...]
    observation_dtype: str
    stack: int = 1
    """Frames in one observation, newest last, along the first axis: (stack * channels, height, width)."""
    one_hot: int = 0
    """Number of states if the environment gives an integer that we turn into a one-hot vector, else 0."""
    one_hot_start: int = 0
    """The integer that the first one-hot unit stands for."""
    integer: bool = False
    """Whether the environment gives an integer that reaches the agent as one float."""
    actions: int = 0
    """Number of discrete actions, 0 if the action space is continuous."""
    action_start: int = 0
    """The environment's number for our action 0."""
    action_shape: tuple[int, ...] = ()
    """Shape of a continuous action."""
    action_low: tuple[float, ...] = ()
    """Lowest value of each unit of a continuous action, flattened."""
    action_high: tuple[float, ...] = ()
    """Highest value of each unit of a continuous action, flattened."""

    def as_json(self) -> dict[str, Any]:
        """For manifest.json."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> EnvSpec:
        """The inverse of ``as_json``; TypeError for what it does not write."""
        values: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in stored.items()}
        for name, value in values.items():
            kind = str(cls.__annotations__.get(name))
            parts = value if isinstance(value, tuple) else (value,)
            fits = all(type(part).__name__ in kind or (type(part) is int and "float" in kind) for part in parts)
            if not fits or isinstance(value, tuple) != kind.startswith("tuple"):
                raise TypeError(f"{name} is {str(value)[:50]}")
        return cls(**values)

    @property
    def is_image(self) -> bool:
        """Whether observations are frames, (channels, height, width) in uint8."""
        return len(self.observation_shape) == 3 and self.observation_dtype == "uint8"

    @property
    def action_size(self) -> int:
        """Units of a continuous action."""
        return len(self.action_low)

    @property
    def action_column(self) -> tuple[tuple[int, ...], str]:
        """Shape and type of an agent's action in the replay."""
        return ((), "int64") if self.actions else ((self.action_size,), "float32")

    def encode(self, observation: Any) -> Array:
        """An observation as the environment gives it, or a batch of them, as the agent reads it."""
        try:
            return self._encode(np.asarray(observation))
        except (ValueError, TypeError, OverflowError) as error:
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(f"obs must be an array of numbers, but is not: {error}") from error

    def _encode(self, array: Array) -> Array:
        if self.one_hot and array.dtype.kind in "iu":
            units = np.arange(self.one_hot_start, self.one_hot_start + self.one_hot)
            one_hot: Array = np.equal(array[..., None], units).astype(self.observation_dtype)
            return one_hot
        if self.integer and array.dtype.kind in "iu":
            return array[..., None].astype(self.observation_dtype)
        expected = self.observation_shape
        if array.shape[array.ndim - len(expected) :] != expected or array.ndim > len(expected) + 1:
            raise ConfigError(f"obs must have shape {expected}, or (batch, ...) of it, but has {array.shape}")
        if self.is_image and array.dtype.kind not in "iu":  # floats in [0, 1] would all become 0
            raise ConfigError(f"obs must be frames of whole numbers from 0 to 255, but is {array.dtype}")
        return np.array(array, dtype=self.observation_dtype)  # a copy: some environments reuse one array

    def decode(self, action: Any) -> Any:
        """An agent's action, or a batch of them, as the environment takes it."""
        if self.actions:
            return action + self.action_start
        low, high, centre, half = self._action_range
        # in double precision and clipped, so that rounding never leaves the range; exact where the range is [-1, 1]
        scaled: Array = (centre + half * action).clip(low, high).astype(np.float32)
        return scaled.reshape((*action.shape[:-1], *self.action_shape))

    @cached_property
    def _action_range(self) -> tuple[Array, Array, Array, Array]:
        low, high = np.array(self.action_low), np.array(self.action_high)
        return low, high, (high + low) / 2, (high - low) / 2

    def random_action(self, rng: np.random.Generator) -> Any:
        """A uniformly random action of the agent."""
        if self.actions:
            return rng.integers(self.actions)
        return rng.uniform(-1.0, 1.0, self.action_size).astype(np.float32)
