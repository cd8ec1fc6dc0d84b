"""What Stable-Baselines3's own tests ask of TD3, SAC and DQN, asked of our classes in their place."""

import copy
import io
import zipfile

import numpy as np
import pytest
import sb3_contrib
import stable_baselines3
import torch
from gymnasium import spaces
from sb3_models import OURS, STOCK, assert_same_bits, env_for, furthest, seeded, tiny, weights, with_rows
from stable_baselines3.common.buffers import NStepReplayBuffer
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.envs import FakeImageEnv, IdentityEnv, IdentityEnvBox, SimpleMultiObsEnv
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from peer_rl.errors import PeerError
from peer_rl.integrations import sb3
from peer_rl.integrations.sb3 import DQN, SAC, TD3
from peer_rl.plugin import PEER, ConstrainedPEER, CosinePEER, Regularizer

NAMES = pytest.mark.parametrize("name", list(OURS))
CONTINUOUS = pytest.mark.parametrize("name", ["TD3", "SAC", "TQC"])
DISCRETE = pytest.mark.parametrize("name", ["DQN", "QRDQN"])
STEPS = 48


def observations(model, rows: int = 10) -> np.ndarray:
    return np.stack([model.observation_space.sample() for _ in range(rows)])


def own(phi, phi_next):
    return (phi * phi_next).square().sum(-1).mean(-1).sum()


class Doubled(Regularizer):
    def loss(self, features):
        return 2 * self.beta * (features.phi * features.phi_next.detach()).sum(-1).mean(-1).sum()


@NAMES
def test_same_seed_same_weights(name):
    first, second = (tiny(OURS[name], beta=0.1).learn(STEPS) for _ in range(2))
    assert_same_bits(first, second)
    assert furthest(first, tiny(OURS[name], beta=0.1, seed=1).learn(STEPS)) > 1e-3


@NAMES
def test_saved_and_loaded_with_the_optimizer(name, tmp_path):
    model = tiny(OURS[name], beta=0.1, regularizer="cosine-peer").learn(STEPS)
    seen = observations(model)
    expected, _ = model.predict(seen, deterministic=True)
    model.save(tmp_path / "model")
    loaded = OURS[name].load(tmp_path / "model.zip", env=env_for(name))
    assert (loaded.beta, loaded.regularizer) == (0.1, "cosine-peer")
    assert_same_bits(loaded, model)
    np.testing.assert_array_equal(loaded.predict(seen, deterministic=True)[0], expected)
    for kept in model._get_torch_save_params()[0]:
        if kept.endswith("optimizer"):
            for one, other in zip(*(states(agent, kept) for agent in (model, loaded)), strict=True):
                torch.testing.assert_close(one, other, rtol=0, atol=0)
    # both continue alike from the same rows: Adam's moments, beta and the regularizer are all there
    for agent in (model, loaded):
        with_rows(agent)
        seeded()
        agent.train(gradient_steps=3, batch_size=16)
    assert_same_bits(loaded, model)


def states(model, name):
    owner, _, optimizer = name.rpartition(".")
    found = getattr(model, owner) if owner else model
    state = getattr(found, optimizer).state_dict()["state"]
    return [tensor for slot in state.values() for tensor in slot.values()]


@NAMES
def test_a_loaded_agent_continues_learning(name, tmp_path):
    tiny(OURS[name], beta=0.1).learn(STEPS).save(tmp_path / "model")
    loaded = OURS[name].load(tmp_path / "model", env=env_for(name))
    before = weights(loaded)
    loaded.learn(STEPS, reset_num_timesteps=False)
    assert loaded.num_timesteps == 2 * STEPS
    assert loaded.logger.name_to_value["train/regularizer"] != 0
    assert any(not torch.equal(tensor, before[key]) for key, tensor in weights(loaded).items())


@NAMES
def test_zips_go_both_ways(name, tmp_path):
    stock, ours = tiny(STOCK[name]).learn(STEPS), tiny(OURS[name], beta=0.1).learn(STEPS)
    stock.save(tmp_path / "stock")
    ours.save(tmp_path / "ours")
    read = OURS[name].load(tmp_path / "stock")
    assert_same_bits(read, stock)
    assert (read.beta, read.regularizer) == (5e-4, "peer")
    assert OURS[name].load(tmp_path / "stock", beta=0.2).beta == 0.2
    assert OURS[name].load(tmp_path / "ours", beta=0.2).beta == 0.2
    plain = STOCK[name].load(tmp_path / "ours", env=env_for(name))
    assert_same_bits(plain, ours)
    plain.learn(STEPS)
    data = zipfile.ZipFile(tmp_path / "ours.zip").read("data").decode()
    assert "peer_rl" not in data  # nothing in the zip needs this package


@NAMES
def test_set_parameters(name):
    model, other = tiny(OURS[name], beta=0.1).learn(STEPS), tiny(OURS[name], beta=0.1, seed=1)
    assert furthest(model, other) > 1e-3
    # a copy, because two optimizers would share Adam's moments otherwise
    other.set_parameters(copy.deepcopy(model.get_parameters()))
    assert_same_bits(other, model)
    # what get_parameters leaves out: the temperature and the counter of TD3's delay
    if name in ("SAC", "TQC"):
        other.log_ent_coef.data.copy_(model.log_ent_coef.data)
    other._n_updates = model._n_updates
    for agent in (model, other):
        with_rows(agent)
        seeded()
        agent.train(gradient_steps=2, batch_size=16)
    assert_same_bits(other, model)


@NAMES
def test_a_deep_copy_learns_alike(name):
    model = with_rows(tiny(OURS[name], beta=0.1))
    model.train(gradient_steps=1, batch_size=16)
    model.env, environment = None, model.env
    twin = copy.deepcopy(model)
    model.env = environment
    for agent in (model, twin):
        seeded()
        agent.train(gradient_steps=2, batch_size=16)
    assert_same_bits(twin, model)


def test_a_regularizer_of_ones_own_is_given_again_at_load():
    for given, label in ((own, "own"), (Doubled(0.3), "Doubled"), (Doubled, "Doubled")):
        saved = io.BytesIO()
        model = tiny(TD3, regularizer=given)
        assert model.beta == (0.3 if isinstance(given, Doubled) else 5e-4)
        model.save(saved)
        saved.seek(0)
        with pytest.raises(PeerError, match=rf"your own regularizer {label}.* load\(\.\.\., regularizer={label}\)"):
            TD3.load(saved)
        saved.seek(0)
        loaded = TD3.load(saved, regularizer=given)
        assert loaded.beta == model.beta
        with_rows(loaded).train(gradient_steps=1, batch_size=16)


def test_an_object_given_twice_keeps_its_own_beta():
    shared = CosinePEER(0.3)
    first, second = tiny(TD3, regularizer=shared), tiny(TD3, regularizer=shared, beta=0.1)
    for model in (first, second):
        with_rows(model).train(gradient_steps=1, batch_size=16)
    assert (first.beta, second.beta, shared.beta) == (0.3, 0.1, 0.3)
    assert first.regularizer == second.regularizer == "cosine-peer"


def test_a_zip_keeps_the_beta_that_was_found():
    model = with_rows(tiny(TD3, regularizer=ConstrainedPEER(target=0.1, rate=0.5)))
    model.train(gradient_steps=5, batch_size=16)
    assert model.beta > 1e-3
    saved = io.BytesIO()
    model.save(saved)
    saved.seek(0)
    loaded = TD3.load(saved, env=env_for("TD3"), regularizer=ConstrainedPEER(target=0.1, rate=0.5))
    assert loaded.beta == model.beta
    for agent in (model, loaded):
        with_rows(agent)
        seeded()
        agent.train(gradient_steps=3, batch_size=16)
    assert loaded.beta == pytest.approx(model.beta, rel=1e-6)


def test_the_regularizer_may_be_changed_between_updates():
    changed, cosine, plain = (
        with_rows(tiny(TD3, beta=0.1, regularizer=kind)) for kind in ("peer", "cosine-peer", "none")
    )
    changed.regularizer = CosinePEER
    for model in (changed, cosine):
        seeded()
        model.train(gradient_steps=2, batch_size=16)
    assert_same_bits(changed, cosine)
    assert (changed.regularizer, changed.beta) == ("cosine-peer", 0.1)
    changed = with_rows(tiny(TD3, beta=0.1))
    changed.regularizer = "none"
    for model in (changed, plain):
        seeded()
        model.train(gradient_steps=2, batch_size=16)
    assert_same_bits(changed, plain)
    changed.regularizer = "pear"
    with pytest.raises(PeerError, match="'pear' is unknown"):
        changed.train(gradient_steps=1, batch_size=16)


def test_none_is_beta_0():
    model = tiny(TD3, beta=0.1, regularizer="none")
    assert model.beta == 0
    assert tiny(TD3, regularizer=PEER(0)).beta == 0


@NAMES
@pytest.mark.parametrize("n_steps", [1, 3])
def test_n_step_replay(name, n_steps):
    model = tiny(OURS[name], beta=0.1, n_steps=n_steps).learn(STEPS)
    assert isinstance(model.replay_buffer, NStepReplayBuffer) == (n_steps == 3)
    assert np.isfinite(model.logger.name_to_value["train/regularizer"])


@CONTINUOUS
def test_box_actions(name):
    model = tiny(OURS[name], IdentityEnvBox(eps=0.5), beta=0.1).learn(STEPS)
    assert model.logger.name_to_value["train/regularizer"] > 0


@DISCRETE
def test_discrete_observations_and_actions(name):
    model = tiny(OURS[name], IdentityEnv(dim=3), beta=0.1).learn(STEPS)
    assert model.logger.name_to_value["train/regularizer"] > 0


@NAMES
def test_dict_observations(name):
    env = SimpleMultiObsEnv(discrete_actions=name in ("DQN", "QRDQN"), random_start=False)
    kwargs = {"features_extractor_kwargs": {"cnn_output_dim": 8}}
    model = tiny(OURS[name], env, "MultiInputPolicy", beta=0.1, policy_kwargs=kwargs).learn(STEPS)
    assert model.logger.name_to_value["train/regularizer"] > 0


@NAMES
def test_images(name):
    env = FakeImageEnv(action_dim=2, screen_height=40, screen_width=40, discrete=name in ("DQN", "QRDQN"))
    kwargs = {"features_extractor_kwargs": {"features_dim": 8}}
    model = tiny(OURS[name], env, "CnnPolicy", beta=0.1, batch_size=4, policy_kwargs=kwargs).learn(24)
    assert model.logger.name_to_value["train/regularizer"] > 0


@NAMES
def test_several_environments_at_once_and_normalised(name):
    env = VecNormalize(DummyVecEnv([lambda: env_for(name)] * 2))
    model = tiny(OURS[name], env, beta=0.1, gradient_steps=-1, train_freq=3).learn(STEPS)
    assert model.logger.name_to_value["train/regularizer"] > 0


@pytest.mark.parametrize("kind", [TD3, SAC])
def test_episodes_as_the_unit_of_training(kind):
    model = tiny(kind, beta=0.1, train_freq=(1, "episode"), gradient_steps=-1).learn(STEPS)
    assert model.logger.name_to_value["train/regularizer"] > 0


def test_state_dependent_exploration():
    model = tiny(SAC, beta=0.1, use_sde=True, sde_sample_freq=4).learn(STEPS)
    assert model.logger.name_to_value["train/regularizer"] > 0


def test_callbacks(tmp_path):
    callbacks = [
        CheckpointCallback(save_freq=24, save_path=tmp_path, name_prefix="at"),
        EvalCallback(DummyVecEnv([lambda: Monitor(env_for("TD3"))]), eval_freq=24, n_eval_episodes=1, verbose=0),
    ]
    model = tiny(TD3, beta=0.1).learn(STEPS, callback=callbacks)
    assert {path.name for path in tmp_path.iterdir()} == {"at_24_steps.zip", "at_48_steps.zip"}
    assert TD3.load(tmp_path / "at_24_steps").beta == 0.1
    assert callbacks[1].n_calls == STEPS
    # an observer of Stable-Baselines3's own changes nothing in ours either
    assert_same_bits(model, tiny(TD3, beta=0.1).learn(STEPS))


def test_every_public_name_of_stable_baselines3_is_here_or_gets_a_sentence():
    for package in (stable_baselines3, sb3_contrib):
        for name in set(package.__all__) - {"get_system_info"}:
            if name in vars(sb3):
                assert issubclass(getattr(sb3, name), getattr(package, name))
            else:
                with pytest.raises(PeerError, match=f"{name} (has no target critic|is not here)"):
                    getattr(sb3, name)


def test_it_is_a_stable_baselines3_agent():
    assert isinstance(tiny(DQN), stable_baselines3.DQN)
    assert tiny(DQN).policy_class is stable_baselines3.dqn.MlpPolicy
    assert isinstance(tiny(DQN).action_space, spaces.Discrete)
