"""Shared by all tests: one torch thread, and no deadline for an example on a busy machine."""

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.fixture
def more_settings(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Adds a block to a suite's settings: ``more_settings("gym", {"steps": 10}, profile="smoke")``."""
    from peer_rl.settings import suites
    from peer_rl.settings.layers import Value

    def add(suite: str, values: dict[str, Any], **selectors: Any) -> None:
        before = suites._blocks
        block = (selectors, {path: Value(value, "test") for path, value in values.items()})
        monkeypatch.setattr(suites, "_blocks", lambda name: (*before(name), *([block] if name == suite else [])))

    return add
