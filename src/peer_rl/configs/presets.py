"""Values that differ from an agent's defaults, by suite, task, preset and profile, each with its origin.

Keys are dotted paths into RunConfig. The order of the layers is in resolve.py.
"""

from __future__ import annotations

from dataclasses import fields

from peer_rl.configs import atari, dmc, dmc_pixels
from peer_rl.configs.layers import Layer, Value
from peer_rl.configs.onpolicy import PPOConfig, TRPOConfig

_GRID = "PEER appendix, grid-world table"
_OURS = "ours"

_TABLE = "PEER appendix, PyBullet and MuJoCo table"
_PROTOCOL = "PEER appendix, PyBullet section"
_TD3_CODE = "the TD3 authors' code; the paper prints 0.2, its code has 0.1"
_PYTORCH_SAC = "pytorch_sac, the paper's SAC on PyBullet"
_SB3 = "Stable-Baselines3, the paper's SAC on MuJoCo"
_REDQ = "the REDQ authors' code"
_EVERY_CODE = "the code of every agent here: one update a step, from one reward"
_TD3_INIT = "PyTorch's own, as in the TD3 authors' code"
_PPO2 = "OpenAI Baselines, PPO2 for MuJoCo"
_TRPO_MPI = "OpenAI Baselines, trpo_mpi for MuJoCo"

_DQN_GENERAL: Layer = {
    "steps": Value(20_000, _OURS + ": docs/agents/dqn.md has the curve on CartPole"),
    "learning.n_step": Value(3, _OURS + ": values travel faster along long episodes"),
    "learning.batch_size": Value(128, _OURS + ": with 64 some seeds stay near 300 on CartPole"),
    "learning.buffer_size": Value(10_000, _OURS + ": recent failures stay a visible share of the batch"),
    "settings.tau": Value(0.05, _OURS + ": with 0.005 CartPole takes five times as long"),
}


def _initial(weights: str, biases: str, origin: str) -> Layer:
    """Both networks' weights at the start."""
    kinds = {"weight_init": Value(weights, origin), "bias_init": Value(biases, origin)}
    return {f"settings.{network}.{name}": value for network in ("actor", "critic") for name, value in kinds.items()}


def _baselines(settings: type[PPOConfig | TRPOConfig], origin: str) -> Layer:
    """The defaults of Stable-Baselines3's agents are OpenAI Baselines' settings; here they get their origin."""
    own: Layer = {f"settings.{field.name}": Value(field.default, origin) for field in fields(settings)}
    return own | {
        "learning.gamma": Value(0.99, origin),
        "protocol.eval_every": Value(5_000, _PROTOCOL),
        "protocol.eval_episodes": Value(10, _PROTOCOL),
    }


_PPO: Layer = _baselines(PPOConfig, _PPO2)
_TRPO: Layer = _baselines(TRPOConfig, _TRPO_MPI) | {
    "settings.reward_clip": Value(0.0, _OURS + ": trpo_mpi has no normalised rewards of its own"),
}
_ON_POLICY_GENERAL: Layer = {"steps": Value(100_000, _OURS + ": a first look at an environment of your own")}
_ON_POLICY_PAPER: Layer = {"steps": Value(1_000_000, _PROTOCOL)}

_CONTINUOUS: Layer = {
    "steps": Value(1_000_000, _PROTOCOL),
    "learning.gamma": Value(0.99, _TABLE),
    "learning.buffer_size": Value(1_000_000, _TABLE),
    "learning.batch_size": Value(256, _TABLE),
    "learning.start_steps": Value(25_000, _TABLE),
    "learning.n_step": Value(1, _EVERY_CODE),
    "learning.update_every": Value(1, _EVERY_CODE),
    "learning.updates": Value(1, _EVERY_CODE),
    "protocol.eval_every": Value(5_000, _PROTOCOL),
    "protocol.eval_episodes": Value(10, _PROTOCOL),
    "protocol.diagnose_every": Value(2_500, _OURS + ": figure 1 does not say how often"),
    "settings.actor_learning_rate": Value(3e-4, _TABLE),
    "settings.critic_learning_rate": Value(3e-4, _TABLE),
    "settings.tau": Value(0.005, _TABLE),
    "settings.actor.hidden": Value((256, 256), _TABLE),
    "settings.critic.hidden": Value((256, 256), _TABLE),
}

_TD3: Layer = (
    _CONTINUOUS
    | _initial("uniform", "uniform", _TD3_INIT)
    | {
        "settings.policy_every": Value(2, _TABLE),
        "settings.exploration_noise": Value(0.1, _TD3_CODE),
        "settings.smoothing_noise": Value(0.2, _TABLE),
        "settings.smoothing_clip": Value(0.5, _TABLE),
    }
)

_METD3: Layer = _TD3 | {"settings.dropout": Value(0.1, "PEER appendix, PyBullet section")}

_SAC_PYBULLET: Layer = (
    _CONTINUOUS
    | _initial("orthogonal", "zero", _PYTORCH_SAC)
    | {
        "settings.temperature_learning_rate": Value(1e-4, _TABLE),
        "settings.initial_temperature": Value(0.1, _PYTORCH_SAC),
        "settings.target_every": Value(2, _TABLE),
        "settings.log_std_low": Value(-5.0, _PYTORCH_SAC),
        "settings.log_std_high": Value(2.0, _PYTORCH_SAC),
        "settings.log_std_by": Value("tanh", _PYTORCH_SAC),
        "settings.policy_every": Value(1, _PYTORCH_SAC),
        "settings.temperature_beta1": Value(0.9, _PYTORCH_SAC),
    }
)

_SAC_MUJOCO: Layer = (
    _CONTINUOUS
    | _initial("uniform", "uniform", _SB3)
    | {
        "settings.temperature_learning_rate": Value(1e-4, _TABLE),
        "settings.initial_temperature": Value(1.0, _SB3),
        "settings.target_every": Value(2, _TABLE),
        "settings.log_std_low": Value(-20.0, _SB3),
        "settings.log_std_high": Value(2.0, _SB3),
        "settings.log_std_by": Value("clip", _SB3),
        "settings.policy_every": Value(1, _SB3),
        "settings.temperature_beta1": Value(0.9, _SB3),
    }
)

_REDQ_LAYER: Layer = (
    _CONTINUOUS
    | _initial("xavier", "zero", _REDQ)
    | {
        "learning.start_steps": Value(5_000, _REDQ),
        "learning.updates": Value(20, _REDQ),
        "settings.policy_every": Value(20, _REDQ),
        "settings.heads": Value(10, _REDQ),
        "settings.target_heads": Value(2, _REDQ),
        "settings.temperature_learning_rate": Value(3e-4, _REDQ),
        "settings.temperature_beta1": Value(0.9, _REDQ),
        "settings.initial_temperature": Value(1.0, _REDQ),
        "settings.target_every": Value(1, _REDQ),
        "settings.log_std_low": Value(-20.0, _REDQ),
        "settings.log_std_high": Value(2.0, _REDQ),
        "settings.log_std_by": Value("clip", _REDQ),
    }
)


def _elsewhere(layer: Layer) -> Layer:
    """The paper's settings for any other environment, with a budget and a random phase for a first look."""
    return layer | {
        "steps": Value(100_000, _OURS + ": a first look at an environment of your own"),
        "learning.start_steps": Value(5_000, _OURS + ": 25,000 is for the paper's million steps"),
    }


_DISCRETE_ELSEWHERE: Layer = {
    "steps": Value(20_000, _OURS + ": a first look at an environment of your own"),
    "learning.buffer_size": Value(20_000, _OURS + ": all of the steps"),
    "settings.epsilon_eval": Value(0.0, _OURS + ": the greedy policy"),
}

SUITES: dict[tuple[str, str], Layer] = {
    ("dqn", "gridworld"): {
        "episodes": Value(2_000, _GRID),
        "learning.gamma": Value(0.99, _GRID),
        "learning.buffer_size": Value(100_000, _GRID),
        "learning.batch_size": Value(64, _GRID),
        "learning.start_steps": Value(1_000, _GRID),
        "settings.learning_rate": Value(1e-4, _GRID),
        "settings.tau": Value(0.005, _GRID),
        "settings.epsilon_start": Value(0.1, _GRID),
        "settings.epsilon_final": Value(0.1, _GRID),
        "settings.critic.hidden": Value((32, 32), _GRID),
        "settings.critic.bias_init": Value("zero", _OURS + ": the paper does not say; docs/gridworld.md has both"),
        "protocol.eval_episodes": Value(10, _GRID),
        "protocol.eval_every": Value(1_000, _OURS + ": the paper does not say how often"),
        "protocol.diagnose_every": Value(100, _OURS + ": the resolution of figure 3"),
    },
    ("dqn", "gym"): _DQN_GENERAL,
    ("dqn", "custom"): _DQN_GENERAL,
    ("dqn", "atari"): atari.ATARI | atari.EFFICIENT_DQN,
    ("drq-dqn", "atari"): atari.ATARI | atari.DRQ,
    ("drq-dqn", "gym"): atari.DRQ | _DISCRETE_ELSEWHERE,
    ("drq-dqn", "custom"): atari.DRQ | _DISCRETE_ELSEWHERE,
    ("td3", "pybullet"): _TD3,
    ("td3", "mujoco"): _TD3,
    ("td3", "gym"): _elsewhere(_TD3),
    ("td3", "custom"): _elsewhere(_TD3),
    ("metd3", "pybullet"): _METD3,
    ("metd3", "mujoco"): _METD3,
    ("metd3", "gym"): _elsewhere(_METD3),
    ("metd3", "custom"): _elsewhere(_METD3),
    ("sac", "pybullet"): _SAC_PYBULLET,
    ("sac", "mujoco"): _SAC_MUJOCO,
    ("sac", "gym"): _elsewhere(_SAC_MUJOCO),
    ("sac", "custom"): _elsewhere(_SAC_MUJOCO),
    ("sac", "dmc"): dmc.STATE_SAC,
    ("redq", "pybullet"): _REDQ_LAYER,
    ("redq", "mujoco"): _REDQ_LAYER,
    ("redq", "gym"): _elsewhere(_REDQ_LAYER),
    ("redq", "custom"): _elsewhere(_REDQ_LAYER),
    ("rainbow", "atari"): atari.ATARI | atari.RAINBOW,
    ("rainbow", "gym"): atari.RAINBOW | _DISCRETE_ELSEWHERE,
    ("rainbow", "custom"): atari.RAINBOW | _DISCRETE_ELSEWHERE,
    ("curl-rainbow", "atari"): atari.ATARI | atari.CURL_RAINBOW,
    ("curl-rainbow", "gym"): atari.CURL_RAINBOW | _DISCRETE_ELSEWHERE,
    ("curl-rainbow", "custom"): atari.CURL_RAINBOW | _DISCRETE_ELSEWHERE,
    ("curl-sac", "dmc"): dmc_pixels.PROTOCOL | dmc_pixels.CURL_SAC | dmc_pixels.CURL_PICTURES,
    ("drq-sac", "dmc"): dmc_pixels.PROTOCOL | dmc_pixels.DRQ_SAC,
    ("sac-ae", "dmc"): dmc_pixels.PROTOCOL | dmc_pixels.SAC_AE,
    ("drq-v2", "dmc"): dmc_pixels.PROTOCOL | dmc_pixels.DRQ_V2 | dmc_pixels.DRQ_V2_REPEAT,
    **{("curl-sac", suite): dmc_pixels.CURL_SAC | dmc_pixels.CURL_ELSEWHERE for suite in ("gym", "custom")},
    **{("drq-sac", suite): dmc_pixels.DRQ_SAC | dmc_pixels.ELSEWHERE for suite in ("gym", "custom")},
    **{("sac-ae", suite): dmc_pixels.SAC_AE | dmc_pixels.ELSEWHERE for suite in ("gym", "custom")},
    **{("drq-v2", suite): dmc_pixels.DRQ_V2 | dmc_pixels.ELSEWHERE for suite in ("gym", "custom")},
    **{("ppo", suite): _PPO | _ON_POLICY_GENERAL for suite in ("gym", "custom")},
    **{("ppo", suite): _PPO | _ON_POLICY_PAPER for suite in ("pybullet", "mujoco")},
    **{("trpo", suite): _TRPO | _ON_POLICY_GENERAL for suite in ("gym", "custom")},
    **{("trpo", suite): _TRPO | _ON_POLICY_PAPER for suite in ("pybullet", "mujoco")},
}
"""By agent and suite."""

_MBPO = "MBPO's table, which the REDQ authors use"

TASKS: dict[tuple[str, str], Layer] = {
    ("redq", "mujoco/hopper"): {
        "steps": Value(125_000, _REDQ),
        "settings.target_entropy": Value(-1.0, _MBPO),
    },
    ("redq", "mujoco/walker2d"): {
        "steps": Value(300_000, _REDQ),
        "settings.target_entropy": Value(-3.0, _MBPO),
    },
    ("redq", "mujoco/half-cheetah"): {
        "steps": Value(400_000, _REDQ),
        "settings.target_entropy": Value(-3.0, _MBPO),
    },
    ("redq", "mujoco/ant"): {
        "steps": Value(300_000, _REDQ),
        "settings.target_entropy": Value(-4.0, _MBPO),
    },
    **atari.CURL_TASKS,
    **dmc_pixels.TASKS,
}
"""By agent and task."""

PRESETS: dict[tuple[str, str], Layer] = {
    ("curl-rainbow", "as-published"): atari.CURL_AS_PUBLISHED,
    ("curl-sac", "as-published"): dmc_pixels.CURL_AS_PUBLISHED,
    ("drq-sac", "as-published"): dmc_pixels.DRQ_AS_PUBLISHED,
    ("drq-dqn", "as-published"): atari.DRQ_AS_PUBLISHED,
}
"""By agent and the name given to --preset."""

_SMOKE_ELSEWHERE: Layer = {
    "steps": Value(3_000, _OURS),
    "learning.start_steps": Value(500, _OURS),
    "protocol.eval_every": Value(1_000, _OURS),
}

PROFILES: dict[tuple[str, str], Layer] = {
    ("gridworld", "small"): {"episodes": Value(500, _OURS)},
    ("gridworld", "smoke"): {
        "episodes": Value(40, _OURS),
        "learning.start_steps": Value(300, _OURS),
    },
    ("pybullet", "small"): {"steps": Value(120_000, _OURS), "learning.start_steps": Value(10_000, _OURS)},
    ("pybullet", "smoke"): {
        "steps": Value(1_000, _OURS),
        "learning.start_steps": Value(500, _OURS),
        "protocol.eval_every": Value(500, _OURS),
        "protocol.eval_episodes": Value(3, _OURS),
        "protocol.diagnose_every": Value(250, _OURS),
    },
    ("dmc", "small"): dmc.SMALL,
    ("dmc", "smoke"): dmc.SMOKE,
    ("atari", "small"): atari.SMALL,
    ("atari", "smoke"): atari.SMOKE,
    ("gym", "small"): {"steps": Value(20_000, _OURS)},
    ("gym", "smoke"): _SMOKE_ELSEWHERE,
    ("custom", "small"): {"steps": Value(20_000, _OURS)},
    ("custom", "smoke"): _SMOKE_ELSEWHERE,
}
PROFILES |= {("mujoco", profile): PROFILES["pybullet", profile] for profile in ("small", "smoke")}
"""By suite and profile."""

AGENT_PROFILES: dict[tuple[str, str], Layer] = {
    ("redq", "small"): {
        "steps": Value(10_000, _OURS + ": twenty updates of ten critics a step"),
        "learning.start_steps": Value(1_000, _OURS),
    },
    ("redq", "smoke"): {
        "steps": Value(400, _OURS + ": twenty updates of ten critics a step"),
        "learning.start_steps": Value(300, _OURS),
        "protocol.eval_every": Value(200, _OURS),
    },
    **{(agent, "smoke"): {"steps": Value(3_000, _OURS + ": a batch has 2,048")} for agent in ("ppo", "trpo")},
    **dmc_pixels.AGENT_PROFILES,
}
"""By agent and profile, over the suite's: agents whose steps cost much more than others'."""
