"""DQN against its equations written out, and on a task that a broken loss cannot learn."""

import numpy as np
import pytest
import torch
from running import tiny_config

from peer_rl.agents.dqn import DQN
from peer_rl.configs import configure
from peer_rl.configs.agents import DQNConfig
from peer_rl.configs.networks import CriticConfig
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.regularizers import make
from peer_rl.replay.batch import Batch
from peer_rl.training.api import load, train
from peer_rl.training.loop import build_agent
from peer_rl.training.seeding import Stream
from peer_rl.training.trees import unpack

CPU = torch.device("cpu")
SPEC = EnvSpec((3,), "float32", one_hot=0, one_hot_start=0, actions=4, action_start=0)


def agent_with(regularizer: str = "peer", beta: float = 0.1, **settings: object) -> DQN:
    config = DQNConfig(critic=CriticConfig(hidden=(8, 5)), **settings)
    return DQN(config, SPEC, regularizer=make(regularizer, beta), rng=Stream(0, "x", device=CPU), device=CPU)


def batch_of(size: int = 16) -> Batch:
    rng = np.random.default_rng(0)
    return Batch.from_numpy(
        obs=rng.normal(size=(size, 3)).astype(np.float32),
        action=rng.integers(4, size=size),
        reward=rng.normal(size=size).astype(np.float32),
        discount=(0.9 * rng.integers(2, size=size)).astype(np.float32),
        next_obs=rng.normal(size=(size, 3)).astype(np.float32),
        device=CPU,
    )


def numpy_forward(network, obs):
    """phi and q with plain matrix products."""
    arrays = [parameter.detach().double().numpy() for parameter in network.parameters()]
    hidden = np.maximum(obs @ arrays[0].T + arrays[1], 0)
    phi = np.maximum(hidden @ arrays[2].T + arrays[3], 0)
    return phi, phi @ arrays[4].T + arrays[5]


def test_loss_is_td_plus_beta_times_the_inner_product():
    agent, batch, rng = agent_with(beta=0.1), batch_of(), Stream(0, "u", device=CPU)
    with torch.no_grad():
        for parameter in agent.target.parameters():
            parameter.add_(0.1)  # so that online and target cannot be confused
    phi, q = numpy_forward(agent.critic, batch.obs.double().numpy())
    phi_next, q_next = numpy_forward(agent.target, batch.next_obs.double().numpy())
    target = batch.reward.numpy() + batch.discount.numpy() * q_next.max(1)
    td = np.mean((q[np.arange(16), batch.action.numpy()] - target) ** 2)
    found = agent.temporal_difference(batch, rng)
    assert found.loss.item() == pytest.approx(td, rel=1e-5)
    metrics = agent.update(batch, index=0, rng=rng).metrics
    assert metrics["td_loss"].item() == pytest.approx(td, rel=1e-5)
    assert metrics["regularizer"].item() == pytest.approx(0.1 * np.mean(np.sum(phi * phi_next, 1)), rel=1e-5)


def test_no_gradient_reaches_the_target_and_the_target_follows_by_tau():
    agent, batch = agent_with(tau=0.25), batch_of()
    before = [parameter.clone() for parameter in agent.target.parameters()]
    agent.update(batch, index=0, rng=Stream(0, "u", device=CPU))
    for old, new, online in zip(before, agent.target.parameters(), agent.critic.parameters(), strict=True):
        assert new.grad is None
        torch.testing.assert_close(new, 0.75 * old + 0.25 * online)


@pytest.mark.parametrize("name", ["peer", "cosine-peer", "feature-norm", "dr3", "beer"])
def test_every_regularizer_goes_into_the_loss(name):
    plain, regularized = agent_with("none", 0.0), agent_with(name, 1.0)
    for agent in (plain, regularized):
        for index in range(3):
            metrics = agent.update(batch_of(), index=index, rng=Stream(0, "u", device=CPU)).metrics
    assert all(torch.isfinite(value) for value in metrics.values())
    differs = [
        not torch.equal(a, b) for a, b in zip(plain.critic.parameters(), regularized.critic.parameters(), strict=True)
    ]
    assert any(differs)


def test_epsilon_falls_over_its_own_horizon_and_is_used():
    agent = agent_with(epsilon_start=1.0, epsilon_final=0.2, epsilon_steps=100)
    obs, rng = np.zeros((1, 3), np.float32), Stream(0, "e", device=CPU)
    first = np.array([True])
    greedy = agent.act(obs, first=first, explore=False, rng=rng)[0]
    assert agent.explored == 0
    early = [agent.act(obs, first=first, explore=True, rng=rng)[0] for _ in range(40)]
    for _ in range(100):
        agent.act(obs, first=first, explore=True, rng=rng)
    assert agent.epsilon() == pytest.approx(0.2)
    late = [agent.act(obs, first=first, explore=True, rng=rng)[0] for _ in range(400)]
    assert np.mean(np.array(early) == greedy) < 0.7
    assert np.mean(np.array(late) == greedy) == pytest.approx(0.8 + 0.2 / 4, abs=0.06)


def test_pixels_and_continuous_actions_are_refused_in_words():
    pixels = EnvSpec((3, 84, 84), "uint8", one_hot=0, one_hot_start=0, actions=4, action_start=0)
    with pytest.raises(ConfigError, match="observations have shape \\(3, 84, 84\\)"):
        build_agent(tiny_config("dqn"), pixels, CPU)
    continuous = EnvSpec((3,), "float32", one_hot=0, one_hot_start=0, actions=0, action_start=0)
    with pytest.raises(ConfigError, match="needs discrete actions"):
        build_agent(tiny_config("dqn"), continuous, CPU)


@pytest.mark.parametrize("beta", [0.0, 5e-4])
def test_learns_to_match_a_sign(tmp_path, beta):
    """Chance gives 0.5. Without the reward in the target, or with a wrong action gathered, it stays there."""
    config = configure("dqn", "toy_envs:choice", steps=1_200, beta=beta, **{"learning.start_steps": 300})
    policy = load(train(config, runs=tmp_path))
    assert policy.evaluate(episodes=50).mean >= 0.95


def test_observations_are_copied_out_of_the_environments_own_array(tmp_path):
    """Otherwise obs and next_obs would be the same numbers in every row."""
    config = configure("dqn", "toy_envs:alias", steps=40, start_steps=40)
    segments = (train(config, runs=tmp_path) / "checkpoint" / "replay").iterdir()
    rows = unpack(next(segments).read_bytes())
    assert rows["obs"][:3, 0].tolist() == [0.0, 1.0, 2.0]
    assert rows["next_obs"][:3, 0].tolist() == [1.0, 2.0, 3.0]


def test_actions_that_do_not_start_at_0_are_shifted(tmp_path):
    config = configure("dqn", "toy_envs:choice_from_five", steps=1_200, **{"learning.start_steps": 300})
    policy = load(train(config, runs=tmp_path))
    assert policy.evaluate(episodes=50).mean >= 0.95
    assert policy.act(np.array([1.0, 0.0], np.float32)) == 6
