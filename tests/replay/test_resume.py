"""Law 3 for every store with every sampler: what is saved and read back gives the same batches, bit for bit."""

import dataclasses

import numpy as np
import pytest
from replay.plain import PlainReplay, frame_spec, replay_of, vector_spec
from running import final, interrupted_at, leavings, tiny_run

from peer_rl.agents.dqn import DQN
from peer_rl.errors import RunError
from peer_rl.replay.replay import Replay
from peer_rl.settings import AGENTS
from peer_rl.settings.replay import PrioritisedConfig
from peer_rl.training import checkpoint as checkpoints
from peer_rl.training.trees import pack

SAMPLERS = {"uniform": {}, "prioritised": {"priority_exponent": 0.6, "importance_steps": 200}}


class Vectors(PlainReplay):
    """The same steps with float observations of one frame."""

    def _see(self) -> None:
        self.episode.append((self.frames, self.rng.standard_normal(self.shape).astype(np.float32)))
        self.frames += 1

    def _stacked(self):
        return self.episode[-1][1], [self.episode[-1][0]]


def fresh(store: str, sampler: str) -> tuple[Replay, PlainReplay]:
    settings = {"batch_size": 8, "n_step": 3, **SAMPLERS[sampler]}
    if store == "frames":
        return replay_of(frame_spec(3, (2, 3, 3)), 60, **settings), PlainReplay(3, (2, 3, 3))
    return replay_of(vector_spec(5), 60, **settings), Vectors(1, (5,))


def live(replay: Replay, plain: PlainReplay, rng: np.random.Generator, steps: int) -> list[bytes]:
    """Play, draw, and give priorities, as the loop does; all that was drawn, as bytes. Ends with an episode."""
    drawn = []
    for step in range(steps):
        plain.play(
            replay,
            "truncated" if step % 11 == 10 or step == steps - 1 else "life lost" if step % 5 == 4 else "no end",
        )
        batch = replay.sample(rng)
        replay.update_priorities(batch.action % 7 + batch.reward.abs() / 50)
        columns = {name: value for name, value in vars(batch).items() if value is not None}
        drawn.append(b"".join(columns[name].numpy().tobytes() for name in sorted(columns)))
    return drawn


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("store", ["vectors", "frames"])
@pytest.mark.parametrize("before", [0, 20, 150])
def test_the_next_batches_are_the_same_after_a_resume(store, sampler, before, tmp_path, monkeypatch):
    """Two checkpoints, the second of which writes only what came after the first; before and after the ring wraps."""
    monkeypatch.setattr(checkpoints, "_SMALL_SEGMENT", 0)
    replay, plain = fresh(store, sampler)
    rng = np.random.default_rng(0)
    saved = checkpoints.Checkpoints(tmp_path / "checkpoint")
    for step, length in enumerate((before, 20)):
        live(replay, plain, rng, length)
        saved.save(step, {"agent": {}, "loop": {}, "replay": replay.state_dict()}, replay.ring, {})
    again, _ = fresh(store, sampler)
    loaded = checkpoints.Checkpoints(tmp_path / "checkpoint").load(again.ring)
    again.load_state_dict(loaded.components["replay"])
    assert (again.store.first, again.store.stop) == (replay.store.first, replay.store.stop)
    assert pack(again.state_dict()) == pack(replay.state_dict())
    state, steps, frames = rng.bit_generator.state, len(plain.steps), plain.frames
    of_plain = plain.rng.bit_generator.state
    went_on = live(replay, plain, rng, 50)
    rng.bit_generator.state, plain.rng.bit_generator.state = state, of_plain
    del plain.steps[steps:]
    plain.frames = frames
    assert live(again, plain, rng, 50) == went_on
    assert pack(again.state_dict()) == pack(replay.state_dict())
    if sampler == "prioritised":
        assert again.sampler._tree.total == replay.sampler._tree.total
        assert again.sampler._tree._nodes.tobytes() == replay.sampler._tree._nodes.tobytes()


@pytest.mark.parametrize("store", ["vectors", "frames"])
def test_other_rows_or_priorities_than_were_saved_are_refused(store):
    replay, plain = fresh(store, "prioritised")
    live(replay, plain, np.random.default_rng(0), 20)
    state = replay.state_dict()
    with pytest.raises(ValueError, match="0 replay rows were restored, but"):
        fresh(store, "prioritised")[0].load_state_dict(state)
    state["priorities"]["leaves"] = state["priorities"]["leaves"][:-1]
    with pytest.raises(ValueError, match="59 priorities were saved for a replay of 60"):
        replay.load_state_dict(state)


def test_a_uniform_replay_of_vectors_saves_what_it_always_has(tmp_path):
    assert set(final(tiny_run("dqn", tmp_path)).components["replay"]) == {"rows"}


@pytest.fixture
def prioritised_dqn(monkeypatch):
    """dqn that gives each of its transitions a priority, whatever the sense of it."""
    monkeypatch.setitem(AGENTS, "dqn", dataclasses.replace(AGENTS["dqn"], learning=PrioritisedConfig))
    update = DQN.update

    def with_priorities(agent, batch, *, index, rng):
        done = update(agent, batch, index=index, rng=rng)
        assert batch.weight.max() == 1
        return dataclasses.replace(done, priorities=0.1 + batch.obs.argmax(1).float())

    monkeypatch.setattr(DQN, "update", with_priorities)
    return with_priorities


def test_a_prioritised_run_that_crashes_resumes_bit_for_bit(prioritised_dqn, tmp_path):
    whole = tiny_run("dqn", tmp_path / "whole")
    with interrupted_at(200):
        tiny_run("dqn", tmp_path / "broken", checkpoint_seconds=0.0)
    resumed = tiny_run("dqn", tmp_path / "broken", checkpoint_seconds=0.0)
    assert leavings(resumed) == leavings(whole)
    assert pack(final(resumed).components["replay"]) == pack(final(whole).components["replay"])
    draws = final(whole).components["replay"]["priorities"]["draws"]
    assert draws == 200, "diagnostics do not count"


def test_a_priority_that_is_not_finite_stops_the_run(prioritised_dqn, tmp_path, monkeypatch):
    def poisonous(agent, batch, *, index, rng):
        done = prioritised_dqn(agent, batch, index=index, rng=rng)
        return dataclasses.replace(done, priorities=done.priorities / (index != 100)) if index >= 100 else done

    monkeypatch.setattr(DQN, "update", poisonous)
    with pytest.raises(RunError, match="stopped at step 201: a transition's priority became inf; "):
        tiny_run("dqn", tmp_path)
