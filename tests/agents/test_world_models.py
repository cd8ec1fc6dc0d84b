"""PlaNet, Dreamer and Dreamer-V2 against plain float64 arithmetic, and against what breaks such agents."""

import dataclasses

import numpy as np
import pytest
import torch
from plain_world_model import PlainDreamer, PlainDreamerV2, PlainWorldModel
from scipy.stats import truncnorm
from torch.nn import functional as F
from world_models import CLOSE, DISCRETE, ROWS, TIME, VECTORS, agent_of, stream, window

from peer_rl.agents.imagination import lambda_returns, survival
from peer_rl.envs.spec import EnvSpec
from peer_rl.networks.policies import DiscretePolicy, SquashedPolicy, TruncatedPolicy
from peer_rl.networks.world_model import WorldModel

each = pytest.mark.parametrize("name", ["planet", "dreamer", "dreamer-v2"])


def test_lambda_returns_equal_the_published_recursion():
    rng = np.random.default_rng(0)
    reward, value = rng.normal(size=(2, 6, 4))
    discount = 0.9 * rng.integers(0, 2, size=(6, 4))
    expected = np.zeros((5, 4))
    for row in range(4):
        following = value[5, row]
        for k in reversed(range(5)):
            one_step = 0.2 * value[k + 1, row] + 0.8 * following
            following = expected[k, row] = reward[k, row] + discount[k, row] * one_step
    found = lambda_returns(*(torch.from_numpy(part) for part in (reward, value, discount)), 0.8)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_lambda_1_sums_rewards_and_lambda_0_takes_one_step():
    reward, value = torch.ones(4, 1), torch.full((4, 1), 7.0)
    discount = torch.full((4, 1), 0.5)
    assert lambda_returns(reward, value, discount, 1.0)[0].item() == pytest.approx(1 + 0.5 + 0.25 + 0.125 * 7)
    assert lambda_returns(reward, value, discount, 0.0)[:, 0].tolist() == [1 + 0.5 * 7] * 3


def test_a_state_weighs_what_is_left_before_it():
    discount = torch.tensor([[0.9], [0.0], [0.9]], requires_grad=True)
    found = survival(discount)
    assert found[:, 0].tolist() == pytest.approx([1.0, 0.9, 0.0])
    assert not found.requires_grad


def test_the_truncated_policys_density_draws_and_entropy_are_scipys():
    policy = TruncatedPolicy(3, 2, 8, 1, 0.1, torch.Generator().manual_seed(0)).double()
    features = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    mean, std = (part.detach().numpy() for part in policy(features))
    theirs = truncnorm((-1 - mean) / std, (1 - mean) / std, loc=mean, scale=std)
    noise = torch.rand(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    drawn = policy.draw(features, noise)
    np.testing.assert_allclose(drawn.detach(), theirs.ppf(noise.numpy()), rtol=1e-6)
    np.testing.assert_allclose(policy.log_prob(features, drawn).detach(), theirs.logpdf(drawn.detach().numpy()).sum(-1))
    np.testing.assert_allclose(policy.entropy(features).detach(), theirs.entropy().sum(-1), rtol=1e-6)


def test_the_squashed_policy_begins_wide_and_stays_inside():
    policy = SquashedPolicy(3, 2, 8, 1, torch.Generator().manual_seed(0))
    _, std = policy(torch.zeros(1, 3))
    assert std.detach().tolist()[0] == pytest.approx([5.0, 5.0], abs=1e-3)
    drawn = policy.draw(torch.zeros(100, 3), policy.noise(100, torch.Generator().manual_seed(1)))
    assert drawn.abs().max() <= 1


def test_the_discrete_policy_draws_its_probabilities():
    policy = DiscretePolicy(3, 4, 8, 1, torch.Generator().manual_seed(0))
    features = torch.randn(1, 3, generator=torch.Generator().manual_seed(1))
    noise = ((torch.arange(4_000) + 0.5) / 4_000).unsqueeze(-1)
    shares = policy.draw(features.expand(4_000, 3), noise).detach().mean(0)
    assert torch.allclose(shares, policy(features)[0].exp().detach(), atol=1e-3)
    assert policy.mode(features).argmax() == policy(features).argmax()
    expected = torch.distributions.Categorical(logits=policy(features))
    assert torch.allclose(policy.entropy(features), expected.entropy())


KINDS = [
    pytest.param("dreamer", VECTORS, PlainDreamer, {}, id="dreamer"),
    pytest.param("dreamer-v2", VECTORS, PlainDreamerV2, {}, id="dreamer-v2"),
    pytest.param("dreamer-v2", DISCRETE, PlainDreamerV2, {}, id="dreamer-v2, discrete"),
    pytest.param("dreamer-v2", DISCRETE, PlainDreamerV2, {"tanh_rewards": True, "kl_weight": 0.1}, id="as on Atari"),
    pytest.param("dreamer", VECTORS, PlainDreamer, {"predict_end": False}, id="endless"),
]


@pytest.mark.usefixtures("doubles")
@pytest.mark.parametrize(("name", "spec", "plain", "changes"), KINDS)
def test_losses_and_gradients_equal_the_equations_written_out(name, spec, plain, changes):
    """Of model, policy and critic: each loss, and its gradient in the weights that it trains."""
    agent = agent_of(
        name,
        spec,
        imagined_steps=5,
        free_nats=0.01,
        **({"entropy_weight": 0.3} if name == "dreamer-v2" else {}),
        **changes,
    )
    if name == "dreamer-v2":
        with torch.no_grad():
            agent.slow_critic[-1].weight.add_(0.1)
    batch, written = window(discrete=bool(spec.actions)), plain(agent)
    wanted = written.losses(batch, stream().torch)
    trained = {"model_loss": written.model.weights, "actor_loss": written.policy, "critic_loss": written.critic}
    rng = stream().torch
    found = agent.model.loss(batch, rng)
    losses = dict(zip(wanted, (found.loss, *agent._behaviour_losses(found, rng)[:2]), strict=True))
    networks = {"model_loss": agent.model, "actor_loss": agent.policy, "critic_loss": agent.critic}
    for loss in wanted:
        torch.testing.assert_close(losses[loss], wanted[loss], **CLOSE)
        ours = torch.autograd.grad(losses[loss], list(networks[loss].parameters()), retain_graph=True)
        theirs = torch.autograd.grad(wanted[loss], list(trained[loss].values()), retain_graph=True)
        assert any(gradient.abs().max() > 1e-6 for gradient in ours)
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.usefixtures("doubles")
@pytest.mark.parametrize("per_step", [True, False])
def test_planets_loss_and_gradients_equal_the_equations_written_out(per_step):
    agent = agent_of("planet", free_nats=0.02, free_nats_per_step=per_step)
    batch, written = window(), PlainWorldModel(agent)
    wanted, *_ = written.loss(batch, stream().torch)
    found = agent.model.loss(batch, stream().torch).loss
    torch.testing.assert_close(found, wanted, **CLOSE)
    ours = torch.autograd.grad(found, list(agent.model.parameters()))
    theirs = torch.autograd.grad(wanted, list(written.weights.values()))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@each
def test_nothing_behind_the_end_of_a_window_changes_the_loss(name):
    """What follows an episode's end in a window is padding."""
    batch = window()
    other = batch.obs.clone()
    other[4:, 1] += 3.0
    changed = dataclasses.replace(batch, obs=other, next_obs=other[1:])
    model = agent_of(name).model
    found, again = (model.loss(one, stream().torch) for one in (batch, changed))
    assert torch.equal(found.loss, again.loss)
    inside = batch.obs.clone()
    inside[3, 1] += 3.0
    third = model.loss(dataclasses.replace(batch, obs=inside, next_obs=inside[1:]), stream().torch)
    assert not torch.equal(found.loss, third.loss)


def test_no_trajectory_is_imagined_from_a_final_or_a_padded_observation():
    found = agent_of("dreamer").model.loss(window(), stream().torch)
    assert found.valid[:, 1].tolist() == [1, 1, 1, 0, 0, 0]  # the third step terminates
    assert found.valid[:, [0, 2]].all()


def plain_kl(model, batch, settings, rng):
    posteriors, priors = model.rssm.observe(
        model.encoder(batch.obs.flatten(0, 1)).unflatten(0, (TIME + 1, -1)),
        torch.cat([batch.previous_action[None], batch.action]),
        torch.cat([batch.first[None], torch.zeros(TIME, ROWS)]),
        rng,
    )
    seen = torch.cat([torch.ones(1, ROWS), batch.mask])
    return model.rssm.latent.divergence(posteriors.statistics, priors.statistics), seen


@pytest.mark.parametrize("name", ["planet", "dreamer-v2"])
def test_free_nats_per_step_or_of_the_mean_and_the_whole_kl_is_logged(name):
    batch = window()
    for per_step in (True, False):
        agent = agent_of(name, free_nats=0.4, free_nats_per_step=per_step)
        kl, seen = plain_kl(agent.model, batch, agent.settings, stream().torch)
        expected = (
            ((kl - 0.4).clamp(min=0) * seen).sum() / seen.sum()
            if per_step
            else ((kl * seen).sum() / seen.sum()).clamp(min=0.4)
        )
        metrics = agent.model.loss(batch, stream().torch).metrics
        assert torch.allclose(metrics["kl_loss"], expected)
        assert torch.allclose(metrics["kl"], (kl * seen).sum() / seen.sum())
        assert metrics["kl"] != metrics["kl_loss"]


def test_balancing_keeps_the_value_and_shares_the_gradient():
    """0.8 of the KL's gradient trains the prior, 0.2 the posterior; with equal shares both get half of the whole."""
    gradients = {}
    for share in (0.5, 0.8):
        agent = agent_of("dreamer-v2", free_nats=0.0, kl_balance=share)
        latent = agent.model.rssm.latent
        rng = torch.Generator().manual_seed(0)
        posterior, prior = (torch.randn(4, latent.outputs, generator=rng).requires_grad_() for _ in range(2))
        value, _ = agent.model._divergence(posterior, prior, torch.ones(4))
        gradients[share] = value, *torch.autograd.grad(value, (posterior, prior))
    (plain, to_posterior, to_prior), (balanced, less, more) = gradients[0.5], gradients[0.8]
    assert torch.allclose(plain, balanced)
    assert torch.allclose(less, 0.2 * to_posterior)
    assert torch.allclose(more, 0.8 * to_prior)


@pytest.mark.parametrize("name", ["dreamer", "dreamer-v2"])
def test_the_policys_loss_moves_the_policy_alone_and_reaches_it_through_the_dynamics(name):
    agent = agent_of(name, VECTORS)
    found = agent.model.loss(window(), stream().torch)
    policy_loss, critic_loss = agent._behaviour_losses(found, stream("imagine").torch)[:2]
    policy = torch.autograd.grad(policy_loss, list(agent.policy.parameters()), retain_graph=True)
    assert all(gradient.abs().sum() > 0 for gradient in policy)
    reached = torch.autograd.grad(critic_loss, list(agent.model.parameters()), allow_unused=True, retain_graph=True)
    assert all(gradient is None for gradient in reached), "the critic's loss must not train the model"
    to_policy = torch.autograd.grad(critic_loss, list(agent.policy.parameters()), allow_unused=True)
    assert all(gradient is None for gradient in to_policy)


def test_reinforce_takes_no_gradient_through_the_model():
    agent = agent_of("dreamer-v2", DISCRETE)
    assert agent.reinforce
    found = agent.model.loss(window(discrete=True), stream().torch)
    policy_loss, *_ = agent._behaviour_losses(found, stream("imagine").torch)
    reached = torch.autograd.grad(policy_loss, list(agent.model.parameters()), allow_unused=True)
    assert all(gradient is None for gradient in reached)


def test_the_slow_critic_is_copied_at_its_interval():
    agent = agent_of("dreamer-v2", slow_critic_every=3)
    kept = []
    for index in range(5):
        agent.update(window(), index=index, rng=stream())
        kept.append(agent.slow_critic[-1].weight.clone())
    assert torch.equal(kept[0], kept[2])
    assert not torch.equal(kept[2], kept[3])
    assert torch.equal(kept[3], kept[4])


PLANNER = {"horizon": 3, "samples": 8, "elites": 2, "iterations": 2}


def acting(name, spec):
    agent = agent_of(name, spec)
    if name == "planet":
        agent.settings = dataclasses.replace(
            agent.settings, planner=dataclasses.replace(agent.settings.planner, **PLANNER)
        )
    return agent


@pytest.mark.parametrize(
    ("name", "spec"),
    [("planet", VECTORS), ("dreamer", VECTORS), ("dreamer-v2", VECTORS), ("dreamer-v2", DISCRETE)],
)
def test_training_and_evaluation_each_remember_their_own_episode(name, spec):
    """Interleaved, each takes the actions that it takes alone; a first observation forgets what came before."""
    observations = np.random.default_rng(0).normal(size=(6, 1, 4)).astype(np.float32)

    def play(*kinds):
        agent, actions = acting(name, spec), {explore: [] for explore in kinds}
        streams = {explore: stream(f"explore {explore}") for explore in kinds}
        for step, seen in enumerate(observations):
            for explore in kinds:
                first = np.array([step == 0 or (not explore and step == 3)])
                actions[explore].append(agent.act(seen - explore, first=first, explore=explore, rng=streams[explore]))
        again = agent.act(
            observations[0] - kinds[0], first=np.array([True]), explore=kinds[0], rng=stream(f"explore {kinds[0]}")
        )
        assert np.array_equal(again, actions[kinds[0]][0])
        return actions

    together = play(True, False)
    for explore in (True, False):
        assert np.array_equal(together[explore], play(explore)[explore]), f"explore={explore}"


FRAMES = EnvSpec((3, 64, 64), "uint8", action_shape=(2,), action_low=(-1.0, -1.0), action_high=(1.0, 1.0))


@pytest.mark.parametrize(
    ("name", "activation", "width"),
    [("planet", F.relu, 1024), ("dreamer", F.relu, 1024), ("dreamer-v2", F.elu, 1536)],
)
def test_published_convolutions_equal_plain_ones(name, activation, width):
    """Activation of the originals; what the decoder begins with is as wide as what the encoder ends with."""
    model = agent_of(f"{name}-pixels", FRAMES).model
    seen = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0)) - 0.5
    x = seen
    for layer in model.encoder.layers:
        x = activation(F.conv2d(x, layer.weight, layer.bias, stride=2))
    found = model.encoder(seen)
    assert found.shape == (2, width)
    torch.testing.assert_close(found, x.flatten(1), rtol=1e-5, atol=1e-6)
    features = torch.randn(2, model.rssm.features, generator=torch.Generator().manual_seed(1))
    decoder = model.decoder
    x = (features @ decoder.linear.weight.T + decoder.linear.bias).view(2, width, 1, 1)
    for index, layer in enumerate(decoder.layers):
        x = F.conv_transpose2d(x, layer.weight, layer.bias, stride=2)
        x = x if index == 3 else activation(x)
    torch.testing.assert_close(decoder(features), x, rtol=1e-5, atol=1e-6)
    assert x.shape == (2, 3, 64, 64)


def test_quantised_frames_lie_between_their_levels():
    model: WorldModel = agent_of("planet-pixels", FRAMES).model
    obs = torch.arange(256, dtype=torch.uint8).repeat(48).view(1, 3, 64, 64)
    seen = model.see(obs, stream().torch)
    level = torch.floor((seen + 0.5) * 32)
    assert torch.equal(level, obs.div(8, rounding_mode="floor").float())
    assert model.decoder(torch.zeros(2, model.rssm.features)).shape == (2, 3, 64, 64)
    assert agent_of("dreamer-pixels", FRAMES).model.see(obs, stream().torch).max() == pytest.approx(0.5)
