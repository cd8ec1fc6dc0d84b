"""Settings of the paper's 26 Atari games, by agent, and the protocol that all share."""

from __future__ import annotations

from peer_rl.configs.layers import Layer, Value

_TABLE = "PEER appendix, Atari table with DrQ"
_CURL_TABLE = "PEER appendix, Atari table with CURL"
_CURL_CODE = "CURL's Rainbow code; the paper's table leaves it open"
_DOPAMINE = "Dopamine's atari_100k lab, DrQ.gin; the paper's table leaves it open"
_CODE = "the PEER authors' code"
_OURS = "ours"

ATARI: Layer = {
    "steps": Value(100_000, "PEER appendix, both Atari tables"),
    "learning.clip_rewards": Value(True, "PEER appendix, both Atari tables"),
    "learning.lost_life_ends": Value(True, "PEER appendix, Atari table with DrQ, and CURL's code"),
    "learning.buffer_size": Value(100_000, "PEER appendix, Atari tables: 100,000 with CURL, unbounded with DrQ"),
    "protocol.eval_every": Value(10_000, "CURL's code"),
    "protocol.eval_episodes": Value(10, "CURL's code"),
    "protocol.final_episodes": Value(100, "Dopamine's atari_100k lab and rliable"),
    "protocol.final_steps": Value(125_000, "PEER appendix, Atari table with DrQ: evaluation steps"),
}
"""For every agent: the budget, what counts as a reward and as an end, the evaluations."""

EFFICIENT_DQN: Layer = {
    "learning.gamma": Value(0.99, _TABLE),
    "learning.n_step": Value(10, _TABLE),
    "learning.batch_size": Value(32, _TABLE),
    "learning.start_steps": Value(1_600, _TABLE),
    "learning.update_every": Value(1, _TABLE),
    "settings.learning_rate": Value(1e-4, _TABLE),
    "settings.adam_epsilon": Value(1.5e-4, _TABLE),
    "settings.max_gradient_norm": Value(10.0, _TABLE),
    "settings.loss": Value("huber", _DOPAMINE + "; the PEER authors' code has it too"),
    "settings.double": Value(True, _TABLE),
    "settings.dueling": Value(True, _TABLE),
    "settings.tau": Value(1.0, _TABLE + ": an update period, so copies"),
    "settings.target_every": Value(1, _TABLE),
    "settings.epsilon_start": Value(1.0, _DOPAMINE),
    "settings.epsilon_final": Value(0.1, _DOPAMINE),
    "settings.epsilon_steps": Value(5_000, _TABLE),
    "settings.epsilon_eval": Value(0.05, _DOPAMINE),
    "settings.critic.hidden": Value((512,), _TABLE),
    "settings.encoder.channels": Value((32, 64, 64), _TABLE),
    "settings.encoder.kernels": Value((8, 4, 3), _TABLE),
    "settings.encoder.strides": Value((4, 2, 1), _TABLE),
}
"""Double DQN with dueling streams and 10-step returns, one update a step."""

DRQ: Layer = EFFICIENT_DQN | {
    "settings.shift": Value(4, "DrQ's paper, Dopamine and the PEER authors' code; the table says random shifts"),
    "settings.intensity": Value(0.05, _DOPAMINE),
}
"""Efficient DQN on augmented frames."""

DRQ_AS_PUBLISHED: Layer = {
    "learning.flat_returns": Value(True, _CODE + ": every reward of a window is multiplied by gamma^n"),
    "settings.features": Value("conv", _CODE + ": PEER reads the flattened convolutions"),
    "settings.encoder.padding": Value("same", _CODE + ': "valid" in lower case means "same" there'),
    "settings.encoder.weight_init": Value("orthogonal", _CODE),
    "settings.critic.weight_init": Value("orthogonal", _CODE),
    "settings.critic.bias_init": Value("zero", _CODE),
    "settings.intensity": Value(0.0, _CODE + ": its default augmentation has none, the paper's text has"),
    "settings.flip": Value(0.5, _CODE + ": its default augmentation, which the paper does not mention"),
    "settings.rotation": Value(5.0, _CODE + ": its default augmentation, which the paper does not mention"),
}
"""What the PEER authors' DrQ does beside the paper, bugs included."""

RAINBOW: Layer = {
    "learning.gamma": Value(0.99, _CURL_TABLE),
    "learning.n_step": Value(20, _CURL_TABLE),
    "learning.batch_size": Value(32, _CURL_TABLE),
    "learning.start_steps": Value(1_600, _CURL_TABLE),
    "learning.update_every": Value(1, _CURL_TABLE),
    "learning.priority_exponent": Value(0.5, _CURL_TABLE),
    "learning.importance_start": Value(0.4, _CURL_TABLE),
    "learning.importance_steps": Value(100_000, _CURL_TABLE + ": to 1 over training"),
    "settings.learning_rate": Value(1e-4, _CURL_TABLE),
    "settings.adam_epsilon": Value(1.5e-5, _CURL_TABLE + "; CURL's code has 1.5e-4"),
    "settings.max_gradient_norm": Value(10.0, _CURL_TABLE),
    "settings.target_every": Value(2_000, _CURL_TABLE),
    "settings.hidden": Value(256, _CURL_TABLE),
    "settings.atoms": Value(51, _CURL_TABLE),
    "settings.lowest_return": Value(-10.0, _CURL_CODE),
    "settings.highest_return": Value(10.0, _CURL_CODE),
    "settings.noise": Value(0.1, _CURL_TABLE),
    "settings.epsilon_eval": Value(0.001, _CURL_CODE),
    "settings.encoder.channels": Value((32, 64), _CURL_TABLE),
    "settings.encoder.kernels": Value((5, 5), _CURL_TABLE),
    "settings.encoder.strides": Value((5, 5), _CURL_TABLE),
}
"""Data-efficient Rainbow."""

CURL_RAINBOW: Layer = RAINBOW | {
    "settings.momentum": Value(0.001, _CURL_TABLE),
    "settings.contrastive": Value(1.0, _CURL_CODE),
    "settings.contrastive_hidden": Value(256, _CURL_CODE),
    "settings.contrastive_units": Value(128, _CURL_CODE),
    "settings.sharpness": Value(0.1, _CURL_CODE),
    "settings.crop_margin": Value(4, _CURL_CODE),
}
"""Rainbow with the contrastive loss."""

CURL_TASKS: dict[tuple[str, str], Layer] = {
    ("curl-rainbow", f"atari/{game}"): {"settings.contrastive": Value(0.01, _CURL_CODE)}
    for game in ("pong", "boxing", "private-eye", "freeway")
}
"""Games with a weaker contrastive loss."""

CURL_AS_PUBLISHED: Layer = {
    "settings.features": Value("conv", _CODE + ": PEER reads the flattened convolutions"),
    "settings.blend_losses": Value(True, _CODE + ": added losses are weighted like transitions, and in priorities"),
}
"""What the PEER authors' CURL-Rainbow does beside the paper."""

SMALL: Layer = {
    "steps": Value(40_000, _OURS + ": about an hour on one core"),
    "protocol.eval_every": Value(10_000, _OURS),
    "protocol.eval_episodes": Value(3, _OURS),
    "protocol.final_episodes": Value(20, _OURS),
    "protocol.final_steps": Value(0, _OURS),
}
SMOKE: Layer = {
    "steps": Value(500, _OURS),
    "learning.start_steps": Value(250, _OURS),
    "learning.buffer_size": Value(2_000, _OURS),
    "protocol.eval_every": Value(500, _OURS),
    "protocol.eval_episodes": Value(1, _OURS),
    "protocol.final_episodes": Value(1, _OURS),
    "protocol.final_steps": Value(0, _OURS),
    "protocol.diagnose_every": Value(100, _OURS),
    "protocol.log_every": Value(50, _OURS),
}
"""Profiles of the suite."""
