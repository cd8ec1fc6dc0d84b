"""The recurrent state-space model against plain float64 arithmetic."""

import numpy as np
import pytest
import torch
from torch.distributions import Categorical as TorchCategorical
from torch.distributions import Normal, kl_divergence

from peer_rl.networks.rssm import RSSM, Categorical, Gaussian, NormalisedGRUCell, State
from peer_rl.settings.world_model import RSSMConfig

pytestmark = pytest.mark.usefixtures("doubles")
SMALL = RSSMConfig(belief=7, hidden=6, variables=3)
KINDS = [
    RSSMConfig(belief=7, hidden=6, variables=3),
    RSSMConfig(belief=7, hidden=6, variables=3, latent="categorical", classes=4, activation="elu", normalised_gru=True),
]
TIME, ROWS, ENCODED, ACTIONS = 6, 4, 5, 2


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def model(config=SMALL):
    return RSSM(ENCODED, ACTIONS, config, generator()).double()


def window(seed=1):
    rng = generator(seed)
    return [torch.randn(TIME, ROWS, size, generator=rng, dtype=torch.float64) for size in (ENCODED, ACTIONS)]


def plain_gru(cell, x, h):
    """PyTorch's documented equations, in numpy."""
    w, u, b, c = (getattr(cell, name).detach().numpy() for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    sigmoid = lambda value: 1 / (1 + np.exp(-value))  # noqa: E731
    (wr, wz, wn), (ur, uz, un) = np.split(x @ w.T + b, 3, -1), np.split(h @ u.T + c, 3, -1)
    reset, keep = sigmoid(wr + ur), sigmoid(wz + uz)
    return (1 - keep) * np.tanh(wn + reset * un) + keep * h


def test_a_step_of_the_gaussian_model_equals_plain_arithmetic():
    rssm, rng = model(), generator(3)
    state = State(*(torch.randn(ROWS, size, generator=rng) for size in (7, 3, 6)))
    action, noise = torch.randn(ROWS, ACTIONS, generator=rng), torch.randn(ROWS, 3, generator=rng)
    found = rssm.step(state, action, noise)
    layers = {name: parameter.detach().numpy() for name, parameter in rssm.named_parameters()}

    def layer(name, x):
        return x @ layers[f"{name}.weight"].T + layers[f"{name}.bias"]

    x = np.maximum(0, layer("before.0", np.concatenate([state.sample, action], -1)))
    belief = plain_gru(rssm.gru, x, state.belief.numpy())
    outputs = layer("prior.2", np.maximum(0, layer("prior.0", belief)))
    mean, std = outputs[:, :3], np.log1p(np.exp(outputs[:, 3:])) + 0.1
    np.testing.assert_allclose(found.belief.detach(), belief, rtol=1e-12)
    np.testing.assert_allclose(found.sample.detach(), mean + std * noise.numpy(), rtol=1e-12)


def test_the_normalised_gru_equals_plain_arithmetic():
    cell, rng = NormalisedGRUCell(5, 4, generator()), generator(1)
    x, h = torch.randn(ROWS, 5, generator=rng), torch.randn(ROWS, 4, generator=rng)
    with torch.no_grad():
        cell.norm.weight.uniform_(0.5, 2.0, generator=rng)
        cell.norm.bias.uniform_(-1.0, 1.0, generator=rng)
        found = cell(x, h)
        sums = np.concatenate([x, h], -1) @ cell.gates.weight.numpy().T + cell.gates.bias.numpy()
        scaled = (sums - sums.mean(-1, keepdims=True)) / np.sqrt(sums.var(-1, keepdims=True) + 1e-3)
        reset, candidate, update = np.split(scaled * cell.norm.weight.numpy() + cell.norm.bias.numpy(), 3, -1)
        update = 1 / (1 + np.exp(1 - update))
        candidate = np.tanh(candidate / (1 + np.exp(-reset)))
        np.testing.assert_allclose(found, update * candidate + (1 - update) * h.numpy(), rtol=1e-12)


def test_kl_between_gaussians_is_torchs():
    latent, rng = Gaussian(SMALL), generator()
    posterior, prior = (latent.statistics(torch.randn(9, 6, generator=rng)) for _ in range(2))
    mine, theirs = [Normal(*one.chunk(2, -1)) for one in (posterior, prior)]
    assert torch.allclose(latent.divergence(posterior, prior), kl_divergence(mine, theirs).sum(-1))


def test_kl_between_categoricals_is_torchs():
    latent, rng = Categorical(KINDS[1]), generator()
    posterior, prior = (torch.randn(9, 12, generator=rng) for _ in range(2))
    mine, theirs = (TorchCategorical(logits=one.view(9, 3, 4)) for one in (posterior, prior))
    assert torch.allclose(latent.divergence(posterior, prior), kl_divergence(mine, theirs).sum(-1))


def test_a_categorical_draw_is_one_hot_with_its_probabilities_and_their_gradient():
    latent = Categorical(RSSMConfig(variables=1, classes=3))
    logits = torch.tensor([0.2, 1.0, -0.5]).requires_grad_()
    noise = (torch.arange(10_000) + 0.5).unsqueeze(-1) / 10_000
    drawn = latent.draw(logits.expand(10_000, 3), noise)
    assert set(drawn.detach().round(decimals=9).unique().tolist()) == {0.0, 1.0}
    assert torch.allclose(drawn.detach().mean(0), logits.softmax(-1), atol=1e-3)
    values = torch.tensor([1.0, -2.0, 0.5])
    (drawn[0] @ values).backward()
    shares = logits.detach().softmax(-1)
    assert torch.allclose(logits.grad, shares * (values - shares @ values))  # of the expected value


@pytest.mark.parametrize("config", KINDS)
def test_nothing_before_an_episode_reaches_it(config):
    """State, belief and the action before it are reset; a broken reset of any of the three is seen."""
    rssm, (encoded, actions) = model(config), window()
    first = torch.zeros(TIME, ROWS)
    first[3, 1] = 1
    found, _ = rssm.observe(encoded, actions, first, generator(5))
    other = encoded.clone(), actions.clone()
    other[0][:3, 1] += 1.0
    other[1][: 3 + 1, 1] += 1.0  # also the action that led to the first observation
    changed, _ = rssm.observe(*other, first, generator(5))
    assert torch.equal(found.features[3:, 1], changed.features[3:, 1])
    assert not torch.equal(found.features[2, 1], changed.features[2, 1])
    same = torch.arange(ROWS) != 1
    assert torch.equal(found.features[:, same], changed.features[:, same])
    without, _ = rssm.observe(encoded, actions, torch.zeros(TIME, ROWS), generator(5))
    assert not torch.equal(found.features[3, 1], without.features[3, 1])


@pytest.mark.parametrize("config", KINDS)
def test_one_observation_at_a_time_is_the_whole_window(config):
    """As acting does it, with the state in between."""
    rssm, (encoded, actions), rng = model(config), window(), generator(5)
    first = torch.zeros(TIME, ROWS)
    first[0] = 1
    whole, priors = rssm.observe(encoded, actions, first, generator(5))
    state, pieces = None, []
    for time in range(TIME):
        posterior, _ = rssm.observe(encoded[time][None], actions[time][None], first[time][None], rng, state)
        state = posterior.rows(0)
        pieces.append(state.features)
    assert torch.equal(torch.stack(pieces), whole.features)
    assert torch.equal(priors.belief, whole.belief)


def test_imagination_follows_the_prior_and_carries_the_gradient_to_the_policy():
    rssm = model()
    start = rssm.start(ROWS)
    weight = torch.full((rssm.features, ACTIONS), 0.1, requires_grad=True)
    states, actions = rssm.imagine(start, lambda state: torch.tanh(state.features @ weight + 0.3), 4, generator(2))
    assert states.belief.shape == (4, ROWS, 7)
    assert actions.shape == (4, ROWS, ACTIONS)
    rng, state = generator(2), start
    for time in range(4):
        state = rssm.step(state, actions[time], rssm.latent.noise(ROWS, rng))
        assert torch.equal(state.features, states.features[time])
    states.sample[-1].sum().backward()
    assert weight.grad.abs().sum() > 0
