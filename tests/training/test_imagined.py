"""Videos of what a world model imagines, on models whose predictions are known."""

import struct
import zlib

import numpy as np
import pytest
import torch
from rendering import read
from running import command, tiny_run

from peer_rl.agents.make import make_agent
from peer_rl.envs.spec import EnvSpec
from peer_rl.plugin import make
from peer_rl.rng import Stream
from peer_rl.settings import AGENTS
from peer_rl.settings.world_model import RSSMConfig
from peer_rl.training.imagined import CONTEXT, WINDOW, Episode, imagine, write_png

CPU = torch.device("cpu")
FRAMES = EnvSpec((3, 64, 64), "uint8", action_shape=(2,), action_low=(-1.0,) * 2, action_high=(1.0,) * 2)
STEPS = 70


def model_of():
    small = RSSMConfig(belief=6, hidden=6, variables=3)
    settings = AGENTS["dreamer-pixels"].settings(units=8, rssm=small, decoder_channels=(4, 4, 4))
    rng = Stream(0, "weights", device=CPU)
    agent = make_agent("dreamer-pixels", settings, FRAMES, regularizer=make("none", 0.0), rng=rng, device=CPU)
    with torch.no_grad():
        agent.model.decoder.linear.weight.mul_(30)  # so that a small change of the state shows in the frames
    return agent.model


def episode(seed: int = 0) -> Episode:
    rng = np.random.default_rng(seed)
    obs = rng.integers(256, size=(STEPS + 1, 3, 64, 64), dtype=np.uint8)
    return Episode(obs, rng.uniform(-1, 1, (STEPS, 2)).astype(np.float32), 0.0)


def imagined(model, one: Episode):
    return imagine(model, one, stack=1, rng=Stream(0, "imagine", device=CPU))


def test_each_window_begins_with_its_context_and_the_rest_is_predicted():
    found = imagined(model_of(), episode())
    expected = [step % WINDOW < CONTEXT for step in range(STEPS + 1)]
    assert found.seen.tolist() == expected
    same = (found.rebuilt == found.predicted).all((1, 2, 3))
    assert same[found.seen].all()
    assert found.real.shape == found.predicted.shape == (STEPS + 1, 64, 64, 3)
    assert np.array_equal(found.real, episode().obs.transpose(0, 2, 3, 1)), "8 bits, so the frames are unchanged"


def test_the_prediction_depends_on_actions_and_not_on_frames_after_the_context():
    model, one = model_of(), episode()
    later = Episode(one.obs.copy(), one.actions, 0.0)
    later.obs[CONTEXT:WINDOW] = 0
    found, changed = imagined(model, one), imagined(model, later)
    assert np.array_equal(found.predicted[:WINDOW], changed.predicted[:WINDOW])
    assert not np.array_equal(found.rebuilt[CONTEXT:WINDOW], changed.rebuilt[CONTEXT:WINDOW])
    acting = Episode(one.obs, one.actions.copy(), 0.0)
    acting.actions[CONTEXT - 1] = 0  # leads to the first predicted frame
    moved = imagined(model, acting)
    assert np.array_equal(moved.predicted[:CONTEXT], found.predicted[:CONTEXT])
    assert not np.array_equal(moved.predicted[CONTEXT], found.predicted[CONTEXT])


def test_rows_stand_above_each_other_and_the_edge_tells_what_was_seen():
    found = imagined(model_of(), episode())
    seen, predicted = found.frame(0), found.frame(CONTEXT)
    assert seen.shape == predicted.shape == (3 * 192 + 8, 192 + 8, 3)
    assert np.array_equal(seen[:192:3, 8::3], found.real[0])
    assert np.array_equal(seen[-192::3, 8::3], found.predicted[0])
    assert (seen[-1, 0] != predicted[-1, 0]).any()
    assert found.strip().shape == (3 * 192 + 8, 12 * 200, 3)


def test_a_png_holds_its_pixels(tmp_path):
    frame = np.random.default_rng(0).integers(256, size=(3, 5, 3), dtype=np.uint8)
    write_png(tmp_path / "one.png", frame)
    data = (tmp_path / "one.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (5, 3)
    length = struct.unpack(">I", data[33:37])[0]
    rows = np.frombuffer(zlib.decompress(data[41 : 41 + length]), np.uint8).reshape(3, 16)
    assert np.array_equal(rows[:, 1:].reshape(3, 5, 3), frame)


def test_watch_imagine_writes_the_video_and_the_picture(tmp_path):
    run = tiny_run("dreamer-v2-pixels", tmp_path)
    result = command("watch", run, "--imagine", "--max-steps", 7)
    assert result.returncode == 0, result.stderr
    video = run / "videos" / "imagine-step-300.mp4"
    assert result.stdout.splitlines()[-2:] == [f"video: {video}", f"picture: {video.with_suffix('.png')}"]
    _, frames = read(video)
    assert len(frames) == 8
    assert video.with_suffix(".png").read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize(
    ("agent", "words"), [("dreamer", "reads vectors, so it predicts no frames"), ("dqn", "has no world model")]
)
def test_an_agent_without_such_a_model_is_refused(agent, words, shared_run):
    result = command("watch", shared_run(agent), "--imagine")
    assert result.returncode == 2
    assert f"{agent} {words}; --imagine is for planet-pixels, dreamer-pixels, dreamer-v2-pixels" in result.stderr
