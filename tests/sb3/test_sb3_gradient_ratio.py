"""The gradient ratio that RepresentationCallback logs, and the layers."""

import pytest
import torch
from sb3_models import OURS, STOCK, assert_same_bits, seeded, tiny, weights, with_rows
from torch import nn

from peer_rl.integrations.sb3 import TD3, RepresentationCallback
from peer_rl.plugin import ConstrainedPEER
from peer_rl.plugin.diagnostics import gradient_verdict

BETA = 0.3
NAMES = pytest.mark.parametrize("name", list(OURS))


def critic_change(name: str, beta: float, regularizer: object, measure: bool = False) -> tuple[torch.Tensor, object]:
    """How one step of plain gradient descent moves the critic's weights."""
    policy_kwargs = {"optimizer_class": torch.optim.SGD, "optimizer_kwargs": {}}
    settings = {"max_grad_norm": 1e9} if name.endswith("DQN") else {}
    model = with_rows(tiny(OURS[name], beta=beta, regularizer=regularizer, policy_kwargs=policy_kwargs, **settings))
    critic = next(getattr(model, key) for key in ("critic", "q_net", "quantile_net") if hasattr(model, key))
    before = nn.utils.parameters_to_vector(critic.parameters()).detach().clone()
    model._passes.measure = measure
    seeded()
    model.train(gradient_steps=1, batch_size=16)
    return nn.utils.parameters_to_vector(critic.parameters()).detach() - before, model


@NAMES
@pytest.mark.parametrize("adapting", [False, True])
def test_the_ratio_is_that_of_two_updates(name, adapting):
    """Plain gradient descent moves the weights by the gradient: with the term, without it, and the difference."""
    regularizer = ConstrainedPEER(beta=BETA) if adapting else "cosine-peer"
    both, model = critic_change(name, BETA, regularizer, measure=True)
    alone, _ = critic_change(name, 0.0, "cosine-peer")
    expected = ((both - alone).norm() / alone.norm()).item()
    assert 1e-4 < expected < 100
    assert model._passes.gradient_ratio == pytest.approx(expected, rel=2e-2)
    assert not model._passes.measure


@NAMES
def test_measuring_leaves_every_bit(name):
    callback = RepresentationCallback(every=7, batch_size=16, layers=True)
    watched = tiny(OURS[name], beta=BETA).learn(48, callback=callback)
    assert_same_bits(watched, tiny(OURS[name], beta=BETA).learn(48))
    assert len(callback.gradient_ratios) >= 2
    assert all(ratio > 0 for ratio in callback.gradient_ratios)


def test_the_verdict_is_printed_at_the_end(capsys, tmp_path):
    callback = RepresentationCallback(every=15)
    tiny(TD3, beta=BETA).learn(40, callback=callback)
    printed = capsys.readouterr().out
    assert callback.verdict in printed
    assert "PEER" in callback.verdict
    for model, verbose in ((tiny(TD3, beta=BETA), 0), (tiny(TD3, beta=0), 1), (tiny(STOCK["TD3"]), 1)):
        quiet = RepresentationCallback(every=15, verbose=verbose)
        model.learn(40, callback=quiet)
        assert capsys.readouterr().out == ""
    assert quiet.verdict is None


def test_the_verdict_names_the_regularizer():
    def mine(phi, phi_next):
        return (phi * phi_next).mean()

    for chosen, name in (
        ({"regularizer": mine, "beta": BETA}, "mine"),
        ({"beta": "auto"}, "ConstrainedPEER"),
        ({"regularizer": "cosine-peer", "beta": BETA}, "cosine-peer"),
    ):
        callback = RepresentationCallback(every=15, verbose=0)
        tiny(TD3, **chosen).learn(40, callback=callback)
        assert callback.verdict.startswith(f"{name}'s gradient is ")


def test_the_verdict_orders_the_ratios():
    words = [gradient_verdict(ratio).partition(": ")[2] for ratio in (1e-4, 5e-3, 0.02, 0.2, 2.0)]
    assert len(set(words)) == 5
    assert words[2] == "mild"
    assert "2 %" in gradient_verdict(0.02)


def test_layers_are_logged_if_asked():
    callback = RepresentationCallback(every=1000, batch_size=32, layers=True)
    model = tiny(STOCK["TD3"])
    logged = {}
    model.learn(30)
    with torch.no_grad():
        model.critic.qf0[0].bias[:2] = -1e3  # two of eight units never fire
    callback.init_callback(model)
    record = model.logger.record
    model.logger.record = lambda key, value, *args, **kwargs: (logged.update({key: value}), record(key, value, *args))
    callback.num_timesteps = 30
    callback._diagnose()
    layers = {key.split("/")[1] for key in logged if key.count("/") == 2}
    assert layers == {"qf0.0", "qf0.2", "qf1.0", "qf1.2"}  # not the heads
    assert logged["representation/qf0.0/dormant_fraction"] >= 0.25
    both = [logged[f"representation/qf{i}.2/effective_rank"] for i in range(2)]
    assert sum(both) / 2 == pytest.approx(callback.report.effective_rank)
    assert weights(model)["critic.qf0.0.bias"][0] == -1e3
