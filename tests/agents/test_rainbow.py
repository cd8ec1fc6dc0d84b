"""Rainbow and CURL-Rainbow against their equations written out in float64."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from networks_plain import plain_projection

from peer_rl.agents.make import make_agent
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.networks.augment import random_crop_and_pad
from peer_rl.plugin import NAMES, make
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings.curl_rainbow import CURLRainbowConfig
from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.rainbow import RainbowConfig
from peer_rl.training.trees import pack, unpack

CPU = torch.device("cpu")
PIXELS = EnvSpec((2, 21, 21), "uint8", stack=2, actions=4)
SMALL = {
    "hidden": 16,
    "atoms": 7,
    "noise": 0.5,
    "encoder": EncoderConfig(channels=(4, 6), kernels=(5, 3), strides=(4, 1)),
}
CURL = {"crop_margin": 2, "contrastive_hidden": 12, "contrastive_units": 8}


def stream(name: str = "u") -> Stream:
    return Stream(0, name, device=CPU)


def agent_with(kind: str = "rainbow", regularizer: str = "peer", beta: float = 0.1, spec=PIXELS, **settings: object):
    config = {"rainbow": RainbowConfig, "curl-rainbow": CURLRainbowConfig}[kind]
    own = {**SMALL, **(CURL if kind == "curl-rainbow" else {}), **settings}
    if not spec.is_image and "encoder" not in settings:
        del own["encoder"]
    agent = make_agent(kind, config(**own), spec, regularizer=make(regularizer, beta), rng=stream("init"), device=CPU)
    with torch.no_grad():
        for parameter in agent.target.parameters():
            parameter.mul_(1.1)  # so that online and target cannot be confused
    return agent


def batch_of(size: int = 16, weighted: bool = True) -> Batch:
    rng = np.random.default_rng(0)
    frames = rng.integers(255, size=(2, size, 2, 21, 21)).astype(np.uint8)
    weight = {"weight": rng.uniform(0.1, 1, size).astype(np.float32)} if weighted else {}
    return Batch.from_numpy(
        obs=frames[0],
        action=rng.integers(4, size=size),
        reward=(3 * rng.normal(size=size)).astype(np.float32),
        discount=(0.9 * rng.integers(2, size=size)).astype(np.float32),
        next_obs=frames[1],
        **weight,
        device=CPU,
    )


def plainly(agent, batch: Batch, rng: Stream):
    """Each row's cross entropy, phi and phi' in float64, with the noise that the agent draws from ``rng``."""
    noises, target_noises = agent.critic.draw(rng.torch), agent.target.draw(rng.torch)

    def forward(network, frames, noises):
        x = frames.double() / 255
        for layer in network.encoder.layers:
            x = torch.conv2d(x, layer.weight.double(), layer.bias.double(), layer.stride).clamp(min=0)
        conv = x.flatten(1)

        def noisy(layer, x, noise):
            weight = layer.weight.double() + layer.weight_sigma.double() * torch.outer(noise.outputs, noise.inputs)
            return x @ weight.T + layer.bias.double() + layer.bias_sigma.double() * noise.outputs

        halves = [noisy(network.hidden[i], conv, noises[i]).clamp(min=0) for i in range(2)]
        value = noisy(network.value, halves[0], noises[2])[:, None]
        advantage = noisy(network.advantage, halves[1], noises[3]).view(len(x), *network.shape)
        return value + advantage - advantage.mean(1, keepdim=True), torch.cat(halves, -1), conv

    logits, *features = forward(agent.critic, batch.obs, noises)
    with torch.no_grad():
        chooser, *_ = forward(agent.critic, batch.next_obs, noises)
        judge, *next_features = forward(agent.target, batch.next_obs, target_noises)
    support = torch.linspace(-10, 10, 7, dtype=torch.float64)
    rows = range(len(batch.reward))
    best = (chooser.softmax(-1) * support).sum(-1).argmax(-1)
    wanted = plain_projection(judge.softmax(-1)[rows, best], support, batch.reward, batch.discount)
    log_probabilities = torch.log(logits.softmax(-1))[rows, batch.action]
    place = 1 if agent.settings.features == "conv" else 0
    return -(wanted * log_probabilities).sum(-1), features[place], next_features[place]


@pytest.mark.parametrize("features", ["penultimate", "conv"])
@pytest.mark.parametrize("weighted", [True, False])
def test_loss_priorities_and_gradients_are_the_equations(features, weighted):
    agent, batch = agent_with(features=features, max_gradient_norm=1e9), batch_of(weighted=weighted)
    weight = 1.0 if batch.weight is None else batch.weight.double()
    rows, phi, phi_next = plainly(agent, batch, stream())
    td, peer = (weight * rows).mean(), 0.1 * (phi * phi_next).sum(-1).mean()
    gradients = torch.autograd.grad(td + peer, agent.critic_parameters())
    update = agent.update(batch, index=0, rng=stream())
    torch.testing.assert_close(update.metrics["td_loss"].double(), td.detach(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(update.metrics["regularizer"].double(), peer.detach(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(update.priorities.double(), rows.detach(), atol=1e-5, rtol=1e-5)
    for parameter, wanted in zip(agent.critic_parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, wanted, atol=1e-5, rtol=1e-4)


def plain_contrastive(agent, batch: Batch, rng: Stream):
    """The contrastive loss of the two views that the agent draws from ``rng``, after the networks' noise."""
    for network in (agent.critic, agent.target):
        network.draw(rng.torch)
    views = [random_crop_and_pad(batch.obs, agent.settings.crop_margin, rng.torch).double() / 255 for _ in range(2)]

    def norm(x):
        return (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()

    def code(x, encoder, projection):
        for layer in encoder.layers:
            x = torch.conv2d(x, layer.weight.double(), layer.bias.double(), layer.stride).clamp(min=0)
        x = x.flatten(1)
        (first, second), (bias, other) = projection.weights, projection.biases
        return norm(norm(x @ first.double().T + bias).clamp(min=0) @ second.double().T + other)

    head = agent.auxiliary
    queries = code(views[0], agent.critic.encoder, head.projection)
    keys = code(views[1], head.slow_encoder, head.slow_projection).detach()
    total = 0.0
    for row in range(len(queries)):
        similarities = torch.stack([queries[row] @ head.bilinear.double() @ key for key in keys]) * 0.1
        total = total - torch.log(similarities.softmax(0)[row])
    return total / len(queries)


def different_slow_copies(agent) -> None:
    with torch.no_grad():
        for network in (agent.auxiliary.slow_encoder, agent.auxiliary.slow_projection):
            for parameter in network.parameters():
                parameter.add_(torch.randn(parameter.shape, generator=stream().torch), alpha=0.1)


@pytest.mark.parametrize("contrastive", [1.0, 0.01])
def test_the_contrastive_loss_and_its_gradients_are_the_equations(contrastive):
    agent, batch = agent_with("curl-rainbow", contrastive=contrastive, max_gradient_norm=1e9), batch_of()
    different_slow_copies(agent)
    rows, phi, phi_next = plainly(agent, batch, stream())
    wanted = contrastive * plain_contrastive(agent, batch, stream())
    loss = (batch.weight * rows).mean() + 0.1 * (phi * phi_next).sum(-1).mean() + wanted
    gradients = torch.autograd.grad(loss, agent.optimizer.parameters)
    update = agent.update(batch, index=0, rng=stream())
    torch.testing.assert_close(update.metrics["auxiliary_loss"].double(), wanted.detach(), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(update.priorities.double(), rows.detach(), atol=1e-5, rtol=1e-5)
    for parameter, gradient in zip(agent.optimizer.parameters, gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-5, rtol=1e-3)


def test_as_published_the_added_losses_are_weighted_and_in_the_priorities():
    agent, batch = agent_with("curl-rainbow", blend_losses=True, max_gradient_norm=1e9), batch_of()
    rows, phi, phi_next = plainly(agent, batch, stream())
    added = 0.1 * (phi * phi_next).sum(-1).mean() + plain_contrastive(agent, batch, stream())
    gradients = torch.autograd.grad((batch.weight * (rows + added)).mean(), agent.optimizer.parameters)
    update = agent.update(batch, index=0, rng=stream())
    torch.testing.assert_close(update.priorities.double(), (rows + added).detach(), atol=1e-5, rtol=1e-4)
    for parameter, gradient in zip(agent.optimizer.parameters, gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-5, rtol=1e-3)


def test_the_slow_copies_follow_by_the_momentum_and_take_no_gradient():
    agent = agent_with("curl-rainbow", momentum=0.25)
    head = agent.auxiliary
    before = [parameter.clone() for parameter in head.slow_encoder.parameters()]
    agent.update(batch_of(), index=0, rng=stream())
    online = agent.critic.encoder.parameters()
    for slow, old, new in zip(head.slow_encoder.parameters(), before, online, strict=True):
        torch.testing.assert_close(slow, 0.75 * old + 0.25 * new)
        assert slow.grad is None


@pytest.mark.parametrize("kind", ["rainbow", "curl-rainbow"])
def test_the_target_is_copied_every_so_many_updates_and_never_between(kind):
    agent, rng = agent_with(kind, target_every=3), stream()
    before = [parameter.clone() for parameter in agent.target.parameters()]
    for index in range(6):
        agent.update(batch_of(), index=index, rng=rng)
        copied = all(map(torch.equal, agent.target.parameters(), agent.critic.parameters()))
        assert copied == (index in (2, 5))
        if index < 2:
            assert all(map(torch.equal, agent.target.parameters(), before))


def test_gradients_are_clipped_together():
    agent = agent_with(max_gradient_norm=1e-3)
    agent.update(batch_of(), index=0, rng=stream())
    norm = torch.stack([parameter.grad.norm() for parameter in agent.critic_parameters()]).norm()
    assert norm.item() == pytest.approx(1e-3, rel=1e-2)


def test_it_explores_by_noise_and_evaluates_without():
    agent, rng = agent_with(noise=5.0, epsilon_eval=0.0), stream()
    obs = batch_of().obs.numpy()
    greedy = agent.critic(torch.from_numpy(obs)).q.argmax(-1).numpy()
    first = np.zeros(16, bool)
    assert (agent.act(obs, first=first, explore=False, rng=rng) == greedy).all()
    assert (agent.act(obs, first=first, explore=True, rng=rng) != greedy).any()
    sometimes = agent_with(epsilon_eval=1.0)
    seen = {int(a) for _ in range(20) for a in sometimes.act(obs, first=first, explore=False, rng=rng)}
    assert seen == {0, 1, 2, 3}


@pytest.mark.parametrize("features", ["penultimate", "conv"])
@pytest.mark.parametrize("kind", ["rainbow", "curl-rainbow"])
@pytest.mark.parametrize("name", sorted(set(NAMES) - {"none", "beer"}))
def test_every_regularizer_goes_into_the_critics_loss(kind, name, features):
    def after(regularizer, beta):
        agent, rng = agent_with(kind, regularizer, beta, features=features), stream()
        for index in range(3):
            agent.update(batch_of(), index=index, rng=rng)
        read = agent.critic.hidden if features == "penultimate" else agent.critic.encoder
        return [parameter.detach().clone() for parameter in read.parameters()]

    assert not any(map(torch.equal, after("none", 0.0), after(name, 1.0)))


@pytest.mark.parametrize("kind", ["rainbow", "curl-rainbow"])
def test_what_cannot_be_is_refused_in_one_sentence(kind):
    with pytest.raises(ConfigError, match="beer reads head_weight, but a distribution of returns"):
        agent_with(kind, "beer")
    with pytest.raises(ConfigError, match=f"{kind} reads .*uint8 frames"):
        agent_with(kind, spec=EnvSpec((3, 4), "float32", actions=2))


@pytest.mark.parametrize(("size", "margin"), [((2, 21, 21), 21), ((2, 21, 24), 2)])
def test_frames_that_cannot_be_cropped_are_refused(size, margin):
    with pytest.raises(ConfigError, match="crops square frames by crop_margin"):
        agent_with("curl-rainbow", spec=EnvSpec(size, "uint8", stack=2, actions=4), crop_margin=margin)


def test_vectors_have_no_convolutions():
    vectors = EnvSpec((5,), "float32", actions=3)
    agent = agent_with(spec=vectors)
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(2, 16, 5)).astype(np.float32)
    batch = replace(batch_of(), obs=torch.from_numpy(obs[0]), next_obs=torch.from_numpy(obs[1]))
    batch = replace(batch, action=batch.action.clamp(max=2))
    assert torch.isfinite(agent.update(batch, index=0, rng=stream()).metrics["td_loss"])
    with pytest.raises(ConfigError, match="--features conv needs frames"):
        agent_with(spec=vectors, features="conv")
    with pytest.raises(ConfigError, match="curl-rainbow reads uint8 frames"):
        agent_with("curl-rainbow", spec=vectors)


@pytest.mark.parametrize("kind", ["rainbow", "curl-rainbow"])
def test_a_restored_agent_takes_the_same_next_step(kind):
    one, rng = agent_with(kind), stream()
    for index in range(3):
        one.update(batch_of(), index=index, rng=rng)
    state = rng.state_dict()
    two, again = agent_with(kind, noise=0.1), stream("other")
    two.load_state_dict(unpack(pack(one.state_dict())))
    again.load_state_dict(state)
    one.update(batch_of(), index=3, rng=rng)
    two.update(batch_of(), index=3, rng=again)
    assert pack(one.state_dict()) == pack(two.state_dict())
