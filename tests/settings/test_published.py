"""Settings against their published sources: presets, schedules, and where beta comes from."""

import pytest

from peer_rl.envs.make import env_of, spec_of
from peer_rl.errors import ConfigError
from peer_rl.replay.make import make_replay
from peer_rl.settings import AGENTS, as_dict, configure
from peer_rl.settings.environment import task_of
from peer_rl.settings.resolve import defaults
from peer_rl.settings.tasks import TASKS

DMC = [name for name, task in TASKS.items() if task.suite == "dmc"]
MEDIUM = {"cartpole-swingup-sparse", "cheetah-run", "finger-turn-easy", "finger-turn-hard", "hopper-hop"}
MEDIUM |= {"reacher-easy", "reacher-hard"}


@pytest.mark.parametrize("task", DMC)
def test_drq_v2s_noise_falls_over_agent_steps_longer_on_medium_tasks(task):
    settings = configure("drq-v2", task).settings
    assert settings.noise_steps == (500_000 if task.removeprefix("dmc/") in MEDIUM else 100_000)


@pytest.mark.parametrize("task", DMC)
def test_drq_v2_has_its_own_batches_and_returns_on_walker(task):
    learning = configure("drq-v2", task).learning
    walker = task.startswith("dmc/walker")
    assert (learning.n_step, learning.batch_size) == ((1, 512) if walker else (3, 256))


@pytest.mark.parametrize("agent", ["curl-sac", "drq-sac"])
@pytest.mark.parametrize("task", DMC)
def test_as_published_repeats_actions_by_domain(agent, task):
    domain = task.removeprefix("dmc/").partition("-")[0]
    repeat = {"cartpole": 8, "finger": 2, "walker": 2}.get(domain, 4)
    config = configure(agent, task, preset="as-published")
    assert config.action_repeat == task_of(config).action_repeat == repeat
    assert config.steps * repeat == 500_000
    assert config.protocol.eval_every * repeat == 10_000


def test_by_default_six_tasks_repeat_otherwise_as_the_paper_prints():
    pairs = [(configure("curl-sac", task), configure("curl-sac", task, preset="as-published")) for task in DMC]
    assert sum(plain.action_repeat != published.action_repeat for plain, published in pairs) == 6
    assert {plain.action_repeat for plain, published in pairs if plain.action_repeat != published.action_repeat} == {4}


def test_as_published_drq_has_a_signed_phi_and_ten_times_the_beta():
    config = configure("drq-sac", "dmc/cartpole-swingup", preset="as-published")
    assert (config.beta, config.settings.linear_phi) == (5e-3, True)


@pytest.mark.parametrize(
    ("agent", "task", "printed"),
    [
        ("td3", "pybullet/hopper", {"settings.exploration_noise": 0.2}),
        ("metd3", "mujoco/hopper", {"settings.exploration_noise": 0.2}),
        (
            "curl-sac",
            "dmc/cheetah-run",
            {"settings.initial_temperature": 0.99, "settings.temperature_beta1": 0.9},
        ),
    ],
)
def test_as_printed_has_the_papers_values_and_nothing_else(agent, task, printed):
    plain, found = as_dict(configure(agent, task)), as_dict(configure(agent, task, preset="as-printed"))
    assert {name: value for name, value in found.items() if value != plain[name]} == {**printed, "preset": "as-printed"}
    origins = defaults(agent, task, preset="as-printed")[1]
    assert all(origins[name].startswith("PEER appendix") for name in printed)


@pytest.mark.parametrize("agent", ["rainbow", "curl-rainbow"])
@pytest.mark.parametrize("changes", [{}, {"update_every": 4, "updates": 2}])
def test_the_importance_exponent_is_1_at_the_last_update_and_not_before(agent, changes):
    config = configure(agent, "atari/pong", buffer_size=1_000, **changes)
    env = env_of(config)
    replay = make_replay(config.learning, spec_of(env), "cpu")
    env.close()
    learning = config.learning
    rounds = (config.steps - learning.start_steps) // learning.update_every
    sampler = replay.sampler
    assert sampler.importance() == pytest.approx(0.4, abs=1e-4)
    sampler._draws = rounds * learning.updates - 1  # before the last of the run's updates
    assert sampler.importance() == 1.0
    sampler._draws -= 1
    assert sampler.importance() < 1.0


@pytest.mark.parametrize("agent", sorted(name for name, entry in AGENTS.items() if entry.td_target))
def test_the_origin_of_beta_is_the_paper_only_for_what_it_combined_with_peer(agent):
    task = {"frames": "gym/X-v0"}.get(AGENTS[agent].observations, "gym/CartPole-v1")
    config, origins = defaults(agent, task)
    combined = {"dqn", "drq-dqn", "td3", "curl-sac", "drq-sac", "curl-rainbow", "td-mpc", "td-mpc-pixels"}
    if agent in combined:
        assert origins["beta"] == "PEER appendix"
    else:
        assert origins["beta"].startswith("ours") == (config.beta > 0)
        assert "PEER appendix" not in origins["beta"]


SIZES = {"ant": 111, "reacher": 11, "inverted-double-pendulum": 11, "hopper": 11, "half-cheetah": 17}


@pytest.mark.parametrize("name", SIZES)
def test_version_4_has_the_papers_observations(name):
    config = configure("td3", f"mujoco/{name}", mujoco_version="v4")
    env = env_of(config)
    size = spec_of(env).observation_shape[0]
    env.reset(seed=0)
    observation, *_ = env.step(env.action_space.sample())
    env.close()
    assert len(observation) == size == SIZES[name] == task_of(config).dimensions[0]
    assert env.spec.id.endswith("-v4")


def test_version_5_is_the_default_and_other_suites_have_none():
    assert configure("td3", "mujoco/ant", mujoco_version="v5") == configure("td3", "mujoco/ant")
    with pytest.raises(ConfigError, match="leave out --mujoco-version"):
        configure("td3", "pybullet/ant", mujoco_version="v4")
