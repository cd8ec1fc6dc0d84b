"""Rainbow without noisy layers, dueling streams and double Q: OTRainbow, against its equations written out."""

import numpy as np
import pytest
import torch
from running import tiny_config
from torch import nn

from peer_rl.agents.make import make_agent
from peer_rl.agents.rainbow import Rainbow
from peer_rl.envs.spec import EnvSpec
from peer_rl.plugin import make
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings import configure
from peer_rl.settings.rainbow import RainbowConfig
from peer_rl.training.trees import pack, unpack

CPU = torch.device("cpu")
SPEC = EnvSpec((3,), "float32", actions=4)
PLAIN = {"noisy": False, "dueling": False, "double": False}
GAMMA = 0.9


def stream(name: str = "update") -> Stream:
    return Stream(0, name, device=CPU)


def agent_with(beta: float = 0.1, **settings: object) -> Rainbow:
    """A tiny agent whose target differs from the online network."""
    config = RainbowConfig(**{"hidden": 6, "atoms": 5, "target_every": 100, **PLAIN, **settings})
    agent = make_agent("rainbow", config, SPEC, regularizer=make("peer", beta), rng=stream("weights"), device=CPU)
    shift = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in agent.target.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=shift))
    return agent


def batch_of(rows: int = 16) -> Batch:
    rng = np.random.default_rng(0)
    return Batch.from_numpy(
        obs=rng.normal(size=(rows, 3)).astype(np.float32),
        action=rng.integers(4, size=rows),
        reward=rng.normal(size=rows).astype(np.float32),
        discount=(GAMMA * (np.arange(rows) % 3 > 0)).astype(np.float32),
        next_obs=rng.normal(size=(rows, 3)).astype(np.float32),
        weight=rng.uniform(0.1, 1, rows).astype(np.float32),
        device=CPU,
    )


def network(critic: nn.Module, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """phi and the logits of every action, (B, actions, atoms)."""
    hidden, last = critic.hidden[0].linear, critic.advantage.linear
    phi = (obs @ hidden.weight.T + hidden.bias).clamp(min=0)
    return phi, (phi @ last.weight.T + last.bias).view(len(obs), 4, 5)


@pytest.mark.parametrize("double", [False, True])
def test_the_loss_is_the_equation_written_out(double):
    agent, batch = agent_with(double=double), batch_of()
    td = agent.temporal_difference(batch, stream())
    support = torch.linspace(-10, 10, 5)
    phi, logits = network(agent.critic, batch.obs)
    phi_next, next_logits = network(agent.target, batch.next_obs)
    chooser = network(agent.critic, batch.next_obs)[1] if double else next_logits
    losses = []
    for row in range(len(batch.reward)):
        best = (chooser[row].softmax(-1) @ support).argmax()
        wanted = torch.zeros(5)
        for atom, chance in zip(support, next_logits[row, best].softmax(-1), strict=True):
            place = ((batch.reward[row] + batch.discount[row] * atom).clamp(-10, 10) + 10) / 5
            low = int(place)
            wanted[low] += chance * (1 - (place - low))
            if low < 4:
                wanted[low + 1] += chance * (place - low)
        losses.append(-(wanted * logits[row, batch.action[row]].log_softmax(-1)).sum())
    losses = torch.stack(losses)
    torch.testing.assert_close(td.row_losses, losses.detach())
    torch.testing.assert_close(td.loss, (batch.weight * losses).mean())
    torch.testing.assert_close(agent.regularizer(td.features), 0.1 * (phi * phi_next).sum(1).mean())


def test_no_random_number_is_drawn_for_an_update():
    agent, rng = agent_with(), stream()
    before = rng.torch.get_state()
    agent.update(batch_of(), index=0, rng=rng)
    assert torch.equal(before, rng.torch.get_state())


def test_random_actions_become_rarer_and_the_count_survives_a_checkpoint():
    agent, rng = agent_with(epsilon_start=1.0, epsilon_final=0.0, epsilon_steps=2_000, epsilon_eval=0.0), stream()
    obs, first = np.random.default_rng(0).normal(size=(1, 3)).astype(np.float32), np.array([True])
    greedy = agent.act(obs, first=first, explore=False, rng=rng)[0]
    taken = np.array([agent.act(obs, first=first, explore=True, rng=rng)[0] for _ in range(3_000)])
    share = [(taken[start : start + 1_000] != greedy).mean() for start in (0, 1_000, 2_000)]
    assert share == pytest.approx([0.75 * 0.75, 0.75 * 0.25, 0.0], abs=0.05)
    again = agent_with()
    again.load_state_dict(unpack(pack(agent.state_dict())))
    assert again.explored == 3_000


def test_without_dueling_phi_is_one_hidden_layer_that_the_head_reads():
    agent = agent_with()
    output = agent.critic(torch.randn(8, 3))
    assert output.phi.shape == (8, 6)
    torch.testing.assert_close(agent.critic.head(output.phi), output.logits)


@pytest.mark.parametrize("left_out", list(PLAIN))
def test_each_switch_stands_alone(left_out):
    agent = agent_with(**{**dict.fromkeys(PLAIN, True), left_out: False})
    update = agent.update(batch_of(), index=0, rng=stream())
    assert all(torch.isfinite(value) for value in update.metrics.values())


def test_the_preset_is_dopamines():
    config = configure("rainbow", "atari/pong", preset="otrainbow")
    settings, learning = config.settings, config.learning
    assert not any(getattr(settings, name) for name in PLAIN)
    assert (learning.updates, learning.n_step, learning.start_steps, config.steps) == (8, 3, 20_000, 100_000)
    assert (learning.importance_start, learning.importance_final, learning.priority_exponent) == (0.5, 0.5, 0.5)
    assert (learning.gamma, learning.batch_size, learning.lost_life_ends, learning.clip_rewards) == (
        0.99,
        32,
        True,
        True,
    )
    assert (settings.learning_rate, settings.adam_epsilon, settings.hidden) == (6.25e-5, 1.5e-4, 512)
    assert (settings.epsilon_start, settings.epsilon_final, settings.epsilon_eval) == (1.0, 0.01, 0.001)
    assert settings.epsilon_steps == 50_000
    assert settings.target_every == 500 * learning.updates
    assert (settings.atoms, settings.lowest_return, settings.highest_return) == (51, -10, 10)
    assert config.beta == 0
    frames = EnvSpec((4, 84, 84), "uint8", stack=4, actions=6)
    agent = make_agent("rainbow", settings, frames, regularizer=make("peer", 0.0), rng=stream("weights"), device=CPU)
    assert agent.critic.encoder.features == 7_744


def test_the_default_is_unchanged():
    """Noisy, dueling and double, and no epsilon in the checkpoint of a run that has none."""
    config = tiny_config("rainbow").settings
    assert config.noisy
    assert config.dueling
    assert config.double
    frames = EnvSpec((4, 84, 84), "uint8", stack=4, actions=6)
    agent = make_agent("rainbow", RainbowConfig(), frames, regularizer=make("peer", 0.0), rng=stream("x"), device=CPU)
    assert "explored" not in agent.state_dict()
