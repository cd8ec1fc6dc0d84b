"""beta as a schedule and as "auto" in the Stable-Baselines3 classes."""

import pytest
from sb3_models import OURS, STOCK, assert_same_bits, seeded, tiny, weights, with_rows

from peer_rl.errors import PeerError
from peer_rl.integrations.sb3 import TD3
from peer_rl.plugin import ConstrainedPEER

NAMES = pytest.mark.parametrize("name", list(OURS))


def half(progress: float) -> float:
    return 0.5 * progress


@NAMES
def test_a_constant_schedule_is_a_constant(name):
    scheduled, constant = (tiny(OURS[name], beta=beta).learn(40) for beta in (lambda _: 0.3, 0.3))
    assert_same_bits(scheduled, constant)


def test_a_schedule_of_zero_is_the_stock_agent():
    assert_same_bits(tiny(TD3, beta=lambda _: 0.0).learn(40), tiny(STOCK["TD3"]).learn(40))


def test_a_schedule_follows_the_progress():
    model = with_rows(tiny(TD3, beta=half))
    for progress in (1.0, 0.25):
        model._current_progress_remaining = progress
        model.train(gradient_steps=1, batch_size=16)
        assert model.logger.name_to_value["regularizer/beta"] == 0.5 * progress
        assert model._passes.regularizer.beta == 0.5 * progress
    model.beta = 0.1
    model.train(gradient_steps=1, batch_size=16)
    assert model._passes.regularizer.beta == 0.1


def test_a_zip_keeps_the_schedule(tmp_path):
    model = tiny(TD3, beta=half)
    model.save(tmp_path / "model")
    assert TD3.load(tmp_path / "model").beta(0.5) == 0.25
    assert TD3.load(tmp_path / "model", beta=0.2).beta == 0.2
    with pytest.raises(PeerError, match="beta must be finite"):
        tiny(TD3, beta=lambda progress: progress - 2)
    with pytest.raises(PeerError, match="schedule"):
        tiny(TD3, beta=half, regularizer=ConstrainedPEER())


@NAMES
def test_auto_is_constrained_peer(name):
    models = [with_rows(tiny(OURS[name], **given)) for given in ({"beta": "auto"}, {"regularizer": ConstrainedPEER()})]
    for model in models:
        seeded()
        model.train(gradient_steps=5, batch_size=16)
    assert_same_bits(*models)
    assert models[0].beta == models[1].beta != 5e-4


def test_a_zip_continues_with_the_adapted_beta(tmp_path):
    model = tiny(TD3, beta="auto").learn(40)
    assert model.beta != 5e-4
    model.save(tmp_path / "model")
    loaded = TD3.load(tmp_path / "model")
    assert loaded.beta == pytest.approx(model.beta)
    assert isinstance(loaded._passes.regularizer, ConstrainedPEER)
    assert weights(loaded).keys() == weights(model).keys()


def test_auto_may_be_set_between_updates():
    model = with_rows(tiny(TD3, beta=0.1))
    model.beta = "auto"
    model.train(gradient_steps=1, batch_size=16)
    assert "regularizer/cosine" in model.logger.name_to_value
