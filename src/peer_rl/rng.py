"""Randomness by name. Every source derives from the run's seed; no agent uses torch's or numpy's global generator."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from zlib import crc32

import numpy as np
import torch


def _sequence(seed: int, name: str, *key: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(crc32(name.encode()), *key))


def episode_seed(seed: int, name: str, *index: int) -> int:
    """The environment seed of one episode, from the run's seed and the episode's place in the run alone."""
    return int(_sequence(seed, name, *index).generate_state(1)[0])


@contextmanager
def untouched_generators() -> Iterator[None]:
    """Restores the global generators of torch, numpy and Python after the block."""
    of_numpy, of_python = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        with torch.random.fork_rng(range(torch.cuda.device_count())):
            yield
    finally:
        np.random.set_state(of_numpy)  # noqa: NPY002
        random.setstate(of_python)


class Stream:
    """One named source of randomness: a numpy generator, and a torch generator on the agent's device."""

    def __init__(self, seed: int, name: str, *key: int, device: torch.device) -> None:
        of_numpy, of_torch = _sequence(seed, name, *key).spawn(2)
        self.numpy = np.random.Generator(np.random.PCG64(of_numpy))
        self.torch = torch.Generator(device)
        self.torch.manual_seed(int(of_torch.generate_state(1, np.uint64)[0] >> 1))

    def for_weights(self) -> torch.Generator:
        """A new generator on the CPU, seeded by a draw: initial weights are the same on every device."""
        return torch.Generator().manual_seed(int(self.numpy.integers(2**63)))

    def state_dict(self) -> dict[str, Any]:
        """States of both generators."""
        return {"numpy": self.numpy.bit_generator.state, "torch": self.torch.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from where ``state_dict`` was taken."""
        self.numpy.bit_generator.state = state["numpy"]
        self.torch.set_state(state["torch"])


class Streams:
    """The streams of one run. A stream is used for one purpose only, so no purpose disturbs another."""

    NAMES = ("explore", "replay", "update", "diagnose")

    def __init__(self, seed: int, device: torch.device) -> None:
        self.explore, self.replay, self.update, self.diagnose = (
            Stream(seed, name, device=device) for name in self.NAMES
        )

    def state_dict(self) -> dict[str, Any]:
        """States of all streams by name."""
        return {name: getattr(self, name).state_dict() for name in self.NAMES}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from where ``state_dict`` was taken."""
        for name in self.NAMES:
            getattr(self, name).load_state_dict(state[name])
