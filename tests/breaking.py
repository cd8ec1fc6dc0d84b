"""Ways to break an agent: what learns a task must fail it when broken so."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from peer_rl.networks.encoders import ConvEncoder
from peer_rl.replay.store import Batch


def show_one_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """The networks see the newest frame, again and again."""
    forward = ConvEncoder.forward
    monkeypatch.setattr(ConvEncoder, "forward", lambda self, obs: forward(self, obs[:, -1:].expand_as(obs)))


def change_batches(
    monkeypatch: pytest.MonkeyPatch, kinds: tuple[type, ...], method: str, change: Callable[[Batch], Batch]
) -> None:
    """``method`` of every kind of agent gets a changed batch."""

    def changed(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, batch, *arguments, **keywords: call(self, change(batch), *arguments, **keywords)

    for kind in kinds:
        monkeypatch.setattr(kind, method, changed(getattr(kind, method)))


def without_bootstrap(batch: Batch) -> Batch:
    """The target is the reward alone."""
    return replace(batch, discount=torch.zeros_like(batch.discount))


def without_next_state(batch: Batch) -> Batch:
    """The target's value is that of s where it should be that of s'."""
    return replace(batch, next_obs=batch.obs)


def with_actions_of_other_rows(batch: Batch) -> Batch:
    """Each row's reward is credited to another row's action."""
    return replace(batch, action=batch.action.flip(0))
