"""TD-MPC against a float64 version written out (tests/plain_td_mpc.py): losses, updates, priorities and plans."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from plain_pixels import shifts
from plain_td_mpc import PlainTDMPC
from torch.nn import functional as F

from peer_rl.agents.make import make_agent
from peer_rl.agents.td_mpc import TDMPC
from peer_rl.envs.spec import EnvSpec
from peer_rl.plugin import NAMES, make
from peer_rl.replay.make import make_replay
from peer_rl.replay.sequences import Sequences
from peer_rl.rng import Stream
from peer_rl.settings import AGENTS, as_dict, configure
from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.td_mpc import PlannerConfig

pytestmark = pytest.mark.filterwarnings("ignore:phi has negative entries")
CPU = torch.device("cpu")
LIMITS = {"action_shape": (2,), "action_low": (-1.0,) * 2, "action_high": (1.0,) * 2}
STATE = EnvSpec((3,), "float32", **LIMITS)
FRAMES = EnvSpec((2, 9, 9), "uint8", stack=2, **LIMITS)
PLANNER = PlannerConfig(horizon=3, samples=12, elites=4, iterations=3)
SMALL = {"latent": 4, "encoder_hidden": 6, "hidden": 5, "policy_fraction": 0.2, "schedule_steps": 40, "shift": 1}
LENGTH, ROWS = 4, 6
CLOSE = {"rtol": 1e-7, "atol": 1e-9}


def stream(name: str = "update") -> Stream:
    return Stream(0, name, device=CPU)


def agent_with(spec: EnvSpec = STATE, regularizer: str = "peer", beta: float = 0.1, **settings: object) -> TDMPC:
    """A tiny agent whose last layers are not 0 and whose targets differ from the online networks."""
    kind = "td-mpc-pixels" if spec.is_image else "td-mpc"
    encoder = EncoderConfig(channels=(3, 4), kernels=(3, 3), strides=(2, 2), weight_init="orthogonal")
    config = AGENTS[kind].settings(**{**SMALL, "planner": PLANNER, "encoder": encoder, **settings})
    agent = make_agent(kind, config, spec, regularizer=make(regularizer, beta), rng=stream("weights"), device=CPU)
    shift = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for network in (agent.target_encoder, agent.target_critic, agent.model.critic.head, agent.model.reward_head):
            for parameter in network.parameters():
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=shift))
    return agent


def batch_of(spec: EnvSpec = STATE, seed: int = 0) -> Sequences:
    """Windows of random steps, some of which end early, by termination or by truncation."""
    rng = np.random.default_rng(seed)
    shape = (LENGTH + 1, ROWS, *spec.observation_shape)
    obs = torch.from_numpy(rng.integers(256, size=shape, dtype=np.uint8) if spec.is_image else rng.normal(size=shape))
    long = torch.from_numpy(rng.integers(1, LENGTH + 1, ROWS))
    step = torch.arange(LENGTH)[:, None]
    mask = (step < long).double()
    ends = (step == long - 1) & torch.from_numpy(rng.random(ROWS) < 0.5)
    return Sequences(
        obs=obs,
        next_obs=obs[1:],
        action=torch.from_numpy(rng.uniform(-1, 1, (LENGTH, ROWS, 2))),
        reward=mask * torch.from_numpy(rng.normal(size=(LENGTH, ROWS))),
        discount=0.9 * mask * ~ends,
        weight=torch.from_numpy(rng.uniform(0.2, 1, ROWS)),
        mask=mask,
        last=ends.double(),
        first=torch.zeros(ROWS),
        previous_action=torch.zeros(ROWS, 2),
    )


def views_of(batch: Sequences, spec: EnvSpec, rng: torch.Generator) -> list[torch.Tensor]:
    """The observations as the losses see them: one shift for s_0, another for each later one."""
    if not spec.is_image:
        return list(batch.obs)
    first = shifts(batch.obs[0], 1, rng).double()
    later = shifts(batch.next_obs.flatten(0, 1), 1, rng).double()
    return [first, *later.view(LENGTH, ROWS, *later.shape[1:])]


def compare_updates(agent: TDMPC, beta: float, spec: EnvSpec, updates: int, **close: float) -> None:
    plain, rng, same = PlainTDMPC(agent, beta), stream(), stream().torch
    double = torch.get_default_dtype() == torch.float64
    for index in range(updates):
        batch = batch_of(spec, seed=index)
        found = agent.update(batch if double else _single(batch), index=index, rng=rng)
        views = views_of(batch, spec, same)
        noise = torch.randn(LENGTH * ROWS, 2, generator=same).view(LENGTH, ROWS, 2).double()
        policy_noise = torch.randn((LENGTH + 1) * ROWS, 2, generator=same).view(LENGTH + 1, ROWS, 2).double()
        losses, priorities = plain.update(batch, views, noise, policy_noise, index)
        assert set(found.metrics) == {*losses, "q"}
        for name, loss in losses.items():
            torch.testing.assert_close(found.metrics[name].double(), loss.detach().double(), **close)
        torch.testing.assert_close(found.priorities.double(), priorities, **close)
    for network, weights in (
        (agent.model, plain.weights),
        (agent.target_encoder, plain.target_encoder),
        (agent.target_critic, plain.target_critic),
    ):
        for name, parameter in network.named_parameters():
            torch.testing.assert_close(parameter.detach().double(), weights[name].detach(), **close)


@pytest.mark.usefixtures("doubles")
@pytest.mark.parametrize("beta", [pytest.param(0.0, marks=pytest.mark.slow), 0.1])
def test_updates_equal_the_equations_written_out(beta):
    compare_updates(agent_with(beta=beta), beta, STATE, 200, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_updates_from_frames_equal_the_equations_written_out(beta):
    """In single precision, as frames are: Adam's first steps divide a small gradient by itself; a step is 1e-3."""
    compare_updates(agent_with(FRAMES, beta=beta), beta, FRAMES, 6, rtol=1e-3, atol=2e-4)


@pytest.mark.usefixtures("doubles")
@pytest.mark.parametrize("explore", [True, False])
def test_plans_equal_the_equations_written_out(explore):
    """Fifty plans over three episodes; the schedules move, so the horizon grows from 1 to 3 in their course."""
    agent = agent_with(noise_start=0.5, noise_final=0.05)
    plain, rng, same = PlainTDMPC(agent, 0.0), stream("explore"), stream("explore").torch
    before, horizons, dice = None, set(), np.random.default_rng(0)
    for index in range(50):
        agent.updates = index
        first, obs = index % 17 == 0, dice.normal(size=(1, 3))
        before = None if first else before
        risen = min(1.0, index / 40)
        horizon, least = int(1 + 2 * risen), 0.5 - 0.45 * risen
        action = agent.act(obs, first=np.array([first]), explore=explore, rng=rng)
        horizons.add(horizon)
        wanted, before = plain.plan(torch.from_numpy(obs), before, same, horizon=horizon, least=least, explore=explore)
        torch.testing.assert_close(torch.from_numpy(action[0]), wanted, **CLOSE)
    assert horizons == {1, 2, 3}


@pytest.mark.usefixtures("doubles")
def test_peers_term_is_the_weighted_sum_over_the_horizon():
    agent, batch = agent_with(beta=1.0), batch_of()
    features = agent.temporal_difference(batch, stream()).features
    phi, phi_next = (x.view(2, LENGTH, ROWS, -1) for x in (features.phi, features.phi_next))
    inner = (phi * phi_next).sum(-1)  # (2, L, B)
    wanted = sum(0.5**t * (batch.mask[t] * inner[head, t]).mean() for head in range(2) for t in range(LENGTH))
    torch.testing.assert_close(agent.regularizer(features), wanted)


def test_phi_is_the_input_of_the_last_layer_and_can_be_negative():
    agent = agent_with()
    output = agent.model.critic(torch.randn(64, 4), torch.rand(64, 2))
    torch.testing.assert_close(agent.model.critic.head(output.phi), output.q)
    assert (output.phi < 0).any()
    assert output.phi.min() >= -1


def test_networks_begin_as_the_authors_do():
    config = AGENTS["td-mpc"].settings()
    agent = make_agent("td-mpc", config, STATE, regularizer=make("peer", 0.1), rng=stream("weights"), device=CPU)
    model = agent.model
    zeros = [model.critic.head.weight, model.critic.head.bias, model.reward_head[-1].weight, model.reward_head[-1].bias]
    assert not any(weight.any() for weight in zeros)
    assert model.policy[-1].weight.any()
    square = model.dynamics[2].weight
    torch.testing.assert_close(square @ square.T, torch.eye(512), atol=1e-4, rtol=0)


def test_the_first_update_moves_the_trunk_by_peer_alone():
    """The critics' last layer is 0: the TD loss has no gradient below it, PEER has."""
    for beta in (0.0, 0.1):
        config = AGENTS["td-mpc"].settings(**SMALL, consistency_weight=0.0, planner=PLANNER)
        agent = make_agent("td-mpc", config, STATE, regularizer=make("peer", beta), rng=stream(), device=CPU)
        before = agent.model.critic.second.weight.detach().clone()
        agent.update(_single(batch_of()), index=0, rng=stream())
        assert torch.equal(before, agent.model.critic.second.weight) == (beta == 0)


def _single(batch: Sequences) -> Sequences:
    """In single precision; frames stay bytes."""
    floats = {name: value.float() for name, value in vars(batch).items() if value.dtype == torch.float64}
    return replace(batch, **floats)


@pytest.mark.parametrize("name", [*sorted(set(NAMES) - {"none"}), "toy_envs:mean_inner_product"])
@pytest.mark.parametrize("spec", [STATE, FRAMES], ids=["state", "frames"])
def test_every_regularizer_enters_the_value_loss(name, spec):
    weights = []
    for beta in (0.0, 1.0):
        agent, rng = agent_with(spec, name, beta), stream()
        for index in range(3):
            metrics = agent.update(_single(batch_of(spec, seed=index)), index=index, rng=rng).metrics
            assert all(torch.isfinite(value) for value in metrics.values())
        weights.append([parameter.detach().clone() for parameter in agent.critic_parameters()])
    assert all(not torch.equal(one, other) for one, other in zip(*weights, strict=True) if one.numel() > 2)


def test_a_terminating_step_stops_the_target_and_the_window():
    """What follows the end of a window changes neither losses nor priorities."""
    agent, batch = agent_with(), _single(batch_of())
    behind = batch.mask == 0
    assert behind.any()
    poisoned = replace(
        batch,
        action=torch.where(behind.unsqueeze(-1), 0.3, batch.action),
        obs=torch.cat([batch.obs[:1], torch.where(behind.unsqueeze(-1), 7.0, batch.obs[1:])]),
    )
    poisoned = replace(poisoned, next_obs=poisoned.obs[1:])
    one, other = (agent.temporal_difference(each, stream()) for each in (batch, poisoned))
    torch.testing.assert_close(one.loss, other.loss)
    torch.testing.assert_close(one.row_losses, other.row_losses)
    torch.testing.assert_close(agent.regularizer(one.features), agent.regularizer(other.features))


def test_noisy_actions_beyond_1_stay_within_and_still_move_the_policy():
    model = agent_with().model
    z, noise = torch.zeros(3, 4), torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 0.0]])
    action = model.act(z, noise)
    assert action.detach()[:2, 0].tolist() == pytest.approx([1.0, -1.0], abs=2e-6)
    assert (action.abs() <= 1).all()
    action[:2, 0].sum().backward()
    last = [parameter.grad for parameter in model.policy.parameters()][-1]
    assert last[0] != 0
    assert last[1] == 0


def test_a_row_whose_loss_is_cut_off_has_no_gradient():
    batch = _single(batch_of())
    wild = batch.reward.clone()
    wild[0, 2] = 1e6
    agent = agent_with(beta=0.0)
    td = agent.temporal_difference(replace(batch, reward=wild), stream())
    assert td.row_losses[2] == agent.settings.largest_loss
    others = agent.temporal_difference(replace(batch, weight=batch.weight * (torch.arange(ROWS) != 2)), stream())
    found, wanted = (torch.autograd.grad(each.loss, agent.critic_parameters()) for each in (td, others))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


# -- memory --------------------------------------------------------------------------------------------------------


def act(agent: TDMPC, seed: int, *, first: bool = False, explore: bool = True) -> np.ndarray:
    obs = np.random.default_rng(seed).normal(size=(1, 3)).astype(np.float32)
    return agent.act(obs, first=np.array([first]), explore=explore, rng=Stream(seed, "act", device=CPU))


@pytest.mark.parametrize("explore", [True, False])
def test_training_and_evaluation_each_remember_their_own_plan(explore):
    """An evaluation in the middle of a training episode leaves the next action bit-equal, and the reverse."""
    watched, alone = agent_with(), agent_with()
    for agent in (watched, alone):
        agent.updates = 40
        act(agent, 0, first=True, explore=explore)
    for step in range(3):
        act(watched, 10 + step, first=step == 0, explore=not explore)
    # several actions, as one may be a policy's, which does not depend on the plan before
    actions = [[act(agent, 1 + step, explore=explore) for step in range(5)] for agent in (watched, alone)]
    assert np.array_equal(*actions)
    forgotten = [act(alone, 1 + step, first=True, explore=explore) for step in range(5)]
    assert not np.array_equal(forgotten, actions[1]), "the plan before matters"


def test_an_episode_begins_without_a_plan_whatever_was_planned_before():
    fresh, busy = agent_with(), agent_with()
    for agent in (fresh, busy):
        agent.updates = 40
    for step in range(4):
        act(busy, step, first=step == 0)
    assert np.array_equal(act(fresh, 7), act(busy, 7, first=True)), "no plan before counts as a first step"


def test_rows_plan_each_for_themselves():
    agent = agent_with()
    agent.updates = 40
    obs = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    agent.act(obs, first=np.array([True] * 3), explore=False, rng=stream())
    before = agent._means[False]
    agent.act(obs, first=np.array([False, True, False]), explore=False, rng=stream())
    assert len(agent._means[False]) == 3
    agent.act(obs[:1], first=np.array([False]), explore=False, rng=stream())
    assert len(agent._means[False]) == 1
    assert len(before) == 3


@pytest.mark.parametrize("clamp", [True, False])
def test_actions_end_at_1_unless_they_are_as_published(clamp):
    agent = agent_with(noise_start=3.0, noise_final=3.0, clamp_actions=clamp, planner=replace(PLANNER, std_start=3.0))
    actions = np.concatenate([act(agent, seed) for seed in range(20)])
    assert (np.abs(actions) <= 1).all() == clamp


def test_a_plan_that_is_not_finite_is_no_action():
    agent = agent_with()
    with torch.no_grad():
        agent.model.reward_head[-1].bias.fill_(float("nan"))
    assert np.isnan(act(agent, 0)).all()


# -- through the replay --------------------------------------------------------------------------------------------


def test_the_published_settings_are_those_of_the_authors():
    settings, learning = AGENTS["td-mpc"].settings(), AGENTS["td-mpc"].learning()
    assert (settings.latent, settings.hidden, settings.encoder_hidden) == (50, 512, 256)
    assert (learning.importance_start, learning.importance_final, learning.priority_exponent) == (0.4, 0.4, 0.6)
    assert (learning.start_steps, learning.pretrain, learning.gamma) == (5_000, 5_000, 0.99)
    assert (settings.learning_rate, settings.max_gradient_norm, settings.tau, settings.target_every) == (
        1e-3,
        10,
        0.01,
        2,
    )
    assert (settings.consistency_weight, settings.reward_weight, settings.value_weight) == (2, 0.5, 0.1)
    assert (settings.decay, settings.smoothing_noise, settings.smoothing_clip) == (0.5, 0.05, 0.3)
    assert (settings.schedule_steps, settings.noise_start, settings.noise_final) == (25_000, 0.5, 0.05)
    assert int(settings.policy_fraction * settings.planner.samples) == 25
    assert as_dict(settings.planner) == {
        "horizon": 5, "samples": 512, "elites": 64, "iterations": 6, "temperature": 0.5, "momentum": 0.1, "std_start": 2
    }  # fmt: skip
    config = AGENTS["td-mpc"].learning
    replay = make_replay(config(buffer_size=512), STATE, CPU)
    for step in range(300):
        obs = np.full(3, step, np.float32)
        action = np.zeros(2, np.float32)
        replay.add(obs=obs, action=action, reward=1.0, next_obs=obs + 1, discount=1.0, last=step % 125 == 124)
    batch = replay.sample(np.random.default_rng(0))
    assert batch.obs.shape == (6, 512, 3)
    assert F.relu(batch.mask - 1).sum() == 0
    weights = sum(parameter.numel() for parameter in _published().model.parameters())
    assert weights == pytest.approx(1.48e6, rel=0.01)


@pytest.mark.parametrize("agent", ["td-mpc", "td-mpc-pixels"])
def test_as_published_is_the_bursts_and_the_unclamped_actions(agent):
    plain, published = (configure(agent, "dmc/walker-walk", preset=preset) for preset in ("", "as-published"))
    differ = {name for name, value in as_dict(plain).items() if as_dict(published)[name] != value}
    assert differ == {"learning.update_after_episodes", "settings.clamp_actions", "preset"}


@pytest.mark.parametrize(("task", "repeat"), [("finger-spin", 2), ("cartpole-swingup", 8), ("cheetah-run", 4)])
def test_tasks_have_the_authors_action_repeats(task, repeat):
    config = configure("td-mpc", f"dmc/{task}")
    assert (config.action_repeat, config.steps) == (repeat, 500_000 // repeat)


def _published() -> TDMPC:
    """The published network on cartpole: 5 numbers and one action unit."""
    spec = EnvSpec((5,), "float32", action_shape=(1,), action_low=(-1.0,), action_high=(1.0,))
    config = AGENTS["td-mpc"].settings()
    return make_agent("td-mpc", config, spec, regularizer=make("peer", 0.1), rng=stream("weights"), device=CPU)
