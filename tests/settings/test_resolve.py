"""Settings in layers, their origins, and the names of run directories."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peer_rl.agents.make import BUILDERS
from peer_rl.errors import ConfigError
from peer_rl.settings import AGENTS, as_dict, configure, find_agent, from_dict, variant
from peer_rl.settings.resolve import defaults
from peer_rl.settings.suites import _blocks, agents_of, preset_layer
from peer_rl.settings.tasks import SUITES, TASKS, find_task

GRID = "gridworld/paper"


def test_the_grid_worlds_settings_are_the_papers_table():
    config, origins = defaults("dqn", GRID)
    expected = {
        "episodes": 2000,
        "beta": 5e-4,
        "learning.gamma": 0.99,
        "learning.buffer_size": 100_000,
        "learning.batch_size": 64,
        "learning.start_steps": 1_000,
        "settings.learning_rate": 1e-4,
        "settings.tau": 0.005,
        "settings.epsilon_start": 0.1,
        "settings.epsilon_final": 0.1,
        "settings.critic.hidden": [32, 32],
        "protocol.eval_episodes": 10,
    }
    found = as_dict(config)
    assert {name: found[name] for name in expected} == expected
    assert config.steps is None
    assert all("PEER appendix" in origins[name] for name in expected if name != "beta")


@pytest.mark.parametrize("agent", ["dqn", "drq-dqn"])
def test_efficient_dqns_settings_are_the_papers_table(agent):
    """Every row that is one of our settings; the suite renders the frames."""
    config, origins = defaults(agent, "atari/pong")
    found = as_dict(config)
    expected = {
        "beta": 5e-4,
        "learning.clip_rewards": True,
        "learning.lost_life_ends": True,
        "settings.double": True,
        "settings.dueling": True,
        "settings.target_every": 1,
        "learning.gamma": 0.99,
        "learning.batch_size": 32,
        "settings.learning_rate": 1e-4,
        "settings.adam_epsilon": 1.5e-4,
        "settings.max_gradient_norm": 10.0,
        "steps": 100_000,
        "protocol.final_steps": 125_000,
        "learning.start_steps": 1_600,
        "learning.buffer_size": 100_000,
        "learning.update_every": 1,
        "learning.n_step": 10,
        "settings.encoder.channels": [32, 64, 64],
        "settings.encoder.kernels": [8, 4, 3],
        "settings.encoder.strides": [4, 2, 1],
        "settings.critic.hidden": [512],
        "settings.epsilon_steps": 5_000,
    }
    assert {name: found[name] for name in expected} == expected
    assert all("PEER appendix" in origins[name] for name in expected if name != "beta")


@pytest.mark.parametrize("agent", ["td3", "metd3", "sac", "redq", "ppo", "trpo"])
@pytest.mark.parametrize("task", ["pybullet/hopper", "mujoco/hopper"])
def test_every_value_that_shapes_a_run_from_state_has_its_origin(agent, task):
    """What is left without one is off, or decides what is written down."""
    config, origins = defaults(agent, task)
    sections = ("settings.", "learning.", "protocol.")
    bare = {path for path in as_dict(config) if path.startswith(sections) and path not in origins}
    off = {"settings.compile", "settings.critic.layer_norm"} | {
        f"learning.{name}"
        for name in ("clip_rewards", "lost_life_ends", "flat_returns", "pretrain", "update_after_episodes")
    }
    assert not any(as_dict(config)[path] for path in bare & off)
    assert bare - off <= {f"protocol.{name}" for name in ("log_every", "final_episodes", "final_steps")}


@pytest.mark.parametrize("agent", ["drq-dqn", "curl-rainbow"])
def test_as_published_names_settings_that_differ_from_the_papers(agent):
    layer = preset_layer(agent, "atari", "atari/pong", "as-published")
    plain = as_dict(configure(agent, "atari/pong"))
    published = as_dict(configure(agent, "atari/pong", preset="as-published"))
    assert all(plain[name] != published[name] == value.value for name, value in layer.items())
    assert all("the PEER authors' code" in value.origin for value in layer.values())


def test_an_agent_that_does_not_fit_a_suite_learns_which_agents_do():
    words = "td3 has no settings for the suite 'atari'; agents that have: dqn, drq-dqn, rainbow, curl-rainbow"
    with pytest.raises(ConfigError, match=words):
        defaults("td3", "atari/pong")


def test_layers_come_in_order(more_settings):
    path = "learning.batch_size"
    layers = [
        ("gridworld", {"agents": ["dqn"]}, {}),
        ("gridworld", {"agents": ["dqn"], "tasks": [GRID]}, {}),
        ("any", {"agents": ["dqn"], "preset": "mine"}, {"preset": "mine"}),
        ("gridworld", {"profile": "smoke"}, {"preset": "mine", "profile": "smoke"}),
    ]
    for number, (suite, selectors, asked) in enumerate(layers, start=1):
        more_settings(suite, {path: number}, **selectors)
        config, _ = defaults("dqn", GRID, **asked)
        assert config.learning.batch_size == number
    assert configure("dqn", GRID, preset="mine", profile="smoke", batch_size=5).learning.batch_size == 5


def test_every_key_of_every_table_is_a_setting_and_every_target_exists():
    for suite in SUITES:
        assert set(agents_of(suite)) <= set(AGENTS)
        for selectors, layer in _blocks(suite):
            agents = selectors.get("agents", agents_of(suite))
            tasks = selectors.get("tasks") or [next((t.name for t in TASKS.values() if t.suite == suite), "gym/X-v0")]
            assert all(suite in (find_task(name).suite, "custom") for name in tasks)
            known = {path for agent in agents for task in tasks for path in as_dict(configure(agent, task))}
            assert set(layer) <= known | {"steps", "episodes"}, (suite, selectors)
            assert all(value.origin for value in layer.values())
    assert set(BUILDERS) == {name for name, entry in AGENTS.items() if not entry.packages}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"beta": -1.0}, "beta must be 0 or above, and finite, but is -1"),
        ({"beta": float("nan")}, "beta"),
        ({"seed": -1}, "seed"),
        ({"steps": 0}, "steps must be above 0, but is 0"),
        ({"steps": 5, "episodes": 5}, "give one budget"),
        ({"learning.gamma": 0.0}, r"gamma must be in \(0, 1\], but is 0.0"),
        ({"learning.batch_size": 200_000}, "batch_size 200000 is more than buffer_size"),
        ({"learning.batch_sizes": 3}, "did you mean 'learning.batch_size'"),
        ({"learning.batch_size": 2.5}, "learning.batch_size must be int, but is 2.5"),
        ({"learning.batch_size": True}, "must be int"),
        ({"settings.critic.hidden": ()}, "at least one layer"),
        ({"settings.critic.hidden": (32, "x")}, "settings.critic.hidden"),
        ({"settings.epsilon_start": 1.5}, "epsilon_start"),
        ({"settings.epsilon_eval": -0.1}, "epsilon_eval"),
        ({"settings.target_every": 0}, "target_every must be above 0, but is 0"),
        ({"settings.max_gradient_norm": 0.0}, "max_gradient_norm must be above 0"),
        ({"settings.adam_epsilon": 0.0}, "adam_epsilon must be above 0"),
        ({"settings.loss": "cubic"}, "settings.loss must be"),
        ({"settings.features": "last"}, "settings.features must be"),
        ({"settings.encoder.strides": (4, 2)}, "the same length"),
        ({"device": 3}, "device must be str"),
        ({"profile": "huge"}, "unknown profile 'huge'"),
        ({"preset": "none-such"}, "no preset 'none-such'"),
    ],
)
def test_impossible_settings_are_refused_in_one_sentence(changes, words):
    with pytest.raises(ConfigError, match=words) as caught:
        configure("dqn", GRID, **changes)
    assert "\n" not in str(caught.value)


def test_unknown_agents_suggest_the_nearest():
    with pytest.raises(ConfigError, match="unknown agent 'dqm'; did you mean 'dqn'"):
        find_agent("dqm")


@given(
    beta=st.floats(0, 10),
    seed=st.integers(0, 2**32),
    hidden=st.lists(st.integers(1, 64), min_size=1, max_size=3),
    steps=st.integers(1, 10**7),
)
def test_a_config_survives_its_dict(beta, seed, hidden, steps):
    config = configure(
        "dqn", "gym/CartPole-v1", beta=beta, seed=seed, steps=steps, **{"settings.critic.hidden": hidden}
    )
    assert from_dict(as_dict(config)) == config


def test_a_setting_younger_than_the_run_has_its_default():
    config = configure("dqn", GRID)
    flat = as_dict(config)
    del flat["learning.clip_rewards"], flat["protocol.final_steps"]
    assert from_dict(flat) == config


@pytest.mark.parametrize("missing", ["agent", "task", "episodes"])
def test_a_config_without_agent_task_or_budget_is_refused(missing):
    flat = as_dict(configure("dqn", GRID))
    del flat[missing]
    with pytest.raises(ConfigError, match=f"names no ({missing}|budget)"):
        from_dict(flat)


def test_variants_name_what_differs_and_nothing_else():
    def name(**changes):
        return variant(configure("dqn", GRID, **changes))

    assert name() == "dqn"
    assert name(beta=5e-4) == "dqn"
    assert name(seed=4, device="cpu", threads=2) == "dqn"
    assert name(beta=0.0) == name(regularizer="none") == name(regularizer="dr3", beta=0) == "dqn+beta0"
    assert name(beta=0.01) == "dqn+beta0.01"
    assert name(beta=0.0123456789) != name(beta=0.0123456788)
    assert name(regularizer="dr3", beta=0.01, steps=100) == "dqn+beta0.01+regularizer-dr3+steps100"
    assert name(**{"settings.critic.hidden": (64, 16)}) == "dqn+critic.hidden64x16"
    assert name(profile="smoke") == "dqn"
    assert "/" not in name(regularizer="my.module:Thing")


def test_a_very_long_variant_becomes_a_hash():
    fields = {"learning.gamma": 0.123456, "learning.n_step": 7, "learning.update_every": 3, "learning.updates": 9}
    more = {"settings.learning_rate": 1.5e-5, "settings.epsilon_start": 0.123, "settings.epsilon_final": 0.0123}
    one = variant(configure("dqn", GRID, **fields, **more, regularizer="a_long_module_name:WithALongClassName"))
    two = variant(configure("dqn", GRID, **fields, **more, regularizer="a_long_module_name:WithALongClassNama"))
    assert len(one) < 40
    assert one != two


def test_settings_go_by_the_command_lines_names_or_by_their_path():
    short = configure("dqn", GRID, gamma=0.9, tau=0.5, eval_every=7, **{"critic.hidden": (8,)})
    long = {"learning.gamma": 0.9, "settings.tau": 0.5, "protocol.eval_every": 7, "settings.critic.hidden": (8,)}
    assert short == configure("dqn", GRID, **long)
    unset = configure("dqn", GRID, max_gradient_norm=3.0)
    assert unset.settings.max_gradient_norm == 3.0


def test_configs_are_frozen():
    config = configure("dqn", GRID)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.seed = 3


@pytest.mark.parametrize("profile", ["paper", "small", "smoke"])
def test_every_profile_of_every_agent_learns_before_its_budget_ends(profile):
    for suite, agent in [(name, agent) for name in SUITES for agent in agents_of(name)]:
        names = [name for name, task in TASKS.items() if task.suite == suite] or ["gym/Any-v0", "module:factory"]
        for task in names if suite in ("gridworld", "pybullet", "mujoco") else names[suite == "custom" :][:1]:
            config, _ = defaults(agent, task, profile=profile)
            if config.steps is not None and hasattr(config.learning, "start_steps"):
                assert config.learning.start_steps < config.steps, (agent, task, profile)
