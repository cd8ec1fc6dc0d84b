"""The pixel agents' settings on DMControl against the paper's two tables."""

from pathlib import Path

import pytest

from peer_rl.settings import as_dict, configure
from peer_rl.settings.resolve import defaults
from peer_rl.settings.suites import _blocks, agents_of, preset_layer

_SHARED = {
    "beta": 5e-4,
    "learning.gamma": 0.99,
    "learning.buffer_size": 100_000,
    "learning.batch_size": 512,
    "learning.start_steps": 1_000,
    "settings.critic_learning_rate": 1e-3,
    "settings.actor_learning_rate": 1e-3,
    "settings.tau": 0.01,
    "settings.target_every": 2,
}
PAPER = {
    "curl-sac": {
        **_SHARED,
        "settings.temperature_learning_rate": 1e-4,
        "settings.encoder_tau": 0.05,
        "settings.encoder.channels": [32, 32, 32, 32],
        "settings.latent": 50,
        "settings.critic.hidden": [1024, 1024],
        "settings.crop": 84,
        "protocol.eval_episodes": 10,
    },
    "drq-sac": {
        **_SHARED,
        "settings.temperature_learning_rate": 1e-3,
        "settings.initial_temperature": 0.1,
        "settings.policy_every": 2,
        "settings.log_std_low": -10.0,
        "settings.log_std_high": 2.0,
    },
}


@pytest.mark.parametrize("agent", PAPER)
def test_settings_are_the_papers_table(agent):
    config, origins = defaults(agent, "dmc/walker-walk")
    found = as_dict(config)
    assert {name: found[name] for name in PAPER[agent]} == PAPER[agent]
    assert all("PEER appendix" in origins[name] for name in PAPER[agent] if name != "beta")


def test_what_the_paper_prints_wrong_is_the_codes():
    config, origins = defaults("curl-sac", "dmc/walker-walk")
    assert (config.settings.initial_temperature, config.settings.temperature_beta1) == (0.1, 0.5)
    assert all("prints" in origins[f"settings.{name}"] for name in ("initial_temperature", "temperature_beta1"))


def test_cheetah_learns_more_slowly():
    walker, cheetah = (as_dict(configure("curl-sac", f"dmc/{task}")) for task in ("walker-walk", "cheetah-run"))
    rates = {f"settings.{part}_learning_rate": 2e-4 for part in ("actor", "critic", "contrastive")}
    changed = {path: value for path, value in cheetah.items() if value != walker[path]}
    same = ("task", "action_repeat", "steps")
    assert {p: v for p, v in changed.items() if p not in same and not p.startswith("protocol.")} == rates


@pytest.mark.parametrize("agent", ["curl-sac", "drq-sac"])
def test_as_published_names_settings_that_differ(agent):
    layer = preset_layer(agent, "gym", "gym/X-v0", "as-published")
    plain = as_dict(configure(agent, "gym/X-v0"))
    published = as_dict(configure(agent, "gym/X-v0", preset="as-published"))
    assert all(plain[name] != published[name] == value.value for name, value in layer.items())


@pytest.mark.parametrize("agent", ["curl-sac", "drq-sac", "sac-ae", "drq-v2"])
def test_small_is_for_machines_without_a_gpu(agent):
    config, origins = defaults(agent, "gym/X-v0", profile="small")
    assert config.learning.batch_size == 64
    assert config.settings.critic.hidden == config.settings.actor.hidden == (256, 256)
    assert config.settings.encoder.strides == (2, 2)
    assert (config.learning.updates, config.learning.n_step) == (2, 3)
    assert getattr(config.settings, "target_every", 1) == 1
    assert origins["settings.encoder.strides"].startswith("ours")


@pytest.mark.parametrize(("task", "repeat"), [("cartpole-swingup", 8), ("cheetah-run", 4), ("walker-walk", 2)])
def test_budgets_count_environment_steps_whatever_the_action_repeat(task, repeat):
    for agent, own in (("curl-sac", repeat), ("drq-sac", repeat), ("sac-ae", repeat), ("drq-v2", 2)):
        for profile, budget in (("paper", 500_000), ("small", 100_000)):
            config = configure(agent, f"dmc/{task}", profile=profile)
            assert config.action_repeat == own
            assert (config.steps * own, config.protocol.eval_every * own) == (budget, 10_000)


def test_small_pixels_are_64_and_cropped_to_60_by_curl_and_56_for_the_decoder():
    for agent, size in (("curl-sac", 64), ("drq-sac", 64), ("sac-ae", 56), ("drq-v2", 64)):
        config = configure(agent, "dmc/cartpole-swingup", profile="small")
        assert (config.image_size, config.render_quality, config.learning.batch_size) == (size, "draft", 64)
        assert len(config.settings.encoder.channels) == 2
        assert getattr(config.settings, "crop", 60) == 60
        assert configure(agent, "gym/X-v0", profile="small").image_size is None


def test_the_page_reports_curls_profiles():
    page = (Path(__file__).parents[2] / "docs" / "agents" / "curl-sac.md").read_text()
    for profile in ("paper", "small"):
        config = configure("curl-sac", "dmc/cartpole-swingup", profile=profile)
        settings, size = config.settings, config.image_size
        channels = settings.encoder.channels
        frames = f"{size}x{size}{' in draft' * (config.render_quality == 'draft')}, cropped to {settings.crop}"
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{profile}` | {frames} |")]
        for cell in (f"{len(channels)} of {channels[0]}", f"2x{settings.critic.hidden[0]}", config.learning.batch_size):
            assert f"| {cell}" in row


def test_every_setting_of_an_agents_profile_is_one_of_its_settings():
    """A misspelt one would be left out without a word."""
    for selectors, layer in _blocks("any"):
        for agent in selectors["agents"]:
            tasks = {"dmc": "dmc/cheetah-run", "atari": "atari/pong", "mujoco": "mujoco/hopper"}
            task = next(task for suite, task in tasks.items() if agent in agents_of(suite))
            assert set(layer) <= set(as_dict(configure(agent, task))), (agent, selectors)


def test_drq_v2_keeps_every_frame_of_its_budget():
    config = configure("drq-v2", "dmc/cheetah-run")
    episodes = config.steps * config.action_repeat // 1_000
    assert config.learning.buffer_size >= config.steps + episodes
