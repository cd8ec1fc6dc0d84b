"""DrQ on DQN: the views of s and s', DQN's equations on them, and where no frame is changed."""

import pytest
import torch
from discrete import FRAMES, VECTORS, agent_with, batch_of, stream
from plain_agents import PlainDQN, assert_same, assert_same_gradients

from peer_rl.errors import ConfigError
from peer_rl.networks.augment import draw_offsets, random_intensity, random_shift, shift
from peer_rl.plugin import NAMES
from peer_rl.settings.suites import preset_layer

LEARNING = {"learning_rate": 1e-2, "adam_epsilon": 1e-3, "tau": 0.2}
EFFICIENT = {"double": True, "dueling": True, "loss": "huber", "max_gradient_norm": 0.5}


def recording(agent) -> list[torch.Tensor]:
    """Every view that the agent takes, in its order."""
    views, augment = [], agent.augment

    def seen(frames, rng):
        views.append(augment(frames, rng))
        return views[-1]

    agent.augment = seen
    return views


@pytest.mark.parametrize("features", ["penultimate", "conv"])
@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_updates_equal_dqns_equations_on_one_view_of_s_and_one_of_its_successor(beta, features):
    """PEER's term too: phi(aug s) with phi'(aug s'), the views behind Q and y."""
    agent = agent_with("drq-dqn", FRAMES, beta=beta, features=features, **LEARNING, **EFFICIENT)
    views, plain, rng = recording(agent), PlainDQN(agent, beta), stream()
    for index in range(6):
        batch = batch_of(FRAMES, seed=index)
        metrics = agent.update(batch, index=index, rng=rng).metrics
        obs, next_obs = views[-2:]
        for name, loss in plain.update(batch, obs, next_obs, index).items():
            assert metrics[name].item() == pytest.approx(loss.item(), rel=1e-5, abs=1e-5), name
        assert_same_gradients(agent.critic, plain.critic)
        assert_same(agent.critic, plain.critic)
        assert_same(agent.target, plain.target)
    assert len(views) == 12


def test_views_are_a_shift_and_an_intensity_from_the_given_stream():
    agent, batch, same = agent_with("drq-dqn", FRAMES, shift=3, intensity=0.2), batch_of(FRAMES), stream().torch
    views = recording(agent)
    agent.temporal_difference(batch, stream())
    for view, frames in zip(views, (batch.obs, batch.next_obs), strict=True):
        top, left = draw_offsets(16, 6, same), draw_offsets(16, 6, same)
        factor = 1 + 0.2 * torch.randn((16, 1, 1, 1), generator=same).clamp(-2, 2)
        torch.testing.assert_close(view, shift(frames, 3, top, left) / 255 * factor)


def test_s_and_its_successor_are_drawn_apart():
    agent, batch = agent_with("drq-dqn", FRAMES, intensity=0.0), batch_of(FRAMES)
    views = recording(agent)
    agent.augment(batch.obs, stream())
    rng = stream()
    first, second = (agent.augment(batch.obs, rng) for _ in range(2))
    assert torch.equal(views[0], first)
    same_rows = (first == second).flatten(1).all(1).float().mean()
    assert same_rows < 0.2, "81 offsets"


def test_acting_and_values_see_frames_as_they_are():
    agent, batch = agent_with("drq-dqn", FRAMES), batch_of(FRAMES)
    views, rng, obs = recording(agent), stream(), batch.obs.numpy()
    torch.testing.assert_close(agent.value(obs), agent.critic(batch.obs).q.amax(1))
    agent.act(obs, first=obs[:, 0, 0, 0] > 0, explore=True, rng=rng)
    assert not views
    assert torch.equal(rng.torch.get_state(), stream().torch.get_state())


def test_without_augmentation_it_is_dqn():
    """Bit for bit, but for the shift's draws."""
    plain = agent_with("dqn", FRAMES, **LEARNING, **EFFICIENT)
    augmented = agent_with("drq-dqn", FRAMES, shift=0, intensity=0.0, **LEARNING, **EFFICIENT)
    for index in range(3):
        for agent in (plain, augmented):
            agent.update(batch_of(FRAMES, seed=index), index=index, rng=stream())
    for one, other in zip(plain.critic.parameters(), augmented.critic.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("features", ["penultimate", "conv"])
@pytest.mark.parametrize("name", sorted(set(NAMES) - {"none"}))
def test_every_regularizer_runs_or_is_refused(name, features):
    if (name, features) == ("beer", "conv"):
        with pytest.raises(ConfigError, match="the regularizer beer reads head_weight, but"):
            agent_with("drq-dqn", FRAMES, name, features=features)
        return
    agent = agent_with("drq-dqn", FRAMES, name, 1.0, features=features, dueling=True)
    metrics = agent.update(batch_of(FRAMES), index=0, rng=stream()).metrics
    assert all(torch.isfinite(value) for value in metrics.values())


def test_dr3_reads_the_online_features_of_the_same_view():
    agent, batch = agent_with("drq-dqn", FRAMES, "dr3"), batch_of(FRAMES)
    views = recording(agent)
    features = agent.temporal_difference(batch, stream()).features
    torch.testing.assert_close(features.phi_next_online, agent.critic(views[1]).phi)


def test_vectors_are_refused():
    with pytest.raises(ConfigError, match=r"drq-dqn reads uint8 frames .* float32 of shape \(3,\)"):
        agent_with("drq-dqn", VECTORS)


def test_the_published_augmentation_flips_and_turns():
    layer = preset_layer("drq-dqn", "atari", "atari/pong", "as-published")
    settings = {path.removeprefix("settings."): value.value for path, value in layer.items()}
    drawn = {name: settings[name] for name in ("flip", "rotation", "intensity")}
    agent, batch = agent_with("drq-dqn", FRAMES, **drawn), batch_of(FRAMES)
    view = agent.augment(batch.obs, stream())
    assert drawn == {"flip": 0.5, "rotation": 5.0, "intensity": 0.0}
    assert view.dtype == torch.float32
    assert not torch.equal(view, random_shift(batch.obs, 4, stream().torch).float() / 255)
    default = agent_with("drq-dqn", FRAMES).augment(batch.obs, stream())
    rng = stream().torch
    assert torch.equal(default, random_intensity(random_shift(batch.obs, 4, rng), 0.05, rng))
