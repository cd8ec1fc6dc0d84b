"""``peer-rl bench``, with turns too short to mean anything."""

import json

import pytest
import torch
from running import peer_rl

from peer_rl.agents.make import build_agent
from peer_rl.bench.passes import AGENTS as PASSES
from peer_rl.bench.passes import TASK, cartpole, measure_passes, unavoidable
from peer_rl.bench.pixel_updates import ATARI, NETWORKS, measure_pixels
from peer_rl.bench.renderers import measure_renderers
from peer_rl.bench.replays import CASES, measure_replay
from peer_rl.bench.updates import td3_products, two_updates
from peer_rl.envs.headless import found_backends
from peer_rl.launch.random_batches import random_transitions
from peer_rl.settings import configure


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    arguments = ["--agents", "td3", "--rounds", "2", "--turn-steps", "4", "--update-rounds", "6"]
    return peer_rl("bench", *arguments, "--out", "found.json", cwd=folder), folder


@pytest.mark.slow
def test_it_measures_every_library_that_is_there(bench):
    done, folder = bench
    assert done.returncode == 0, done.stderr
    found = json.loads((folder / "found.json").read_text())
    rows = {(row["library"], row["cores"]) for row in found["loops"]}
    assert {("peer-rl", 1), ("stable-baselines3", 1)} <= rows
    assert all(row["steps_per_second"] > 0 for row in found["loops"])  # how many is the machine's affair
    assert all(row["ours_is_quicker_by"] == 1 for row in found["loops"] if row["library"] == "peer-rl")
    (update,) = found["updates"]
    assert 0.2 < update["products_share"] < 1
    assert update["peer_adds"]["low"] <= update["peer_adds"]["median"] <= update["peer_adds"]["high"]
    assert found["rendering"] == []  # td3 sees no pictures
    assert "DMControl" not in done.stdout
    for words in ("whole loop", "PEER adds", "matrix products", "found.json"):
        assert words in done.stdout


@pytest.mark.slow
def test_every_renderer_of_this_machine_draws_both_tasks_in_both_sizes_and_qualities():
    messages = []
    rows = measure_renderers(2, messages.append)
    assert messages == [f"DMControl drawn by {backend}" for backend in found_backends()]
    for backend in found_backends():
        drawn = [row for row in rows if row["renderer"] == backend]
        assert len({(row["task"], row["size"], row["quality"]) for row in drawn}) == len(drawn) == 8
        assert all(row["pictures_per_second"] > 0 for row in drawn)


@pytest.mark.parametrize("agent", NETWORKS)
def test_an_update_from_pixels_is_counted_in_passes(agent):
    row = measure_pixels(agent, rounds=2)
    assert 1 < row["passes"] < 10
    assert row["pass_ms"] < row["update_ms"]
    assert row["peer_adds"]["low"] <= row["peer_adds"]["median"] <= row["peer_adds"]["high"]


@pytest.mark.parametrize("agent", PASSES)
def test_the_passes_are_those_of_two_updates(agent):
    """Counted by torch; in addition an update has CURL's table of logits, and the temperature's nothing."""
    from torch.utils.flop_counter import FlopCounterMode

    from peer_rl.rng import Stream

    config = configure(agent, TASK, profile="small")
    spec = cartpole(config.image_size)
    batch, rng = random_transitions(spec, 8, torch.device("cpu")), Stream(0, "x", device=torch.device("cpu"))
    built = build_agent(config, spec, torch.device("cpu"))
    update, all_passes = two_updates(built, batch, rng), unavoidable(config, batch)
    with FlopCounterMode(display=False) as updates:
        update()
    with FlopCounterMode(display=False) as passes:
        all_passes()
    assert passes.get_total_flops() == pytest.approx(updates.get_total_flops(), rel=2e-3)


def test_an_update_is_shown_with_its_passes(monkeypatch):
    monkeypatch.setattr("peer_rl.bench.updates._WARM_UP", 1)
    row = measure_passes("drq-v2", rounds=2)
    assert 0.3 < row["unavoidable_share"] < 1.2
    assert row["peer_adds"]["low"] <= row["peer_adds"]["median"] <= row["peer_adds"]["high"]


@pytest.mark.parametrize(("agent", "rows", "most"), [("curl-rainbow", 100_000, 0.75), ("curl-sac", 4_000, 4 * 0.031)])
def test_a_replay_takes_the_memory_of_the_formula_and_no_more_than_was_asked(agent, rows, most):
    assert set(CASES) == {"curl-rainbow", "drq-dqn", "curl-sac"}
    row = measure_replay(agent, draws=20, rows=rows)
    assert row["gigabytes_measured"] == pytest.approx(row["gigabytes_formula"], rel=0.05)
    assert row["gigabytes_measured"] < most


@pytest.mark.parametrize("name", NETWORKS)
def test_the_bare_networks_have_the_weights_of_ours_without_noise(name):
    agent = build_agent(configure(name, "atari/road-runner"), ATARI, torch.device("cpu"))
    mine = [weight.numel() for key, weight in agent.critic.named_parameters() if "sigma" not in key]
    assert sum(mine) == sum(weight.numel() for weight in NETWORKS[name]().parameters())


def test_the_products_are_those_of_two_td3_updates():
    """Counted by torch: 2 (actor' + critics' + critics + their weights' gradients), then the actor's update."""
    from torch.utils.flop_counter import FlopCounterMode

    from peer_rl.bench.updates import BATCH, HALF_CHEETAH, agents_of
    from peer_rl.rng import Stream

    agent = agents_of("td3", "mujoco/half-cheetah", HALF_CHEETAH)["plain"]
    batch = random_transitions(HALF_CHEETAH, BATCH, torch.device("cpu"))
    rng = Stream(0, "x", device=torch.device("cpu"))
    with FlopCounterMode(display=False) as updates:
        agent.update(batch, index=0, rng=rng)
        agent.update(batch, index=1, rng=rng)
    with FlopCounterMode(display=False) as products:
        td3_products()()
    assert products.get_total_flops() == updates.get_total_flops()


def test_a_place_that_cannot_be_written_is_reported_before_minutes_of_measuring(tmp_path):
    done = peer_rl("bench", "--out", "no/such/folder/bench.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot write no/such/folder/bench.json" in done.stderr
    assert "Traceback" not in done.stderr
