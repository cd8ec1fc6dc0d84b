"""When the loop updates: a first round of its own, and rounds that wait for the end of their episode."""

import pytest
from running import tiny_config

from peer_rl.launch.api import train
from peer_rl.training.loop import Trainer

SILENT = {"protocol.eval_every": 0, "protocol.diagnose_every": 0}


def updates_by_step(monkeypatch, tmp_path, **changes: object) -> dict[int, int]:
    """How many updates came after which step, for a run of 141 steps in episodes of 47 and a random phase of 60."""
    found: dict[int, int] = {}

    def count(trainer: Trainer) -> None:
        before = trainer.progress.updates
        sample(trainer)
        if trainer.progress.updates > before:
            found[trainer.step] = trainer.progress.updates - before

    sample = Trainer.play_episode if changes.get("learning.update_after_episodes") else Trainer.learn
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, sample.__name__, count)
        train(tiny_config("td3", steps=141, **{"learning.start_steps": 60, **SILENT, **changes}), runs=tmp_path)
    return found


def test_rounds_come_every_so_many_steps_after_the_random_phase(monkeypatch, tmp_path):
    found = updates_by_step(monkeypatch, tmp_path, **{"learning.update_every": 4, "learning.updates": 3})
    assert found == dict.fromkeys(range(64, 142, 4), 3)


def test_the_first_round_has_updates_of_its_own_number(monkeypatch, tmp_path):
    found = updates_by_step(monkeypatch, tmp_path, **{"learning.update_every": 4, "learning.pretrain": 130})
    assert found == {64: 130, **dict.fromkeys(range(68, 142, 4), 1)}


@pytest.mark.parametrize(("every", "updates", "each"), [(1, 1, 47), (2, 1, 23), (1, 2, 94)])
def test_rounds_can_wait_for_the_end_of_their_episode(monkeypatch, tmp_path, every, updates, each):
    given = {"learning.update_every": every, "learning.updates": updates, "learning.update_after_episodes": True}
    assert updates_by_step(monkeypatch, tmp_path, **given) == {94: each, 141: each}
    more = updates_by_step(monkeypatch, tmp_path / "more", **given, **{"learning.pretrain": 60})
    assert more == {94: 60, 141: each}
