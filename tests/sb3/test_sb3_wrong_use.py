"""Wrong use gets a sentence."""

import subprocess
import sys

import numpy as np
import pytest
import stable_baselines3
import torch
from sb3_models import OURS, STOCK, tiny, with_rows
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from stable_baselines3.td3.policies import TD3Policy
from torch import nn
from toy_envs import Choice

from peer_rl.errors import PeerError
from peer_rl.integrations.sb3 import DQN, TD3, Regularized, RepresentationCallback
from peer_rl.plugin import BEER, ConstrainedPEER, SignedFeaturesWarning
from peer_rl.plugin.features import Watch


def sentence(error: pytest.ExceptionInfo) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"beta": -1e-3}, "beta must be finite and at least 0, not -0.001"),
        ({"beta": float("nan")}, "beta must be finite and at least 0, not nan"),
        ({"beta": "atuo"}, "or 'auto', not 'atuo'"),
        ({"beta": "auto", "regularizer": "feature-norm"}, "beta 'auto' works with cosine-peer only"),
        ({"regularizer": "cosine-pear"}, "regularizer 'cosine-pear' is unknown: did you mean 'cosine-peer'?"),
        ({"regularizer": "no_such_module:term"}, "regularizer 'no_such_module:term' cannot be loaded"),
        ({"regularizer": "dr3"}, "regularizer 'dr3' needs phi_next_online, which"),
        ({"regularizer": BEER(0.1)}, "regularizer 'beer' needs discount, head_weight, reward, which"),
        ({"regularizer": ConstrainedPEER(), "beta": 5}, "beta must begin within [1e-06, 1], not at 5"),
        ({"regularizer": 3}, "function must be a callable of (phi, phi_next), not 3"),
        ({"regularizer": nn.ReLU}, "not the class ReLU"),
    ],
    ids=str,
)
def test_a_setting_that_cannot_be(settings, words):
    with pytest.raises(PeerError) as error:
        tiny(TD3, **settings)
    assert words in sentence(error)


def test_an_algorithm_without_a_target_critic():
    with pytest.raises(PeerError) as error:
        from peer_rl.integrations.sb3 import PPO  # noqa: F401
    assert "PPO has no target critic" in sentence(error)
    with pytest.raises(PeerError) as error:
        from peer_rl.integrations.sb3 import DDPG  # noqa: F401
    assert "class DDPG(Regularized, stable_baselines3.DDPG)" in sentence(error)
    with pytest.raises(ImportError):
        from peer_rl.integrations.sb3 import DREAMER  # noqa: F401
    with pytest.raises(PeerError) as error:
        type("Mine", (Regularized, stable_baselines3.PPO), {})
    assert "Mine is on-policy" in sentence(error)
    ppo = stable_baselines3.PPO("MlpPolicy", Choice(), n_steps=8, batch_size=8, device="cpu")
    with pytest.raises(PeerError) as error:
        ppo.learn(8, callback=RepresentationCallback())
    assert "PPO has no critic with a target network" in sentence(error)
    assert ppo.num_timesteps == 0


class SquashedPolicy(TD3Policy):
    def make_critic(self, features_extractor=None):
        critic = super().make_critic(features_extractor)
        for network in critic.q_networks:
            network.append(nn.Tanh())
        return critic


def test_a_critic_whose_last_layer_is_not_linear():
    with pytest.raises(PeerError) as error:
        tiny(TD3, policy=SquashedPolicy)
    assert "the last layer of ContinuousCritic must be an nn.Linear" in sentence(error)
    assert "not Tanh" in sentence(error)
    tiny(TD3, policy=SquashedPolicy, beta=0).learn(30)
    with pytest.raises(PeerError, match="not Tanh"):
        tiny(STOCK["TD3"], policy=SquashedPolicy).learn(30, callback=RepresentationCallback())


def test_features_that_are_signed(monkeypatch):
    monkeypatch.setattr(Watch, "warned", set())
    with pytest.warns(SignedFeaturesWarning, match="CosinePEER"):
        with_rows(tiny(TD3, policy_kwargs={"activation_fn": nn.Tanh})).train(gradient_steps=1, batch_size=16)
    monkeypatch.setattr(Watch, "warned", set())
    settings = {"policy_kwargs": {"activation_fn": nn.Tanh}, "regularizer": "cosine-peer"}
    with_rows(tiny(TD3, **settings)).train(gradient_steps=1, batch_size=16)  # no warning, which would be an error


class Leaky(stable_baselines3.DQN):
    def train(self, gradient_steps, batch_size=100):
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample(batch_size)
            target = batch.rewards + self.q_net_target(batch.next_observations).amax(1, keepdim=True)
            (self.q_net(batch.observations) - target).square().mean().backward()


class Twice(stable_baselines3.DQN):
    def train(self, gradient_steps, batch_size=100):
        batch = self.replay_buffer.sample(batch_size)
        with torch.no_grad():
            self.q_net_target(batch.next_observations)
            self.q_net_target(batch.observations)
        self.q_net(batch.observations).mean().backward()


class TheOtherWayRound(stable_baselines3.DQN):
    def train(self, gradient_steps, batch_size=100):
        batch = self.replay_buffer.sample(batch_size)
        value = self.q_net(batch.observations)
        with torch.no_grad():
            target = self.q_net_target(batch.next_observations)
        (value - target).square().mean().backward()


class DoubleQ(stable_baselines3.DQN):
    """The online network looks at s' first, without gradients: allowed."""

    def train(self, gradient_steps, batch_size=100):
        batch = self.replay_buffer.sample(batch_size)
        with torch.no_grad():
            target = self.q_net_target(batch.next_observations)
            best = self.q_net(batch.next_observations).argmax(1, keepdim=True)
            target = batch.rewards + target.gather(1, best)
        (self.q_net(batch.observations) - target).square().mean().backward()


@pytest.mark.parametrize(
    ("base", "words"),
    [
        (Leaky, "the target critic ran with gradients"),
        (Twice, "the target critic ran twice"),
        (TheOtherWayRound, "was not added: use beta=0 with this algorithm"),
    ],
)
def test_an_update_of_ones_own_whose_passes_do_not_fit(base, words):
    kind = type("Mine", (Regularized, base), {})
    with pytest.raises(PeerError) as error:
        with_rows(tiny(kind)).train(gradient_steps=1, batch_size=16)
    assert words in sentence(error)
    with_rows(tiny(kind, beta=0)).train(gradient_steps=1, batch_size=16)


def test_an_update_of_ones_own_that_fits():
    kind = type("Mine", (Regularized, DoubleQ), {})
    model = with_rows(tiny(kind, beta=0.5))
    model.train(gradient_steps=1, batch_size=16)
    assert model.logger.name_to_value["train/regularizer"] > 0


def test_a_critic_with_nothing_before_its_last_layer():
    with pytest.raises(PeerError) as error:
        with_rows(tiny(DQN, policy_kwargs={"net_arch": []})).train(gradient_steps=1, batch_size=16)
    assert "give net_arch a hidden layer" in sentence(error)


class Hidden(QNetwork):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.values = self.q_net
        del self.q_net

    def forward(self, obs):
        return self.values(self.extract_features(obs, self.features_extractor))


class HiddenPolicy(DQNPolicy):
    def make_q_net(self):
        return Hidden(**self._update_features_extractor(self.net_args, features_extractor=None))


def test_a_critic_that_keeps_its_networks_elsewhere():
    assert issubclass(HiddenPolicy, BasePolicy)
    with pytest.raises(PeerError) as error:
        tiny(DQN, policy=HiddenPolicy)
    assert "Hidden has none of q_networks, q_net and quantile_net" in sentence(error)


def test_a_compiled_critic():
    wrapped, in_place = (with_rows(tiny(DQN)) for _ in range(2))
    wrapped.q_net = torch.compile(wrapped.q_net, backend="eager")
    in_place.q_net_target.compile(backend="eager")
    for model in (wrapped, in_place):
        with pytest.raises(PeerError) as error:
            model.train(gradient_steps=1, batch_size=16)
        assert "the critic is compiled" in sentence(error)


@pytest.mark.parametrize("name", list(OURS))
def test_rows_with_nan_are_refused(name):
    model = with_rows(tiny(OURS[name]))
    model.train(gradient_steps=3, batch_size=16)  # past the first calls, which are always looked at
    model.replay_buffer.next_observations[:] = np.nan
    with pytest.raises(ValueError, match=r"phi_next must be finite|invalid values"):
        model.train(gradient_steps=1, batch_size=16)


@pytest.mark.parametrize(("name", "value"), [("every", 0), ("every", 1.5), ("batch_size", True)])
def test_callback_settings(name, value):
    with pytest.raises(PeerError, match=f"{name} must be a whole number of at least 1, not {value!r}"):
        RepresentationCallback(**{name: value})


def test_a_missing_extra_names_the_command():
    code = (
        "import sys\n"
        "sys.modules['sb3_contrib'] = None\n"
        "from peer_rl.errors import PeerError\n"
        "try:\n"
        "    import peer_rl.integrations.sb3\n"
        "except PeerError as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "needs sb3_contrib; install it with: pip install 'peer-rl[sb3]'" in run.stdout
