"""Whole updates and actions of PlaNet, Dreamer and Dreamer-V2 against plain float64 arithmetic; published settings."""

import dataclasses

import numpy as np
import pytest
import torch
from plain_agents import copies
from plain_world_model import PlainDreamer, PlainDreamerV2, PlainWorldModel, mlp
from world_models import DISCRETE, VECTORS, agent_of, stream, window

from peer_rl.settings import as_dict, configure
from peer_rl.settings.dreamer_v2 import DreamerV2Config

NETWORKS = {"model_loss": "model", "actor_loss": "policy", "critic_loss": "critic"}


class PlainPlaNet(PlainWorldModel):
    """The world model alone."""

    def losses(self, batch, rng: torch.Generator) -> dict[str, torch.Tensor]:
        return {"model_loss": self.loss(batch, rng)[0]}


def weights_of(written) -> dict[str, dict[str, torch.Tensor]]:
    """What each loss trains."""
    if isinstance(written, PlainWorldModel):
        return {"model_loss": written.weights}
    return {"model_loss": written.model.weights, "actor_loss": written.policy, "critic_loss": written.critic}


def optimizers_of(settings, weights):
    """PyTorch's own Adam for each loss."""
    of_behaviour = {"actor_loss": "actor", "critic_loss": "critic"}
    return {
        loss: torch.optim.Adam(
            of_loss.values(),
            lr=getattr(settings, f"{of_behaviour.get(loss, 'model')}_learning_rate"),
            eps=settings.behaviour_epsilon if loss in of_behaviour else settings.model_epsilon,
        )
        for loss, of_loss in weights.items()
    }


@pytest.mark.usefixtures("doubles")
@pytest.mark.parametrize(
    ("name", "spec", "plain"),
    [
        pytest.param("planet", VECTORS, PlainPlaNet, id="planet"),
        pytest.param("dreamer", VECTORS, PlainDreamer, id="dreamer"),
        pytest.param("dreamer-v2", VECTORS, PlainDreamerV2, id="dreamer-v2"),
        pytest.param("dreamer-v2", DISCRETE, PlainDreamerV2, id="dreamer-v2, discrete"),
    ],
)
def test_updates_equal_the_equations_written_out(name, spec, plain):
    """All gradients before any step, each clipped by itself; Dreamer-V2's decay and its slow critic."""
    of_v2 = {"weight_decay": 1e-3, "slow_critic_every": 4} if name == "dreamer-v2" else {}
    imagining = {} if name == "planet" else {"imagined_steps": 4}
    agent = agent_of(name, spec, free_nats=0.05, max_gradient_norm=0.3, **imagining, **of_v2)
    settings, written, rng, same = agent.settings, plain(agent), stream(), stream().torch
    weights = weights_of(written)
    optimizers = optimizers_of(settings, weights)
    for index in range(20):
        batch = window(discrete=bool(spec.actions), seed=index)
        if of_v2 and index % 4 == 0:
            written.slow_critic = {key: value.detach().clone() for key, value in written.critic.items()}
        found, wanted = agent.update(batch, index=index, rng=rng).metrics, written.losses(batch, same)
        gradients = {
            loss: torch.autograd.grad(value, list(weights[loss].values()), retain_graph=True)
            for loss, value in wanted.items()
        }
        for loss, value in wanted.items():
            torch.testing.assert_close(found[loss], value.detach(), rtol=1e-6, atol=1e-9)
            for weight, gradient in zip(weights[loss].values(), gradients[loss], strict=True):
                weight.grad = gradient
                weight.data.mul_(1 - of_v2.get("weight_decay", 0.0))
            torch.nn.utils.clip_grad_norm_(weights[loss].values(), settings.max_gradient_norm)
            optimizers[loss].step()
    for loss, of_loss in weights.items():
        for key, ours in copies(getattr(agent, NETWORKS[loss])).items():
            torch.testing.assert_close(ours, of_loss[key], rtol=1e-5, atol=1e-8)


class Filter:
    """What acting remembers: belief and sample, and the last action."""

    def __init__(self, model: PlainWorldModel, actions: int) -> None:
        self.model, self.actions = model, actions

    def see(self, obs, first: bool, rng: torch.Generator):
        model = self.model
        if first:
            self.state = torch.zeros(1, model.config.belief), torch.zeros(1, model.state_size)
            self.action = torch.zeros(1, self.actions)
        (belief, _), _ = model.step(self.state, self.action, rng)
        encoded = mlp(torch.from_numpy(obs), model.weights, "encoder.", model.activation, last=True)
        posterior = model.distribution("posterior", torch.cat([belief, encoded], -1))
        self.state = belief, model.sample(posterior, model.noise(1, rng))
        return self.state


def cem(model: PlainWorldModel, state, planner, actions: int, rng: torch.Generator) -> torch.Tensor:
    """The first action of the last mean: plain means of the best; rewards are not discounted, and no value follows."""
    mean, std = torch.zeros(planner.horizon, actions), torch.ones(planner.horizon, actions)
    for _ in range(planner.iterations):
        noise = torch.randn(planner.horizon, planner.samples, actions, generator=rng)
        candidates = (mean[:, None] + std[:, None] * noise).clamp(-1, 1)
        here, total = tuple(part.expand(planner.samples, -1) for part in state), torch.zeros(planner.samples)
        for step in candidates:
            here, _ = model.step(here, step, rng)
            total = total + model.reward(torch.cat(here, -1))
        best = sorted(range(planner.samples), key=lambda n: -total[n].item())[: planner.elites]
        mean, std = candidates[:, best].mean(1), candidates[:, best].std(1, correction=0)
    return mean[:1]


@torch.no_grad()
@pytest.mark.usefixtures("doubles")
@pytest.mark.parametrize("explore", [True, False])
@pytest.mark.parametrize("name", ["planet", "dreamer", "dreamer-v2"])
def test_actions_equal_the_equations_written_out(name, explore):
    """Two episodes: the belief's filter, then a plan or a draw, and the noise of training."""
    noise = {} if name == "planet" else {"exploration_noise": 0.3}
    agent = agent_of(name, VECTORS, **noise)
    if name == "planet":
        small = dataclasses.replace(agent.settings.planner, horizon=3, samples=12, elites=4, iterations=3)
        agent.settings = dataclasses.replace(agent.settings, planner=small)
    written = {"planet": PlainPlaNet, "dreamer": PlainDreamer, "dreamer-v2": PlainDreamerV2}[name](agent)
    memory = Filter(written if name == "planet" else written.model, 2)
    rng, same, dice = stream(), stream().torch, np.random.default_rng(0)
    for step in range(8):
        obs, first = dice.normal(size=(1, 4)), step in (0, 5)
        found = agent.act(obs, first=np.array([first]), explore=explore, rng=rng)
        state = memory.see(obs, first, same)
        features = torch.cat(state, -1)
        if name == "planet":
            action = cem(memory.model, state, agent.settings.planner, 2, same)
        elif explore:
            action = written.draw(features, same)
        else:
            mean = mlp(features, written.policy, "layers.").chunk(2, -1)[0]
            action = torch.tanh(5 * torch.tanh(mean / 5) if name == "dreamer" else mean)
        if explore:
            action = (action + 0.3 * torch.randn(1, 2, generator=same)).clamp(-1, 1)
        memory.action = action
        torch.testing.assert_close(torch.from_numpy(found), action, rtol=1e-6, atol=1e-9)


PUBLISHED = {
    "planet-pixels": {
        "settings": {
            "model_learning_rate": 1e-3, "model_epsilon": 1e-4, "max_gradient_norm": 1000, "free_nats": 3,
            "free_nats_per_step": True, "kl_balance": 0.5, "kl_weight": 1, "reward_weight": 10, "image_bits": 5,
            "units": 300, "reward_layers": 3, "exploration_noise": 0.3, "predict_end": False,
            "rssm.belief": 200, "rssm.hidden": 200, "rssm.variables": 30, "rssm.least_std": 0.1,
            "rssm.activation": "relu", "rssm.latent": "gaussian", "convolution_activation": "relu",
            "planner.horizon": 12, "planner.samples": 1000, "planner.elites": 100, "planner.iterations": 10,
        },
        "learning": {
            "batch_size": 50, "sequence_length": 49, "start_steps": 2500, "pretrain": 100, "updates": 100,
            "update_every": 500,
        },
        "action_repeat": 2,
    },
    "dreamer-pixels": {
        "settings": {
            "model_learning_rate": 6e-4, "actor_learning_rate": 8e-5, "critic_learning_rate": 8e-5,
            "max_gradient_norm": 100, "free_nats": 3, "free_nats_per_step": False, "kl_balance": 0.5,
            "reward_weight": 1, "image_bits": 8, "units": 400, "reward_layers": 2, "critic_layers": 3,
            "actor_layers": 4, "imagined_steps": 15, "imagined_discount": 0.99, "return_lambda": 0.95,
            "exploration_noise": 0.3, "rssm.belief": 200, "rssm.variables": 30, "rssm.activation": "elu",
            "convolution_activation": "relu",
        },
        "learning": {
            "batch_size": 50, "sequence_length": 49, "start_steps": 2500, "pretrain": 100, "updates": 100,
            "update_every": 500,
        },
        "action_repeat": 2,
    },
    "dreamer-v2-pixels": {
        "settings": {
            "model_learning_rate": 3e-4, "actor_learning_rate": 8e-5, "critic_learning_rate": 8e-5,
            "model_epsilon": 1e-5, "behaviour_epsilon": 1e-5, "max_gradient_norm": 100, "weight_decay": 1e-6,
            "free_nats": 1, "free_nats_per_step": False, "kl_balance": 0.8, "kl_weight": 1, "units": 400,
            "reward_layers": 4, "critic_layers": 4, "actor_layers": 4, "imagined_steps": 15, "entropy_weight": 1e-4,
            "slow_critic_every": 100, "exploration_noise": 0, "rssm.belief": 200, "rssm.variables": 32,
            "rssm.classes": 32, "rssm.normalised_gru": True, "rssm.activation": "elu",
            "convolution_activation": "elu", "encoder.channels": [48, 96, 192, 384],
        },
        "learning": {
            "batch_size": 16, "sequence_length": 49, "start_steps": 1000, "pretrain": 100, "updates": 1,
            "update_every": 5, "buffer_size": 2_000_000,
        },
        "action_repeat": 2,
    },
}  # fmt: skip


@pytest.mark.parametrize("agent", list(PUBLISHED))
def test_the_published_settings_on_dmcontrol_are_those_of_the_authors(agent):
    """PlaNet's 5 random episodes and updates every episode are 1,000 frames each."""
    found, wanted = as_dict(configure(agent, "dmc/walker-walk")), PUBLISHED[agent]
    flat = {f"{part}.{key}": value for part in ("settings", "learning") for key, value in wanted[part].items()}
    flat |= {"action_repeat": wanted["action_repeat"], "image_size": 64, "frame_stack": 1}
    assert {name: found[name] for name in flat} == flat


def test_dreamer_v2_on_atari_has_the_authors_settings():
    config = configure("dreamer-v2-pixels", "atari/pong")
    settings, learning = config.settings, config.learning
    assert isinstance(settings, DreamerV2Config)
    assert (settings.model_learning_rate, settings.actor_learning_rate, settings.critic_learning_rate) == (
        2e-4,
        4e-5,
        1e-4,
    )
    assert (settings.free_nats, settings.kl_weight, settings.entropy_weight) == (0, 0.1, 1e-3)
    assert (settings.tanh_rewards, settings.predict_end, settings.end_weight) == (True, True, 5)
    assert settings.imagined_discount == learning.gamma == 0.999
    assert (settings.rssm.belief, settings.rssm.hidden) == (600, 600)
    assert (learning.start_steps, learning.update_every, learning.clip_rewards) == (50_000, 16, False)
