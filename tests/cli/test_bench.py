"""``peer-rl bench``, with turns too short to mean anything."""

import json

import pytest
from running import peer_rl

from peer_rl.bench.updates import td3_products


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    arguments = ["--agents", "td3", "curl-rainbow", "--rounds", "2", "--turn-steps", "4", "--update-rounds", "6"]
    return peer_rl("bench", *arguments, "--out", "found.json", cwd=folder), folder


def test_it_measures_every_library_that_is_there(bench):
    done, folder = bench
    assert done.returncode == 0, done.stderr
    found = json.loads((folder / "found.json").read_text())
    rows = {(row["library"], row["cores"]) for row in found["loops"]}
    assert {("peer-rl", 1), ("stable-baselines3", 1)} <= rows
    assert all(row["steps_per_second"] > 1 for row in found["loops"])
    assert all(row["ours_is_quicker_by"] == 1 for row in found["loops"] if row["library"] == "peer-rl")
    assert ("peer-rl", 1) in {
        (row["library"], row["cores"]) for row in found["loops"] if row["agent"] == "curl-rainbow"
    }
    update, of_pixels = found["updates"]
    assert 0.2 < update["products_share"] < 1
    assert 1 < of_pixels["passes"] < 10
    for row in found["updates"]:
        assert row["peer_adds"]["low"] <= row["peer_adds"]["median"] <= row["peer_adds"]["high"]
    for row in found["replays"]:
        assert row["gigabytes_measured"] == pytest.approx(row["gigabytes_formula"], rel=0.1)
    drawn = {(row["task"], row["size"], row["quality"]) for row in found["rendering"]}
    assert len(drawn) == (8 if found["rendering"] else 0)
    assert found["replays"][1]["gigabytes_measured"] < 0.75
    for words in ("whole loop", "PEER adds", "matrix products", "found.json"):
        assert words in done.stdout


def test_the_products_are_those_of_two_td3_updates():
    """Counted by torch: 2 (actor' + critics' + critics + their weights' gradients), then the actor's update."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from peer_rl.bench.updates import half_cheetah_agent, random_batch
    from peer_rl.training.seeding import Stream

    agent, batch, rng = half_cheetah_agent("td3", 0.0), random_batch(), Stream(0, "x", device=torch.device("cpu"))
    with FlopCounterMode(display=False) as updates:
        agent.update(batch, index=0, rng=rng)
        agent.update(batch, index=1, rng=rng)
    with FlopCounterMode(display=False) as products:
        td3_products()()
    assert products.get_total_flops() == updates.get_total_flops()


def test_a_place_that_cannot_be_written_is_told_before_minutes_of_measuring(tmp_path):
    done = peer_rl("bench", "--out", "no/such/folder/bench.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot write no/such/folder/bench.json" in done.stderr
    assert "Traceback" not in done.stderr
