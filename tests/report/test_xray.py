"""peer-rl xray: planted numbers are found, stock agents are read, and a zip that nobody trusts is not opened."""

import html
import math

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
import torch
from running import peer_rl
from sb3_models import STOCK, env_for, tiny
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from torch import nn

from peer_rl.errors import PeerError
from peer_rl.plugin.diagnostics import diagnose
from peer_rl.plugin.layers import entropy_rank, layer_health
from peer_rl.report.xray import unusual, xray, xray_critic, xray_model
from peer_rl.report.xray_charts import principal_components
from peer_rl.sb3.rollout import play

RANK, DORMANT, UNITS = 3, 7, 24


class Planted(nn.Module):
    """phi is non-negative, has RANK directions of equal length and DORMANT units that never fire."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(4, RANK)
        self.hidden = nn.Linear(RANK, UNITS)
        self.head = nn.Linear(UNITS, 1)
        with torch.no_grad():
            self.encoder.weight.copy_(torch.eye(RANK, 4))
            self.encoder.bias.zero_()
            self.hidden.weight.zero_()
            self.hidden.bias.zero_()
            for unit in range(UNITS - DORMANT):
                self.hidden.weight[unit, unit % RANK] = 1.0
            self.hidden.bias[UNITS - DORMANT :] = -1.0

    def forward(self, obs, action):
        x = torch.relu(self.encoder(torch.cat([obs, action], 1)))
        return self.head(torch.relu(self.hidden(x)))


@pytest.fixture
def rows():
    generator = torch.Generator().manual_seed(0)
    obs = torch.eye(3)[torch.arange(300) % 3] * (0.5 + torch.rand(300, 1, generator=generator))
    return obs, torch.randn(300, 1, generator=generator)


def test_planted_dormant_units_and_a_planted_rank_are_found(rows):
    first, second = layer_health(Planted(), *rows)
    assert (first.name, first.units, second.name, second.units) == ("encoder", RANK, "hidden", UNITS)
    assert second.dormant_fraction == pytest.approx(DORMANT / UNITS)
    assert first.dormant_fraction == 0
    assert second.effective_rank == RANK
    assert second.entropy_rank == pytest.approx(RANK, abs=0.02)
    assert second.weight_norm == pytest.approx(math.sqrt(UNITS - DORMANT))
    assert second.positive_fraction == pytest.approx((UNITS - DORMANT) / UNITS / RANK, abs=0.01)
    obs, _ = rows
    copies = torch.tensor([sum(unit % RANK == k for unit in range(UNITS - DORMANT)) for k in range(RANK)])
    expected = (obs.square() * copies).sum(1).sqrt().mean().item()
    assert second.feature_norm == pytest.approx(expected)


def test_the_page_says_what_is_planted(rows, tmp_path):
    critic = Planted()
    found = xray_critic(critic, rows, (rows[0].roll(-1, 0), rows[1]), reward=torch.zeros(300), gamma=0.9)
    assert any(f"{100 * DORMANT / UNITS:.0f} % of the {UNITS} units of hidden" in line for line in unusual(found))
    text = html.unescape(xray(critic, batch=rows, next_batch=rows, out=tmp_path).read_text())
    assert unusual(found)[0] in text
    assert "parallel" in text  # the batch is its own next batch


def test_entropy_rank_by_hand():
    phi = torch.diag(torch.tensor([4.0, 2.0, 1.0, 1.0]))
    share = np.array([0.5, 0.25, 0.125, 0.125])
    assert entropy_rank(phi) == pytest.approx(np.exp(-(share * np.log(share)).sum()))
    assert entropy_rank(torch.zeros(5, 3)) == 0


def test_twin_critics_and_an_encoder_with_an_action():
    class Twin(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(54, 8), nn.ReLU())
            self.heads = nn.ModuleList(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1)) for _ in "ab")

        def forward(self, picture, action):
            x = torch.cat([self.encoder(picture), action], 1)
            return tuple(head(x) for head in self.heads)

    network = Twin()
    found = layer_health(network, torch.rand(20, 1, 5, 5), torch.randn(20, 2))
    assert [(one.name, one.units) for one in found] == [
        ("encoder.0", 6),
        ("encoder.3", 8),
        ("heads.0.0", 16),
        ("heads.1.0", 16),
    ]
    assert network.training


def test_principal_components_keep_what_varies():
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(2, 9))
    points = rng.normal(size=(50, 2)) @ plane
    mine, theirs, share = principal_components(points[:25], points[25:])
    assert share == pytest.approx(1)
    distances = [np.linalg.norm(x[:, None] - x[None], axis=-1) for x in (points, np.concatenate([mine, theirs]))]
    np.testing.assert_allclose(*distances, atol=1e-9)


@pytest.mark.parametrize("kind", ["DQN", "SAC", "TD3"])
def test_a_stock_agent_is_read_and_left_as_it_was(kind, tmp_path):
    model = tiny(STOCK[kind]).learn(60)
    before = {name: weight.clone() for name, weight in model.policy.state_dict().items()}
    buffer, size = model.replay_buffer, model.replay_buffer.size()
    torch.manual_seed(3)
    state = torch.get_rng_state()
    found = xray_model(model, env_for(kind), episodes=4)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.replay_buffer is buffer
    assert buffer.size() == size
    for name, weight in model.policy.state_dict().items():
        assert torch.equal(weight, before[name])
    assert len(found.returns) == 4
    assert len(found.episode) == 40  # ten steps an episode
    heads = 1 if kind == "DQN" else 2
    assert [layer.units for layer in found.layers] == [8, 5] * heads
    phi = found.features.phi
    assert phi.shape[-2:] == (40, 5)
    layer = found.layers[1]
    first = phi[0] if heads == 2 else phi
    assert layer.feature_norm == pytest.approx(first.norm(dim=-1).mean().item(), rel=1e-5)
    f = found.features
    expected = diagnose(
        f.phi, f.phi_next, head_weight=f.head_weight, reward=f.reward, gamma=f.discount, same_action=f.same_action
    )
    assert found.report == expected
    page = xray(model, env_for(kind), out=tmp_path)
    assert page.stat().st_size > 1e6


def test_rows_are_the_episodes_in_order():
    model = tiny(STOCK["TD3"])
    env = env_for("TD3")
    rollout = play(model, env, episodes=2, seed=5)
    assert rollout.episode.tolist() == [0] * 10 + [1] * 10
    obs = rollout.inputs[0]
    again, _ = env_for("TD3").reset(seed=5)
    torch.testing.assert_close(obs[0], torch.as_tensor(again))
    reward = rollout.features.reward
    assert reward[:10].sum().item() == pytest.approx(rollout.returns[0], rel=1e-4)
    assert rollout.features.discount[9].item() == 0  # the episode terminates
    assert rollout.features.discount[8].item() == pytest.approx(0.99)


def test_normalised_observations_are_what_the_critic_sees():
    env = VecNormalize(DummyVecEnv([lambda: env_for("TD3")]))
    model = tiny(STOCK["TD3"], env).learn(40)
    statistics = env.obs_rms.mean.copy()
    rollout = play(model, env, episodes=2)
    assert np.array_equal(env.obs_rms.mean, statistics)
    assert env.training
    assert rollout.inputs[0].abs().mean() < 3


# -- the command -------------------------------------------------------------------------------------------------------


def test_a_zip_without_trust_is_refused_before_anything_is_loaded(tmp_path):
    zipped = tmp_path / "model.zip"
    zipped.write_bytes(b"not even a zip")
    result = peer_rl("xray", zipped, "--algo", "td3", "--env", "Pendulum-v1")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "--trust" in result.stderr
    result = peer_rl("xray", zipped, "--algo", "td3", "--env", "Pendulum-v1", "--trust")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr


def test_a_zip_of_another_algorithm_is_named_without_unpickling(tmp_path):
    tiny(STOCK["TD3"]).save(tmp_path / "td3.zip")
    stable_baselines3.PPO("MlpPolicy", "CartPole-v1", device="cpu").save(tmp_path / "ppo.zip")
    (tmp_path / "statistics.pkl").write_bytes(b"nothing pickled")
    words = ["--env", "Pendulum-v1", "--trust", "--episodes", 1]
    for arguments, expected in (
        (["td3", "--algo", "sac"], "td3.zip holds an agent of TD3, not of SAC: give --algo td3"),
        (["ppo.zip", "--algo", "td3"], "without a target network, as PPO and A2C have"),
        (["td3.zip", "--algo", "td3", "--normalize", "none.pkl"], "name the statistics that VecNormalize.save wrote"),
        (["td3.zip", "--algo", "td3", "--normalize", "statistics.pkl"], "cannot be loaded as VecNormalize's"),
    ):
        result = peer_rl("xray", *arguments, *words, cwd=tmp_path)
        assert result.returncode == 2, result.stderr
        assert expected in result.stderr
        assert result.stderr.count("\n") == 1


def test_the_command_writes_the_page(tmp_path):
    model = stable_baselines3.TD3("MlpPolicy", "Pendulum-v1", policy_kwargs={"net_arch": [8, 8]}, seed=0)
    model.save(tmp_path / "model.zip")
    words = ["--algo", "td3", "--env", "gym/Pendulum-v1", "--episodes", 1, "--trust"]
    result = peer_rl("xray", tmp_path / "model.zip", *words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "xray" / "xray.html").exists()


def test_wrong_use_is_one_sentence():
    model = tiny(STOCK["TD3"])
    with pytest.raises(PeerError, match="no critic with a target"):
        xray(stable_baselines3.PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8, device="cpu"), "CartPole-v1")
    with pytest.raises(PeerError, match="name the environment that it was trained in"):
        xray(model, gym.make("CartPole-v1"))
    with pytest.raises(PeerError, match="name the environment"):
        xray(model)
    with pytest.raises(PeerError, match="next_batch"):
        xray(Planted())
    with pytest.raises(PeerError, match="cannot make"):
        xray(model, "NoSuchEnv-v0")


def test_a_batch_of_one_input_needs_no_tuple():
    network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    obs = torch.randn(30, 3)
    bare, wrapped = xray_critic(network, obs, obs), xray_critic(network, (obs,), (obs,))
    assert torch.equal(bare.features.phi, wrapped.features.phi)
