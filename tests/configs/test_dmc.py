"""The pixel agents' settings on DMControl against the paper's two tables."""

from pathlib import Path

import pytest

from peer_rl.configs import as_dict, configure
from peer_rl.configs import presets as tables
from peer_rl.configs.resolve import apply, defaults

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


def on_dmc(agent: str) -> dict[str, object]:
    return as_dict(apply(configure(agent, "gym/X-v0"), tables.SUITES[agent, "dmc"], {}))


@pytest.mark.parametrize("agent", PAPER)
def test_settings_are_the_papers_table(agent):
    found, layer = on_dmc(agent), tables.SUITES[agent, "dmc"]
    assert {name: found[name] for name in PAPER[agent]} == PAPER[agent]
    assert all("PEER appendix" in layer[name].origin for name in PAPER[agent] if name != "beta")


def test_what_the_paper_prints_wrong_is_the_codes():
    layer = tables.SUITES["curl-sac", "dmc"]
    assert (layer["settings.initial_temperature"].value, layer["settings.temperature_beta1"].value) == (0.1, 0.5)
    assert all("prints" in layer[f"settings.{name}"].origin for name in ("initial_temperature", "temperature_beta1"))


def test_cheetah_learns_more_slowly():
    layer = tables.TASKS["curl-sac", "dmc/cheetah-run"]
    assert {value.value for value in layer.values()} == {2e-4}
    found = as_dict(apply(configure("curl-sac", "gym/X-v0"), layer, {}))
    assert found["settings.contrastive_learning_rate"] == found["settings.actor_learning_rate"] == 2e-4


@pytest.mark.parametrize("agent", ["curl-sac", "drq-sac"])
def test_as_published_names_settings_that_differ(agent):
    layer = tables.PRESETS[agent, "as-published"]
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


def test_the_page_tells_curls_profiles():
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
    for (agent, profile), layer in tables.AGENT_PROFILES.items():
        task = "dmc/cheetah-run" if (agent, "dmc") in tables.SUITES else "mujoco/hopper"
        known = as_dict(configure(agent, task, profile=profile))
        assert set(layer) <= set(known)


def test_drq_v2_keeps_every_frame_of_its_budget():
    config = configure("drq-v2", "dmc/cheetah-run")
    episodes = config.steps * config.action_repeat // 1_000
    assert config.learning.buffer_size >= config.steps + episodes
