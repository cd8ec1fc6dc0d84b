"""What an agent is told about its environment: shapes and types, nothing else."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from peer_rl.errors import ConfigError


@dataclass(frozen=True)
class EnvSpec:
    """Observations and actions as arrays. JSON can hold it, so a policy loads without its environment."""

    observation_shape: tuple[int, ...]
    observation_dtype: str
    one_hot: int
    """Number of states if the environment gives an integer that we turn into a one-hot vector, else 0."""
    one_hot_start: int
    """The integer that the first one-hot unit stands for."""
    actions: int
    """Number of discrete actions, 0 if the action space is continuous."""
    action_start: int
    """The environment's number for our action 0."""

    def as_json(self) -> dict[str, Any]:
        """For manifest.json."""
        return {**asdict(self), "observation_shape": list(self.observation_shape)}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> EnvSpec:
        """The inverse of ``as_json``."""
        return cls(**{**stored, "observation_shape": tuple(stored["observation_shape"])})

    def encode(self, observation: Any) -> np.ndarray[Any, Any]:
        """An observation as the environment gives it, or a batch of them, as the agent reads it."""
        array = np.asarray(observation)
        if self.one_hot and array.dtype.kind in "iu":
            units = np.arange(self.one_hot_start, self.one_hot_start + self.one_hot)
            one_hot: np.ndarray[Any, Any] = np.equal(array[..., None], units).astype(self.observation_dtype)
            return one_hot
        expected = self.observation_shape
        if array.shape[array.ndim - len(expected) :] != expected or array.ndim > len(expected) + 1:
            raise ConfigError(f"obs must have shape {expected}, or (batch, ...) of it, but has {array.shape}")
        return np.array(array, dtype=self.observation_dtype)  # a copy: some environments write into one array for ever
