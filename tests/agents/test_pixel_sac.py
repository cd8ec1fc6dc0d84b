"""CURL, DrQ and SAC+AE on SAC against their equations written out (tests/plain_pixels.py)."""

import numpy as np
import pytest
import torch
from continuous_pixels import CPU, KINDS, SACS, SPEC, agent_with, batch_of, stream
from plain_pixels import PlainPixelSAC

from peer_rl.agents import curl_sac
from peer_rl.agents.make import build_agent
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.networks.augment import centre_crop
from peer_rl.plugin import NAMES
from peer_rl.settings import configure
from peer_rl.settings.curl_sac import CURLSACConfig
from peer_rl.settings.drq_sac import DrQSACConfig
from peer_rl.settings.drq_v2 import DrQv2Config
from peer_rl.settings.pixel_sac import PixelSACConfig
from peer_rl.settings.sac_ae import SACAEConfig
from peer_rl.training.trees import pack, unpack

LEARNING = {
    "actor_learning_rate": 3e-3,
    "critic_learning_rate": 3e-3,
    "temperature_learning_rate": 3e-2,
    "tau": 0.2,
    "encoder_tau": 0.3,
}
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
NEAR = {"rtol": 1e-4, "atol": 2e-4}  # Adam's first steps divide a small gradient by itself; a step is 3e-3


SIGNED = pytest.param(
    "drq-sac", {"linear_phi": True}, marks=pytest.mark.filterwarnings("ignore:phi has negative entries")
)


def both(kind: str, beta: float = 0.1, **settings: object):
    agent = agent_with(kind, beta=beta, **{**LEARNING, **settings})
    return agent, PlainPixelSAC(kind, agent, beta)


def networks(agent, plain):
    decoder = {"decoder": (agent.auxiliary.decoder, plain.decoder)} if plain.kind == "sac-ae" else {}
    return {
        **decoder,
        "encoder": (agent.encoder, plain.encoder),
        "target_encoder": (agent.target_encoder, plain.target_encoder),
        "actor": (agent.sac.actor, plain.actor),
        "critic": (agent.sac.critic, plain.critic),
        "target_critic": (agent.sac.target_critic, plain.target_critic),
    }


@pytest.mark.parametrize("beta", [0.0, 0.1])
@pytest.mark.parametrize("kind", SACS)
def test_updates_equal_the_equations_written_out(kind, beta):
    agent, plain = both(kind, beta)
    rng, same = stream(), stream().torch
    for index in range(4):
        batch = batch_of(seed=index)
        metrics = agent.update(batch, index=index, rng=rng).metrics
        losses = plain.update(batch, index, same)
        assert set(metrics) == {*losses, "q"}
        for name, loss in losses.items():
            assert metrics[name].item() == pytest.approx(loss.item(), rel=1e-3, abs=1e-3), (name, index)
        for name, (mine, theirs) in networks(agent, plain).items():
            for part, parameter in mine.named_parameters():
                torch.testing.assert_close(parameter.detach().double(), theirs[part].detach(), **NEAR, msg=name + part)
    assert agent.sac.log_temperature.item() == pytest.approx(plain.log_alpha.item(), abs=1e-4)
    if kind == "curl-sac":
        torch.testing.assert_close(agent.auxiliary.bilinear.detach().double(), plain.bilinear.detach(), **NEAR)


@pytest.mark.parametrize(("kind", "settings"), [*((kind, {}) for kind in SACS), SIGNED])
def test_the_critics_loss_and_gradients_are_the_equations(kind, settings):
    agent, plain = both(kind, **settings)
    batch, rng, same = batch_of(), stream(), stream().torch
    td = agent.temporal_difference(batch, rng)
    regularizer = agent.regularizer(td.features)
    views, next_views = plain.look(batch.obs, same), plain.look(batch.next_obs, same)
    noise = torch.randn(plain.views * 12, 2, generator=same).double()
    wanted, peer = plain.critic_losses(batch, views, next_views, noise)
    torch.testing.assert_close(td.loss.double(), wanted, **CLOSE)
    torch.testing.assert_close(regularizer.double(), peer, **CLOSE)
    found = torch.autograd.grad(td.loss + regularizer, agent.critic_parameters())
    expected = torch.autograd.grad(wanted + peer, plain.of_critic)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, **CLOSE)
    assert torch.equal(rng.torch.get_state(), same.get_state())


def test_peer_pairs_each_view_and_each_head_with_its_own():
    agent = agent_with("drq-sac", beta=1.0)
    features = agent.temporal_difference(batch_of(), stream()).features
    assert features.phi.shape == features.phi_next.shape == (2, 2, 12, 6)  # views, heads
    found = agent.regularizer(features).item()
    wrong = [lambda k, i: (1 - k, i), lambda k, i: (k, 1 - i), lambda k, i: (0, i)]
    for pairing, equal in [(lambda k, i: (k, i), True), *((one, False) for one in wrong)]:
        plain, same, batch = PlainPixelSAC("drq-sac", agent, 1.0, pairing), stream().torch, batch_of()
        views, next_views = plain.look(batch.obs, same), plain.look(batch.next_obs, same)
        noise = torch.randn(24, 2, generator=same).double()
        _, peer = plain.critic_losses(batch, views, next_views, noise)
        assert (peer.item() == pytest.approx(found, rel=1e-5)) == equal


@pytest.mark.parametrize("kind", SACS)
def test_the_actors_loss_moves_no_convolution_and_there_are_no_others(kind):
    agent = agent_with(kind, policy_every=1)
    convolutions = {id(parameter) for parameter in agent.encoder.parameters()}
    assert not convolutions & {id(parameter) for parameter in agent.sac.actor_optimizer.parameters}
    assert convolutions <= {id(parameter) for parameter in agent.sac.critic_optimizer.parameters}
    assert not [
        part for part in (*agent.sac.actor.modules(), *agent.sac.critic.modules()) if "Conv" in repr(type(part))
    ]
    seen = []
    agent.sac.update_policy = lambda code, noise: seen.append(code) or {}
    agent.update(batch_of(), index=0, rng=stream())
    assert not seen[0].requires_grad
    assert len(seen[0]) == 12


@pytest.mark.parametrize("kind", KINDS)
def test_the_encoder_is_the_same_whether_the_actor_learns_or_not(kind):
    """A loss of the actor that leaked into the convolutions would move them."""

    def convolutions(*, actor_learns: bool):
        agent = agent_with(kind) if kind == "drq-v2" else agent_with(kind, policy_every=1)
        optimizer = agent.actor_optimizer if kind == "drq-v2" else agent.sac.actor_optimizer
        before = [parameter.detach().clone() for parameter in optimizer.parameters]
        if not actor_learns:
            optimizer.descend = lambda gradients: None
        agent.update(batch_of(), index=0, rng=stream())
        moved = not all(map(torch.equal, before, optimizer.parameters))
        return moved, [parameter.detach() for parameter in agent.encoder.parameters()]

    (learned, with_actor), (stayed, without) = convolutions(actor_learns=True), convolutions(actor_learns=False)
    assert (learned, stayed) == (True, False)
    assert all(map(torch.equal, with_actor, without))


@pytest.mark.parametrize("kind", SACS)
def test_no_gradient_reaches_a_target_network(kind):
    agent = agent_with(kind)
    agent.update(batch_of(), index=0, rng=stream())
    for network in (agent.target_encoder, agent.sac.target_critic):
        assert all(parameter.grad is None and not parameter.requires_grad for parameter in network.parameters())
    assert not agent.temporal_difference(batch_of(), stream()).features.phi_next.requires_grad


@pytest.mark.parametrize("kind", SACS)
def test_acting_reads_the_shared_convolutions_and_curl_the_middle(kind):
    agent, obs = agent_with(kind), batch_of().obs
    seen = centre_crop(obs, 11) if kind == "curl-sac" else obs
    mean, log_std = agent.sac.actor(agent.encoder(seen))
    first = np.zeros(12, bool)
    found = agent.act(obs.numpy(), first=first, explore=False, rng=stream())
    np.testing.assert_allclose(found, mean.detach().tanh(), rtol=1e-6)
    noise = torch.randn(12, 2, generator=stream().torch)
    drawn = agent.act(obs.numpy(), first=first, explore=True, rng=stream())
    np.testing.assert_allclose(drawn, (mean + log_std.exp() * noise).detach().tanh(), rtol=1e-5, atol=1e-6)
    q = agent.sac.critic(agent.encoder(seen), mean.tanh()).q
    torch.testing.assert_close(agent.value(obs.numpy()), torch.minimum(*q).detach())


def test_curls_crops_reach_every_offset_and_as_published_not_the_last():
    frames = torch.arange(14).view(1, 1, 14, 1).expand(400, 6, 14, 14).to(torch.uint8)
    for published, offsets in ((False, {0, 1, 2, 3}), (True, {0, 1, 2})):
        agent = agent_with("curl-sac", omit_last_offset=published)
        for axes in (frames, frames.mT):
            views = agent.augment(axes.contiguous(), stream())
            assert {int(view[0, 0, 0]) for view in views} == offsets


def test_as_published_curls_encoder_is_stepped_twice():
    agent, plain = both("curl-sac", step_encoder_twice=True, omit_last_offset=True)
    once, _ = both("curl-sac", omit_last_offset=True)
    rng, same, other = stream(), stream().torch, stream()
    for index in range(3):
        agent.update(batch_of(seed=index), index=index, rng=rng)
        once.update(batch_of(seed=index), index=index, rng=other)
        plain.update(batch_of(seed=index), index, same)
    for part, parameter in agent.encoder.named_parameters():
        torch.testing.assert_close(parameter.detach().double(), plain.encoder[part].detach(), **NEAR)
    assert not torch.allclose(agent.encoder.layers[0].weight, once.encoder.layers[0].weight, atol=1e-3)
    torch.testing.assert_close(agent.auxiliary.bilinear.detach().double(), plain.bilinear.detach(), **NEAR)


def test_the_preset_builds_the_published_agent():
    spec = EnvSpec((9, 64, 64), "uint8", stack=3, action_shape=(1,), action_low=(-1.0,), action_high=(1.0,))
    for preset, twice in (("", False), ("as-published", True)):
        config = configure("curl-sac", "dmc/cartpole-swingup", profile="small", preset=preset)
        agent = build_agent(config, spec, CPU)
        assert (agent.auxiliary.second is not None) == twice
        rows = torch.arange(64, dtype=torch.uint8).view(1, 1, 64, 1).expand(300, 9, 64, 64).contiguous()
        assert int(agent.augment(rows, stream())[:, 0, 0, 0].max()) == 64 - config.settings.crop - twice


def test_as_published_drqs_phi_is_linear_and_read_by_the_head():
    agent, rectified = (agent_with("drq-sac", linear_phi=choice) for choice in (True, False))
    signed, positive = (one.temporal_difference(batch_of(), stream()).features.phi for one in (agent, rectified))
    assert (signed < 0).any()
    torch.testing.assert_close(signed.clamp(min=0), positive)
    critic, code = agent.sac.critic, agent.encoder(batch_of().obs)
    output = critic(code, batch_of().action)
    torch.testing.assert_close(critic.head(output.phi), output.q)


def test_curls_bilinear_form_begins_uniform_in_0_to_1():
    bilinear = agent_with("curl-sac", latent=50).auxiliary.bilinear
    assert bilinear.shape == (50, 50)
    assert 0 <= bilinear.min() < 0.01
    assert 0.99 < bilinear.max() < 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", sorted(set(NAMES) - {"none"}))
def test_every_regularizer_goes_into_the_critics_loss_and_the_convolutions(kind, name):
    def after(regularizer, beta):
        agent, rng = agent_with(kind, regularizer, beta), stream()
        for index in range(3):
            agent.update(batch_of(), index=index, rng=rng)
        return [parameter.detach().clone() for parameter in agent.encoder.parameters()]

    assert not any(map(torch.equal, after("none", 0.0), after(name, 1.0)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_agent_takes_the_same_next_step(kind):
    one, rng = agent_with(kind), stream()
    obs = batch_of().obs.numpy()
    for index in range(3):
        one.update(batch_of(), index=index, rng=rng)
        one.act(obs, first=np.zeros(12, bool), explore=True, rng=rng)
    two, again = agent_with(kind, tau=0.01), stream("other")
    two.load_state_dict(unpack(pack(one.state_dict())))
    again.load_state_dict(rng.state_dict())
    one.update(batch_of(), index=3, rng=rng)
    two.update(batch_of(), index=3, rng=again)
    assert pack(one.state_dict()) == pack(two.state_dict())


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_and_frames_that_are_too_small_are_refused(kind):
    with pytest.raises(ConfigError, match=f"{kind} reads uint8 frames"):
        agent_with(kind, spec=EnvSpec((3,), "float32", action_low=(-1.0,), action_high=(1.0,)))
    with pytest.raises(ConfigError, match="too small for the convolutions"):
        agent_with(kind, spec=EnvSpec((3, 2, 2), "uint8", action_low=(-1.0,), action_high=(1.0,)))


@pytest.mark.parametrize(("crop", "words"), [(15, "curl-sac crops frames to 15x15"), (2, "too small")])
def test_a_crop_that_cannot_be_is_refused(crop, words):
    with pytest.raises(ConfigError, match=words):
        agent_with("curl-sac", crop=crop)


def test_the_last_crop_leaves_the_published_one_an_offset():
    with pytest.raises(ConfigError, match=r"14x14, and --omit-last-offset leaves out .*; make --crop smaller"):
        agent_with("curl-sac", crop=14, omit_last_offset=True)
    whole = agent_with("curl-sac", crop=14)
    assert torch.equal(whole.augment(batch_of().obs, stream()), batch_of().obs)


@pytest.mark.parametrize(
    ("config", "changes", "words"),
    [
        (PixelSACConfig, {"encoder_tau": 0.0}, "encoder_tau"),
        (PixelSACConfig, {"latent": 0}, "latent must be above 0"),
        (PixelSACConfig, {"temperature_beta1": 1.0}, "temperature_beta1"),
        (CURLSACConfig, {"crop": 0}, "crop"),
        (CURLSACConfig, {"contrastive_learning_rate": 0.0}, "contrastive_learning_rate"),
        (DrQSACConfig, {"views": 0}, "views"),
        (DrQSACConfig, {"shift": -1}, "shift"),
        (SACAEConfig, {"decoder_decay": -1.0}, "decoder_decay"),
        (DrQv2Config, {"noise_final": 2.0}, "noise_final must be at most noise_start"),
        (DrQv2Config, {"noise_steps": 0}, "noise_steps"),
    ],
)
def test_impossible_settings_are_refused(config, changes, words):
    with pytest.raises(ConfigError, match=words):
        config(**changes)


def test_the_published_networks_have_the_published_sizes():
    """CURL's: 84 -> 35 by four convolutions, 39,200 numbers into 50."""
    settings, regularizer = CURLSACConfig(), agent_with("curl-sac").regularizer
    spec = EnvSpec((9, 100, 100), "uint8", stack=3, action_shape=(1,), action_low=(-1.0,), action_high=(1.0,))
    agent = curl_sac.build(settings, spec, regularizer=regularizer, rng=stream(), device=CPU)
    assert agent.encoder.features == 39_200
    assert agent.sac.critic.latent.linear.weight.shape == (50, 39_200)
    assert agent.sac.critic.head.weight.shape == (2, 1024, 1)
    assert SPEC.is_image
