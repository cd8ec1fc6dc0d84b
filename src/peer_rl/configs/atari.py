"""Rainbow's and CURL's settings on Atari, each with its origin (see presets.py for the form)."""

from __future__ import annotations

from peer_rl.configs.layers import Layer, Value

_TABLE = "PEER appendix, Atari table with CURL"
_CODE = "the authors' CURL-Rainbow code; the table does not say"
_SUITE = "PEER appendix, Atari section"
_OURS = "ours"
_DOPAMINE = "Dopamine's atari_100k lab and rliable: the final policy over 100 episodes"

RAINBOW: Layer = {
    "steps": Value(100_000, _TABLE),
    "learning.gamma": Value(0.99, _TABLE),
    "learning.n_step": Value(20, _TABLE),
    "learning.batch_size": Value(32, _TABLE),
    "learning.buffer_size": Value(100_000, _TABLE),
    "learning.start_steps": Value(1_600, _TABLE),
    "learning.clip_rewards": Value(True, _TABLE),
    "learning.lost_life_ends": Value(True, _CODE),
    "learning.priority_exponent": Value(0.5, _TABLE),
    "learning.importance_start": Value(0.4, _TABLE),
    "learning.importance_steps": Value(100_000, _TABLE),
    "protocol.eval_every": Value(10_000, _CODE),
    "protocol.eval_episodes": Value(10, _CODE),
    "protocol.final_episodes": Value(100, _DOPAMINE),
    "protocol.final_steps": Value(125_000, "PEER appendix, Atari table with DrQ"),
    "protocol.diagnose_every": Value(1_000, _OURS),
    "settings.learning_rate": Value(1e-4, _TABLE),
    "settings.adam_epsilon": Value(1.5e-5, _TABLE + "; CURL's own code has 1.5e-4"),
    "settings.max_gradient_norm": Value(10.0, _TABLE),
    "settings.target_every": Value(2_000, _TABLE),
    "settings.hidden": Value(256, _TABLE),
    "settings.atoms": Value(51, _TABLE),
    "settings.lowest_return": Value(-10.0, _CODE),
    "settings.highest_return": Value(10.0, _CODE),
    "settings.noise": Value(0.1, _TABLE),
    "settings.epsilon_eval": Value(0.001, _CODE),
    "settings.encoder.channels": Value((32, 64), _TABLE),
    "settings.encoder.kernels": Value((5, 5), _TABLE),
    "settings.encoder.strides": Value((5, 5), _TABLE),
}

CURL_RAINBOW: Layer = RAINBOW | {
    "settings.momentum": Value(0.001, _TABLE),
    "settings.contrastive": Value(1.0, _CODE),
    "settings.contrastive_hidden": Value(256, _CODE),
    "settings.contrastive_units": Value(128, _CODE),
    "settings.sharpness": Value(0.1, _CODE),
    "settings.crop": Value(80, _CODE),
}

CURL_TASKS: dict[tuple[str, str], Layer] = {
    ("curl-rainbow", f"atari/{game}"): {"settings.contrastive": Value(0.01, _CODE)}
    for game in ("pong", "boxing", "private-eye", "freeway")
}

_PUBLISHED = "what the PEER authors' CURL-Rainbow code does"

CURL_AS_PUBLISHED: Layer = {
    "settings.features": Value("conv", _PUBLISHED),
    "settings.blend_losses": Value(True, _PUBLISHED),
}


def elsewhere(layer: Layer) -> Layer:
    """The same for any other environment, where lives and the size of rewards are unknown."""
    reason = _OURS + ": only Atari's rewards are clipped and lives counted"
    return layer | {
        "learning.clip_rewards": Value(False, reason),
        "learning.lost_life_ends": Value(False, reason),
        "learning.n_step": Value(3, _OURS + ": twenty are for the sparse rewards of Atari"),
        "protocol.final_episodes": Value(0, _OURS),
        "protocol.final_steps": Value(0, _OURS),
    }
