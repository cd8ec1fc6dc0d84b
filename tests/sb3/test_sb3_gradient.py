"""What the hooks do to an update, against the same update with the regularizer in the loss, written out."""

import pytest
import torch
from sb3_models import OURS, STOCK, assert_same_bits, furthest, seeded, tiny, weights, with_rows
from sb3_plain import STEPS
from stable_baselines3.common.envs import FakeImageEnv
from torch import Tensor, nn

from peer_rl.errors import PeerError
from peer_rl.integrations.sb3 import TD3
from peer_rl.plugin import ConstrainedPEER, CosinePEER, FeatureNorm, Regularizer

BETA = 0.3  # large, so that a mistake shows
RATE = 1e-2
NAMES = pytest.mark.parametrize("name", list(STOCK))


def peer(phi: Tensor, phi_next: Tensor) -> Tensor:
    return BETA * (phi * phi_next.detach()).sum(-1).mean(-1).sum()


def squared_cosine(phi: Tensor, phi_next: Tensor) -> Tensor:
    return torch.cosine_similarity(phi, phi_next, dim=-1).square().mean(-1).sum()


def learned(name: str, steps: int, settings: dict, *, term=peer, regularizer="peer", calls: int = 1):
    """Two agents, ours and a stock one that the written-out steps train; the stock one's terms."""
    settings = {"learning_rate": RATE, **settings}
    if settings.pop("descent", True):
        # Adam divides by the size of a gradient, and with it the smallest of rounding errors grows
        kwargs = {"optimizer_class": torch.optim.SGD, "optimizer_kwargs": {}, **settings.pop("policy_kwargs", {})}
        settings = {**settings, "policy_kwargs": kwargs}
    ours = with_rows(tiny(OURS[name], beta=BETA, regularizer=regularizer, **settings))
    plain = with_rows(tiny(STOCK[name], **settings))
    assert_same_bits(ours, plain)
    seeded()
    for _ in range(calls):
        ours.train(gradient_steps=steps, batch_size=16)
    seeded()
    plain.policy.set_training_mode(True)
    values = []
    for _ in range(steps * calls):
        values.append(STEPS[name](plain, plain.replay_buffer.sample(16), term))
    return ours, plain, values


def assert_close(ours, plain) -> None:
    expected = plain.policy.state_dict()
    for name, tensor in weights(ours).items():
        torch.testing.assert_close(
            tensor, expected[name], rtol=2e-5, atol=2e-6, msg=lambda text, n=name: f"{n}: {text}"
        )


@NAMES
@pytest.mark.parametrize(("steps", "calls"), [(1, 1), (5, 1), (2, 3)], ids=["one", "five at once", "two, three times"])
def test_an_update_is_the_loss_written_out(name, steps, calls):
    ours, plain, values = learned(name, steps, {}, calls=calls)
    assert_close(ours, plain)
    logged = ours.logger.name_to_value["train/regularizer"]
    assert logged == pytest.approx(sum(values[-steps:]) / steps, rel=1e-5)
    without = with_rows(
        tiny(
            OURS[name],
            beta=0,
            learning_rate=RATE,
            policy_kwargs={"optimizer_class": torch.optim.SGD, "optimizer_kwargs": {}},
        )
    )
    seeded()
    for _ in range(calls):
        without.train(gradient_steps=steps, batch_size=16)
    assert furthest(ours, without) > 1e-4  # far above the tolerance


@NAMES
def test_with_adam_too(name):
    ours, plain, _ = learned(name, 3, {"descent": False})
    assert_close(ours, plain)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("TD3", {"policy_kwargs": {"n_critics": 3}}),
        ("TD3", {"policy_kwargs": {"n_critics": 1}, "policy_delay": 1}),
        ("SAC", {"policy_kwargs": {"share_features_extractor": True}}),
        ("TQC", {"policy_kwargs": {"n_critics": 3}}),
        ("DQN", {"max_grad_norm": 0.01}),
        ("QRDQN", {"max_grad_norm": 0.01}),
    ],
    ids=str,
)
def test_with_other_settings(name, settings):
    ours, plain, _ = learned(name, 4, settings)
    assert_close(ours, plain)


def test_from_images_phi_is_what_the_convolutions_give():
    """Without hidden layers, as DQN's CnnPolicy is made, phi is the encoder's output, and PEER trains the encoder."""
    env = FakeImageEnv(screen_height=40, screen_width=40, n_channels=1)
    kwargs = {"net_arch": [], "features_extractor_kwargs": {"features_dim": 12}}
    ours, plain, _ = learned("DQN", 2, {"env": env, "policy": "CnnPolicy", "policy_kwargs": kwargs})
    assert_close(ours, plain)


def test_critics_that_share_one_phi_each_add_their_term():
    """Frames, no hidden layer: phi, the encoder's output and the action, is one tensor for both heads."""
    env = FakeImageEnv(screen_height=40, screen_width=40, n_channels=1, discrete=False)
    kwargs = {"net_arch": {"pi": [8], "qf": []}, "features_extractor_kwargs": {"features_dim": 12}}
    regularizer = CosinePEER  # the actions are signed
    ours, plain, _ = learned(
        "TD3",
        2,
        {"env": env, "policy": "CnnPolicy", "policy_kwargs": kwargs},
        regularizer=regularizer,
        term=CosinePEER(BETA),
    )
    assert_close(ours, plain)


@pytest.mark.parametrize(
    ("regularizer", "term"),
    [
        ("cosine-peer", CosinePEER(BETA)),
        (FeatureNorm(0.1), FeatureNorm(BETA)),  # beta= wins over the object's own
        (squared_cosine, lambda phi, phi_next: BETA * squared_cosine(phi, phi_next)),
    ],
    ids=["name", "object", "function"],
)
def test_other_regularizers(regularizer, term):
    ours, plain, _ = learned("TD3", 5, {}, regularizer=regularizer, term=term)
    assert_close(ours, plain)


class Fading(Regularizer):
    """PEER, weaker by half after each update."""

    def __init__(self, beta):
        super().__init__(beta)
        self.share = 1.0

    def loss(self, features):
        return self.share * self.beta * (features.phi * features.phi_next.detach()).sum(-1).mean(-1).sum()

    def adapt(self):
        self.share /= 2
        return {"share": torch.tensor(self.share)}


@NAMES
@pytest.mark.parametrize(
    ("make", "logged_names"),
    [(lambda: ConstrainedPEER(target=0.2, rate=0.5, beta=BETA), {"beta", "cosine"}), (lambda: Fading(BETA), {"share"})],
    ids=["ConstrainedPEER", "Fading"],
)
def test_a_regularizer_that_adapts_does_so_once_an_update(name, make, logged_names):
    written_out = make()

    def term(phi, phi_next):
        value = written_out(phi, phi_next)
        written_out.adapt()
        return value

    ours, plain, values = learned(name, 2, {}, regularizer=make(), term=term, calls=2)
    assert_close(ours, plain)
    logged = ours.logger.name_to_value
    assert logged["train/regularizer"] == pytest.approx(sum(values[-2:]) / 2, rel=1e-5)
    assert {key.removeprefix("regularizer/") for key in logged if key.startswith("regularizer/")} == logged_names
    assert ours.beta == pytest.approx(written_out.beta, rel=1e-6)
    assert (ours.beta != pytest.approx(BETA, rel=1e-3)) == isinstance(written_out, ConstrainedPEER)


@NAMES
def test_beta_0_is_stable_baselines3_bit_for_bit_and_hooks_nothing(name, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("a hook")

    monkeypatch.setattr(nn.Module, "register_forward_pre_hook", refuse)
    ours, stock = tiny(OURS[name], beta=0).learn(60), tiny(STOCK[name]).learn(60)
    assert_same_bits(ours, stock)
    assert "train/regularizer" not in ours.logger.name_to_value
    with pytest.raises(AssertionError, match="a hook"):
        tiny(OURS[name]).learn(60)


@NAMES
def test_beta_changes_no_random_draw(name):
    """With a beta too small for float32 every number is drawn as without, so runs pair by seed."""
    assert_same_bits(tiny(OURS[name], beta=1e-30).learn(60), tiny(STOCK[name]).learn(60))


def test_no_hook_stays_and_no_phi_next_is_left_even_if_an_update_breaks(monkeypatch):
    model = with_rows(tiny(TD3, beta=BETA))

    def broken(*_args):
        raise RuntimeError("no such loss")

    with monkeypatch.context() as patched:
        patched.setattr("stable_baselines3.td3.td3.F.mse_loss", broken)
        patched.setattr(model.critic, "forward", lambda *_: [torch.zeros(16, 1)])  # the target ran, the critic did not
        with pytest.raises(RuntimeError, match="no such loss"):
            model.train(gradient_steps=1, batch_size=16)
    assert not any(module._forward_pre_hooks for module in model.policy.modules())
    model.train(gradient_steps=1, batch_size=16)
    assert not any(module._forward_pre_hooks for module in model.policy.modules())


def test_beta_may_change_between_updates():
    changed, still = (with_rows(tiny(TD3, beta=BETA)) for _ in range(2))
    for model in (changed, still):
        seeded()
        model.train(gradient_steps=2, batch_size=16)
    assert_same_bits(changed, still)
    changed.beta = 0.0
    for model in (changed, still):
        model.train(gradient_steps=2, batch_size=16)
    assert furthest(changed, still) > 1e-5
    changed.beta = -1.0
    with pytest.raises(PeerError, match="beta must be finite and at least 0"):
        changed.train(gradient_steps=1, batch_size=16)
