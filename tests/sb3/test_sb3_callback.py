"""RepresentationCallback: the right numbers, at the right steps, and no trace in the training of a stock agent."""

import numpy as np
import pytest
import sb3_contrib
import stable_baselines3
import torch
from sb3_models import STOCK, assert_same_bits, env_for, tiny, with_rows
from sb3_plain import run
from stable_baselines3.common.envs import BitFlippingEnv, SimpleMultiObsEnv
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from torch import nn
from toy_envs import Choice, FixedBox

from peer_rl.errors import PeerError
from peer_rl.integrations.sb3 import TD3, RepresentationCallback, representation
from peer_rl.plugin.diagnostics import diagnose, diagnose_features

KINDS = {**STOCK, "DDPG": stable_baselines3.DDPG}
NAMES = pytest.mark.parametrize("name", list(KINDS))
STEPS = 48
ALWAYS = {
    "cosine",
    "inner_product",
    "feature_norm",
    "next_feature_norm",
    "effective_rank",
    "dormant_fraction",
    "signed_fraction",
}
WITH_A_VALUE = {"drd", "drd_share_positive", "bellman_gap", "head_norm"}


def points(folder) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


class Dropping(nn.Module):
    """A random layer that keeps a moving average, as batch normalisation does."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        if self.training:
            self.seen += 1
        return nn.functional.dropout(torch.relu(x), 0.2, self.training)


@NAMES
@pytest.mark.parametrize("activation", [nn.ReLU, Dropping])
def test_it_leaves_no_trace(name, activation):
    kwargs = {"policy_kwargs": {"activation_fn": activation}}
    plain = tiny(KINDS[name], **kwargs).learn(STEPS)
    after = (np.random.random(), torch.rand(()).item())  # noqa: NPY002 - the global generators must stand alike
    watched = tiny(KINDS[name], **kwargs).learn(STEPS, callback=RepresentationCallback(every=7, batch_size=16))
    assert (np.random.random(), torch.rand(()).item()) == after  # noqa: NPY002
    assert_same_bits(watched, plain)
    assert [module.training for module in watched.policy.modules()] == [m.training for m in plain.policy.modules()]
    assert not any(module._forward_pre_hooks for module in watched.policy.modules())


@NAMES
def test_what_tensorboard_shows(name, tmp_path):
    callback = RepresentationCallback(every=15, batch_size=16)
    model = tiny(KINDS[name], tensorboard_log=str(tmp_path)).learn(64, callback=callback)
    shown = points(model.logger.dir)
    names = {tag.removeprefix("representation/") for tag in shown if tag.startswith("representation/")}
    assert names == (ALWAYS if name in ("TQC", "QRDQN") else ALWAYS | WITH_A_VALUE)
    # learning starts after step 20; the last one is at the end
    assert [step for step, _ in shown["representation/cosine"]] == [21, 36, 51, 64]
    assert shown["representation/cosine"][-1][1] == pytest.approx(callback.report.cosine, rel=1e-6)


@pytest.mark.parametrize("name", ["TD3", "SAC", "DQN", "DDPG"])
def test_the_numbers_are_those_of_the_critics(name):
    """One transition repeated, so that the draw does not matter; noise off; everything written out."""
    settings = {"target_policy_noise": 1e-9} if name == "TD3" else {}
    model = with_rows(tiny(KINDS[name], **settings))
    buffer = model.replay_buffer
    if name == "DDPG":
        model.target_policy_noise = 1e-9
    with torch.no_grad():
        for parameter in (model.q_net_target if name == "DQN" else model.critic_target).parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    for column in (buffer.observations, buffer.next_observations, buffer.actions, buffer.rewards, buffer.dones):
        column[:] = column[3]
    buffer.dones[:] = 0
    buffer.rewards[:] = 0.7
    features = representation(model, 8, seed=1)
    batch = buffer.sample(8)
    if name == "DQN":
        _, phi = run(model.q_net, batch.observations)
        q_next, phi_next = run(model.q_net_target, batch.next_observations)
        same = (q_next[0].argmax(1) == batch.actions[:, 0]).float()
        expected = diagnose(
            phi[0],
            phi_next[0],
            head_weight=model.q_net.q_net[-1].weight,
            reward=batch.rewards[:, 0],
            gamma=0.99,
            same_action=same,
        )
    else:
        if name == "SAC":
            torch.manual_seed(1)
            torch.randn(0)
            action = model.actor.action_log_prob(batch.next_observations)[0]
        else:
            action = model.actor_target(batch.next_observations)
        _, phi = run(model.critic, batch.observations, batch.actions)
        _, phi_next = run(model.critic_target, batch.next_observations, action)
        weight = torch.stack([network[-1].weight for network in model.critic.q_networks])
        if name == "DDPG":
            phi, phi_next, weight = phi[0], phi_next[0], weight[0, 0]
        expected = diagnose(phi, phi_next, head_weight=weight, reward=batch.rewards[:, 0], gamma=0.99)
    found = diagnose_features(features)
    for key, value in expected.as_dict().items():
        assert found.as_dict()[key] == pytest.approx(value, rel=1e-4, abs=1e-6), key


def test_td3s_next_action_is_the_noisy_one():
    model = with_rows(tiny(STOCK["TD3"], target_policy_noise=5.0, target_noise_clip=0.5))
    quiet = with_rows(tiny(STOCK["TD3"], target_policy_noise=1e-9))
    loud, still = (representation(agent, 32, seed=2) for agent in (model, quiet))
    torch.testing.assert_close(loud.phi, still.phi)
    assert (loud.phi_next - still.phi_next).abs().max() > 1e-2


def test_n_steps_and_terminations_enter_the_discount():
    short = representation(tiny(STOCK["DQN"], Choice(), n_steps=3, gamma=0.9).learn(STEPS), 64)
    assert set(short.discount.tolist()) == {0.0}  # Choice ends after one step
    found = representation(tiny(STOCK["TD3"], FixedBox(), n_steps=3, gamma=0.9).learn(50), 256)  # five episodes
    assert {round(value, 4) for value in found.discount.tolist()} == {0.0, 0.729}
    assert {round(value, 4) for value in found.reward.tolist()} == {1.0, 1.9, 2.71}  # it pays 1 a step


@NAMES
def test_several_normalised_environments(name):
    env = VecNormalize(DummyVecEnv([lambda: env_for("DQN" if name.endswith("DQN") else "TD3")] * 2))
    callback = RepresentationCallback(every=10)
    tiny(KINDS[name], env).learn(STEPS, callback=callback)
    assert callback.report.rows in (256, 512)


def test_dict_observations_and_hindsight():
    multi = RepresentationCallback(every=10)
    env = SimpleMultiObsEnv(random_start=False)
    kwargs = {"features_extractor_kwargs": {"cnn_output_dim": 8}}
    tiny(STOCK["DQN"], env, "MultiInputPolicy", policy_kwargs=kwargs).learn(40, callback=multi)
    assert multi.report.rows == 256
    hindsight = RepresentationCallback(every=10)
    env = BitFlippingEnv(n_bits=4, continuous=True)
    settings = {"replay_buffer_class": stable_baselines3.HerReplayBuffer, "learning_starts": 10}
    tiny(STOCK["SAC"], env, "MultiInputPolicy", **settings).learn(40, callback=hindsight)
    assert hindsight.report.rows == 512


def test_it_waits_for_hindsights_first_episode():
    """A HerReplayBuffer refuses to be sampled until an episode has ended; that must not end a run."""

    def agent(**settings):
        env = BitFlippingEnv(n_bits=12, continuous=True, max_steps=50)  # not solved by chance
        settings["replay_buffer_class"] = stable_baselines3.HerReplayBuffer
        return tiny(STOCK["SAC"], env, "MultiInputPolicy", **settings)

    def learned(callback=None):
        return agent(learning_starts=0, train_freq=(1, "episode"), gradient_steps=2).learn(110, callback=callback)

    callback = RepresentationCallback(every=10)
    assert_same_bits(learned(callback), learned())
    assert callback.report.rows == 512
    with pytest.raises(PeerError, match="a HerReplayBuffer without a whole episode"):
        representation(agent().learn(3))


def test_a_second_learn_ends_with_a_diagnosis_too():
    callback = RepresentationCallback(every=1000)
    model = tiny(STOCK["TD3"]).learn(STEPS, callback=callback)
    first = callback.report
    model.learn(STEPS - 10, callback=callback)  # counts its steps from 0 again
    assert callback.report is not first
    assert callback.num_timesteps == STEPS - 10


def test_ours_can_be_watched_too():
    watched = tiny(TD3, beta=0.1).learn(STEPS, callback=RepresentationCallback(every=7))
    assert_same_bits(watched, tiny(TD3, beta=0.1).learn(STEPS))


def test_algorithms_without_a_target_critic_say_so():
    crossq = sb3_contrib.CrossQ("MlpPolicy", env_for("TD3"), buffer_size=100, device="cpu")
    for model in (stable_baselines3.A2C("MlpPolicy", Choice(), device="cpu"), crossq):
        with pytest.raises(PeerError, match="has no critic with a target network") as error:
            model.learn(10, callback=RepresentationCallback())
        assert "\n" not in str(error.value)


def test_an_empty_buffer_says_so():
    with pytest.raises(PeerError, match="the replay buffer is empty"):
        representation(tiny(STOCK["TD3"]))
