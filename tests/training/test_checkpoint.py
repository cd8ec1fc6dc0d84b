"""Checkpoints: what is saved comes back, whatever interrupts the saving; what was tampered with does not."""

import json
import pickle  # noqa: TID251 (to make a poisoned file)
from hashlib import sha256

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from peer_rl.errors import CheckpointError
from peer_rl.replay.store import Ring
from peer_rl.training import checkpoint as module
from peer_rl.training.checkpoint import Checkpoints
from peer_rl.training.files import Committed
from peer_rl.training.trees import pack, unpack


def ring_with(rows: int, capacity: int = 10) -> Ring:
    ring = Ring(capacity, {"x": ((), np.float32)})
    for i in range(rows):
        ring.append({"x": i})
    return ring


def components(value: float) -> dict:
    return {"agent": {"w": torch.full((3,), value)}, "loop": {"step": 1}, "replay": {"rows": 0}}


@pytest.fixture
def saved(tmp_path):
    """Two checkpoints, at 5 and 8 rows."""
    checkpoints = Checkpoints(tmp_path / "checkpoint")
    for rows in (5, 8):
        checkpoints.save(rows, components(float(rows)), ring_with(rows), {"eval": Committed(rows, "ab")})
    return checkpoints


def test_what_is_saved_comes_back(saved):
    loaded = Checkpoints(saved.folder).load()
    assert loaded.step == 8
    assert loaded.logs == {"eval": Committed(8, "ab")}
    assert loaded.components["agent"]["w"].tolist() == [8.0] * 3
    ring = Ring(10, {"x": ((), np.float32)})
    loaded.restore_replay(ring)
    assert ring.rows(0, 8)["x"].tolist() == list(range(8))


def test_two_are_kept_and_no_segment_that_one_of_them_needs_is_deleted(saved):
    for rows in (12, 14, 26):
        saved.save(rows, components(rows), ring_with(rows), {})
    assert saved.steps() == [14, 26]
    for step in saved.steps():
        ring = Ring(10, {"x": ((), np.float32)})
        module.read_checkpoint(saved.folder / f"{step:012d}").restore_replay(ring)
        assert ring.rows(step - 10, step)["x"].tolist() == list(range(step - 10, step))
    named = {
        s["file"] for p in saved.folder.glob("0*") for s in json.loads((p / "checkpoint.json").read_text())["segments"]
    }
    assert {path.name for path in (saved.folder / "replay").iterdir()} == named


def test_many_small_checkpoints_do_not_leave_as_many_segments(tmp_path, monkeypatch):
    """Segments of one row, joined until they are 10 rows large; whatever is kept can be restored in full."""
    monkeypatch.setattr(module, "_SMALL_SEGMENT", 10 * 4)
    checkpoints, ring = Checkpoints(tmp_path / "checkpoint"), ring_with(0, capacity=100)
    most = 0
    for row in range(250):
        ring.append({"x": row})
        checkpoints.save(row + 1, components(row), ring, {})
        most = max(most, len(list((checkpoints.folder / "replay").iterdir())))
    assert most <= 100 / 10 + 4, "a partly overwritten one, the one that grows, and the older checkpoint's"
    for step in checkpoints.steps():
        again = ring_with(0, capacity=100)
        module.read_checkpoint(checkpoints.folder / f"{step:012d}").restore_replay(again)
        assert again.rows(step - 100, step)["x"].tolist() == list(range(step - 100, step))


def test_a_segment_that_is_large_is_not_written_again(saved, monkeypatch):
    monkeypatch.setattr(module, "_SMALL_SEGMENT", 0)
    large = saved.folder / "replay" / f"{0:012d}-{8:012d}.safetensors"
    before = large.stat().st_mtime_ns
    saved.save(9, components(9.0), ring_with(9), {})
    assert large.stat().st_mtime_ns == before
    assert {path.name for path in large.parent.iterdir()} == {large.name, f"{8:012d}-{9:012d}.safetensors"}


def test_each_file_is_read_once_on_resume(saved, monkeypatch):
    read: list[str] = []
    read_bytes = module.read_bytes
    monkeypatch.setattr(module, "read_bytes", lambda path, **how: read.append(path.name) or read_bytes(path, **how))
    ring = ring_with(0)
    Checkpoints(saved.folder).load(ring)
    assert ring.rows(0, 8)["x"].tolist() == list(range(8))
    assert sorted(read) == sorted(set(read))
    assert any("-" in name for name in read), "the replay's segments are among them"


def test_a_replay_with_other_columns_is_refused(saved):
    with pytest.raises(CheckpointError, match="does not fit this version of the replay"):
        Checkpoints(saved.folder).load(Ring(10, {"y": ((), np.float32)}))


@pytest.mark.parametrize("nth", range(13))
def test_a_crash_anywhere_inside_save_keeps_a_loadable_checkpoint(saved, nth, monkeypatch):
    """Every write, fsync and rename in turn is the last thing that happens."""
    calls = 0

    def dying(function):
        def wrapped(*arguments, **keywords):
            nonlocal calls
            if calls == nth:
                raise KeyboardInterrupt
            calls += 1
            return function(*arguments, **keywords)

        return wrapped

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_durably", dying(module.write_durably))
        patch.setattr(module, "sync_directory", dying(module.sync_directory))
        patch.setattr(module.shutil, "rmtree", dying(module.shutil.rmtree))
        patch.setattr(module.Path, "rename", dying(module.Path.rename))
        try:
            saved.save(9, components(9.0), ring_with(9), {})
            crashed = False
        except KeyboardInterrupt:
            crashed = True
    assert crashed == (nth < 12)
    after = Checkpoints(saved.folder)
    loaded = after.load()
    assert loaded.step in (8, 9)
    ring = Ring(10, {"x": ((), np.float32)})
    loaded.restore_replay(ring)
    assert ring.total == loaded.step
    after.save(11, components(11.0), ring_with(11), {})
    assert after.steps()[-1] == 11
    assert not list(saved.folder.glob(".*"))


def test_a_full_disk_leaves_the_last_checkpoint_and_no_half_folder(saved, monkeypatch):
    def full(path, content):
        path.write_bytes(content[: len(content) // 2])
        if path.name == "loop.safetensors":
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_durably", full)
        with pytest.raises(OSError, match="No space"):
            saved.save(9, components(9.0), ring_with(9), {})
    assert not list(saved.folder.glob(".*"))
    assert Checkpoints(saved.folder).load().step == 8


@pytest.mark.parametrize("how", ["damaged", "deleted"])
def test_an_older_checkpoint_that_is_damaged_does_not_disturb_a_healthy_run(saved, how):
    older = saved.folder / f"{5:012d}" / "checkpoint.json"
    older.unlink() if how == "deleted" else older.write_text("broken")
    (saved.folder / ".x.new").write_text("a stray file")
    again = Checkpoints(saved.folder)
    assert again.load().step == 8
    again.clean()
    again.save(9, components(9.0), ring_with(9), {})
    assert Checkpoints(saved.folder).load().step == 9


@pytest.mark.parametrize("forged", [[], {"schema": 1}, {"schema": 1, "step": 8, "lengths": {}, "segments": 3}])
def test_a_forged_description_with_a_right_checksum_is_refused(saved, forged):
    folder = saved.folder / f"{8:012d}"
    old = sha256((folder / "checkpoint.json").read_bytes()).hexdigest()
    (folder / "checkpoint.json").write_text(json.dumps(forged))
    sums = folder / "SHA256SUMS"
    sums.write_text(sums.read_text().replace(old, sha256((folder / "checkpoint.json").read_bytes()).hexdigest()))
    with pytest.raises(CheckpointError, match="refused"):
        Checkpoints(saved.folder).load()


@given(data=st.data())
def test_any_flipped_bit_is_refused(tmp_path_factory, data):
    """In any file of the checkpoint or of its replay, at any place."""
    folder = tmp_path_factory.mktemp("flip") / "checkpoint"
    Checkpoints(folder).save(5, components(5.0), ring_with(5), {})
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    victim = data.draw(st.sampled_from(files))
    content = bytearray(victim.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    victim.write_bytes(content)
    with pytest.raises(CheckpointError, match="refused"):
        Checkpoints(folder).load()


@pytest.mark.parametrize("how", ["truncated", "emptied", "deleted"])
def test_a_missing_end_is_refused_and_the_way_back_is_named(saved, how):
    victim = saved.folder / f"{8:012d}" / "agent.safetensors"
    content = victim.read_bytes()
    victim.unlink() if how == "deleted" else victim.write_bytes(
        content[: len(content) // 2 if how == "truncated" else 0]
    )
    with pytest.raises(CheckpointError, match="Delete that folder to continue from step 5"):
        Checkpoints(saved.folder).load()


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('the pickle ran')",))


@pytest.mark.parametrize("checksum", ["old", "forged"])
def test_a_pickle_is_refused_unread_even_with_a_forged_checksum(saved, checksum):
    victim = saved.folder / f"{8:012d}" / "agent.safetensors"
    old = sha256(victim.read_bytes()).hexdigest()
    victim.write_bytes(pickle.dumps(Bomb()))
    if checksum == "forged":
        sums = victim.with_name("SHA256SUMS")
        sums.write_text(sums.read_text().replace(old, sha256(victim.read_bytes()).hexdigest()))
    with pytest.raises(CheckpointError, match="holds a pickle, which is never loaded"):
        Checkpoints(saved.folder).load()


def test_a_stray_file_is_refused(saved):
    (saved.folder / f"{8:012d}" / "agent.pt").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(CheckpointError, match=r"agent\.pt"):
        Checkpoints(saved.folder).load()


def test_another_schema_is_refused(saved):
    folder = saved.folder / f"{8:012d}"
    meta = folder / "checkpoint.json"
    old = sha256(meta.read_bytes()).hexdigest()
    meta.write_text(meta.read_text().replace('"schema": 1', '"schema": 99'))
    sums = folder / "SHA256SUMS"
    sums.write_text(sums.read_text().replace(old, sha256(meta.read_bytes()).hexdigest()))
    with pytest.raises(CheckpointError, match="schema 99"):
        Checkpoints(saved.folder).load()


def test_trees_keep_integer_keys_big_numbers_and_empty_branches():
    tree = {
        "state": {0: {"step": torch.tensor(3.0), "sums": {}}},
        "big": 2**100 + 1,
        "list": [1, None, "x"],
        "array": np.arange(4, dtype=np.uint8),
        "yes": True,
    }
    again = unpack(pack(tree))
    assert again["state"][0]["step"].item() == 3.0
    assert again["state"][0]["sums"] == {}
    assert again["big"] == 2**100 + 1
    assert again["list"] == [1, None, "x"]
    assert again["array"].tolist() == [0, 1, 2, 3]
    assert again["yes"] is True


def test_a_foreign_safetensors_file_is_refused():
    from safetensors.torch import save

    with pytest.raises(ValueError, match="not a file of peer-rl"):
        unpack(save({"x": torch.zeros(1)}))
