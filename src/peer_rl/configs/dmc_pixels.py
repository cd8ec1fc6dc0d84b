"""Settings of the agents that see DMControl's frames, and the protocol that they share.

Budgets and evaluations on DMControl count environment frames, so that they follow each task's action repeat. The size
of the frames and the action repeat are the suite's: curl-sac asks it for 100x100, the others for 84x84.
"""

from __future__ import annotations

from peer_rl.configs.dmc import ENVIRONMENT_STEPS, EVALUATION_EVERY
from peer_rl.configs.layers import Frames, Layer, Value

_CURL_TABLE = "PEER appendix, DMControl table with CURL"
_CURL_CODE = "CURL's code; the paper's table leaves it open"
_CURL_PRINT = "CURL's code and the PEER authors'; the paper's table prints"
_DRQ_TABLE = "PEER appendix, DMControl table with DrQ"
_DRQ_CODE = "DrQ's code; the paper's table leaves it open"
_AE_CODE = "the SAC+AE authors' code"
_V2_CODE = "the DrQ-v2 authors' code"
_OURS = "ours"

_TEN_THOUSAND = "10k environment steps, as DrQ-v2's code; CURL's and DrQ's count agent steps"
_DIAGNOSE = _OURS + ": 2k environment steps; figure 1 does not say how often"

PROTOCOL: Layer = {
    "steps": Value(Frames(ENVIRONMENT_STEPS), "PEER, DMControl500k: 500k environment steps"),
    "protocol.eval_every": Value(Frames(EVALUATION_EVERY), _TEN_THOUSAND),
    "protocol.eval_episodes": Value(10, _CURL_TABLE),
    "protocol.diagnose_every": Value(Frames(2_000), _DIAGNOSE),
}
"""For every agent: the budget and the evaluations."""

_FOUR_CONVOLUTIONS: Layer = {
    "settings.encoder.channels": Value((32, 32, 32, 32), _CURL_TABLE),
    "settings.encoder.kernels": Value((3, 3, 3, 3), _CURL_CODE),
    "settings.encoder.strides": Value((2, 1, 1, 1), _CURL_CODE),
}

CURL_SAC: Layer = _FOUR_CONVOLUTIONS | {
    "learning.gamma": Value(0.99, _CURL_TABLE),
    "learning.buffer_size": Value(100_000, _CURL_TABLE),
    "learning.batch_size": Value(512, _CURL_TABLE),
    "learning.start_steps": Value(1_000, _CURL_TABLE),
    "settings.actor_learning_rate": Value(1e-3, _CURL_TABLE),
    "settings.critic_learning_rate": Value(1e-3, _CURL_TABLE),
    "settings.contrastive_learning_rate": Value(1e-3, _CURL_TABLE),
    "settings.temperature_learning_rate": Value(1e-4, _CURL_TABLE),
    "settings.temperature_beta1": Value(0.5, _CURL_PRINT + " 0.9"),
    "settings.initial_temperature": Value(0.1, _CURL_PRINT + " 0.99"),
    "settings.tau": Value(0.01, _CURL_TABLE),
    "settings.encoder_tau": Value(0.05, _CURL_TABLE),
    "settings.target_every": Value(2, _CURL_TABLE),
    "settings.policy_every": Value(2, _CURL_CODE),
    "settings.log_std_low": Value(-10.0, _CURL_CODE),
    "settings.log_std_high": Value(2.0, _CURL_CODE),
    "settings.latent": Value(50, _CURL_TABLE),
    "settings.latent_tanh": Value(False, _CURL_CODE),
    "settings.crop": Value(84, _CURL_TABLE),
    "settings.actor.hidden": Value((1024, 1024), _CURL_TABLE),
    "settings.critic.hidden": Value((1024, 1024), _CURL_TABLE),
    "settings.encoder.weight_init": Value("delta-orthogonal", _CURL_CODE),
}
"""SAC with the contrastive loss; needs frames larger than 84x84."""

CURL_PICTURES: Layer = {"image_size": Value(100, _CURL_TABLE)}
"""What CURL asks of the suite: frames that it can crop."""

TASKS: dict[tuple[str, str], Layer] = {
    ("curl-sac", "dmc/cheetah-run"): {
        f"settings.{part}_learning_rate": Value(2e-4, _CURL_TABLE) for part in ("actor", "critic", "contrastive")
    },
}
"""Tasks with step sizes of their own."""

CURL_AS_PUBLISHED: Layer = {
    "settings.step_encoder_twice": Value(True, "CURL's code, curl#20 and curl#28: two optimizers own the encoder"),
    "settings.omit_last_offset": Value(True, "CURL's code, curl#11: the last offset is never drawn"),
}
"""What CURL's code does beside its paper."""

DRQ_AS_PUBLISHED: Layer = {
    "beta": Value(5e-3, "the PEER authors' code: its launcher's default, ten times the paper's"),
}
"""What the PEER authors' DrQ does beside the paper; their critic's linear phi and fixed task are not here."""

DRQ_SAC: Layer = _FOUR_CONVOLUTIONS | {
    "learning.gamma": Value(0.99, _DRQ_TABLE),
    "learning.buffer_size": Value(100_000, _DRQ_TABLE),
    "learning.batch_size": Value(512, _DRQ_TABLE),
    "learning.start_steps": Value(1_000, _DRQ_TABLE),
    "settings.actor_learning_rate": Value(1e-3, _DRQ_TABLE),
    "settings.critic_learning_rate": Value(1e-3, _DRQ_TABLE),
    "settings.temperature_learning_rate": Value(1e-3, _DRQ_TABLE),
    "settings.initial_temperature": Value(0.1, _DRQ_TABLE),
    "settings.tau": Value(0.01, _DRQ_TABLE),
    "settings.encoder_tau": Value(0.01, _DRQ_CODE),
    "settings.target_every": Value(2, _DRQ_TABLE),
    "settings.policy_every": Value(2, _DRQ_TABLE),
    "settings.log_std_low": Value(-10.0, _DRQ_TABLE),
    "settings.log_std_high": Value(2.0, _DRQ_TABLE),
    "settings.latent": Value(50, _DRQ_CODE),
    "settings.latent_tanh": Value(True, _DRQ_CODE),
    "settings.views": Value(2, _DRQ_CODE),
    "settings.shift": Value(4, _DRQ_CODE),
    "settings.actor.hidden": Value((1024, 1024), _DRQ_CODE),
    "settings.critic.hidden": Value((1024, 1024), _DRQ_CODE),
    "settings.encoder.weight_init": Value("orthogonal", _DRQ_CODE),
}
"""SAC over random shifts."""

SAC_AE: Layer = _FOUR_CONVOLUTIONS | {
    "learning.gamma": Value(0.99, _AE_CODE),
    "learning.buffer_size": Value(100_000, _OURS + ": CURL's and DrQ's; the authors' million would take 21 GB"),
    "learning.batch_size": Value(128, _AE_CODE),
    "learning.start_steps": Value(1_000, _AE_CODE),
    "settings.actor_learning_rate": Value(1e-3, _AE_CODE),
    "settings.critic_learning_rate": Value(1e-3, _AE_CODE),
    "settings.reconstruction_learning_rate": Value(1e-3, _AE_CODE),
    "settings.temperature_learning_rate": Value(1e-4, _AE_CODE),
    "settings.temperature_beta1": Value(0.5, _AE_CODE),
    "settings.initial_temperature": Value(0.1, _AE_CODE),
    "settings.tau": Value(0.01, _AE_CODE),
    "settings.encoder_tau": Value(0.05, _AE_CODE),
    "settings.target_every": Value(2, _AE_CODE),
    "settings.policy_every": Value(2, _AE_CODE),
    "settings.latent_penalty": Value(1e-6, _AE_CODE),
    "settings.decoder_decay": Value(1e-7, _AE_CODE),
    "settings.latent_tanh": Value(True, _AE_CODE),
}
"""SAC with a decoder."""

DRQ_V2: Layer = _FOUR_CONVOLUTIONS | {
    "learning.gamma": Value(0.99, _V2_CODE),
    "learning.n_step": Value(3, _V2_CODE),
    "learning.buffer_size": Value(251_000, _OURS + ": all of the frames; the authors' million would take four times"),
    "learning.batch_size": Value(256, _V2_CODE),
    "learning.start_steps": Value(2_000, _V2_CODE + ": 4,000 frames"),
    "learning.update_every": Value(2, _V2_CODE),
    "settings.actor_learning_rate": Value(1e-4, _V2_CODE),
    "settings.critic_learning_rate": Value(1e-4, _V2_CODE),
    "settings.tau": Value(0.01, _V2_CODE),
    "settings.noise_start": Value(1.0, _V2_CODE),
    "settings.noise_final": Value(0.1, _V2_CODE),
    "settings.noise_steps": Value(50_000, _V2_CODE + ": 100k frames, the easy tasks' horizon"),
    "settings.smoothing_clip": Value(0.3, _V2_CODE),
    "settings.shift": Value(4, _V2_CODE),
}
"""Settings of the easy tasks."""
DRQ_V2_REPEAT: Layer = {"action_repeat": Value(2, _V2_CODE)}
"""DrQ-v2 repeats every action twice, whatever the task."""

ELSEWHERE: Layer = {
    "steps": Value(50_000, _OURS + ": a first look at an environment of your own"),
    "learning.buffer_size": Value(50_000, _OURS + ": all of the steps"),
    "learning.batch_size": Value(128, _OURS + ": the paper's 512 is for a GPU"),
}
"""Any other environment with frames and continuous actions."""
CURL_ELSEWHERE: Layer = ELSEWHERE | {"settings.crop": Value(76, _OURS + ": of the usual 84x84")}

_VALUES_REACH = _OURS + ": values travel further in a short run"
_SMALL: Layer = {
    "learning.batch_size": Value(64, _OURS),
    "learning.start_steps": Value(1_000, _OURS + ": as for CURL and DrQ"),
    "learning.n_step": Value(3, _VALUES_REACH + "; DrQ-v2's"),
    "learning.updates": Value(2, _VALUES_REACH),
    "settings.actor.hidden": Value((256, 256), _OURS),
    "settings.critic.hidden": Value((256, 256), _OURS),
    "settings.encoder.channels": Value((16, 16), _OURS + ": two strided convolutions on frames of 64x64"),
    "settings.encoder.kernels": Value((3, 3), _OURS),
    "settings.encoder.strides": Value((2, 2), _OURS + ": the poles are thin"),
    "protocol.eval_episodes": Value(5, _OURS),
}
_SMOKE: Layer = _SMALL | {
    "steps": Value(300, _OURS),
    "learning.start_steps": Value(200, _OURS),
    "learning.updates": Value(1, _OURS),
    "learning.buffer_size": Value(1_000, _OURS),
    "learning.batch_size": Value(16, _OURS),
    "protocol.eval_every": Value(300, _OURS),
    "protocol.eval_episodes": Value(1, _OURS),
    "protocol.diagnose_every": Value(100, _OURS),
    "protocol.log_every": Value(50, _OURS),
}
_QUICK_TARGETS: Layer = {"settings.target_every": Value(1, _VALUES_REACH)}
_SMALL_OWN: dict[str, Layer] = {
    "curl-sac": _QUICK_TARGETS
    | {
        "settings.crop": Value(60, _OURS + ": of frames of 64x64"),
        "settings.encoder.weight_init": Value(
            "orthogonal", _OURS + ": CURL's own would begin with one pixel of each sixteen"
        ),
        "settings.temperature_learning_rate": Value(1e-3, _OURS + ": DrQ's"),
        "settings.contrastive_learning_rate": Value(1e-4, _OURS + ": small steps for small batches"),
    },
    "drq-sac": _QUICK_TARGETS,
    "sac-ae": _QUICK_TARGETS | {"image_size": Value(56, _OURS + ": the decoder makes an update of 64x64 much slower")},
    "drq-v2": {"settings.noise_steps": Value(10_000, _OURS + ": a fifth of the authors', as the budget is")},
}
AGENT_PROFILES: dict[tuple[str, str], Layer] = {
    (agent, name): layer | own
    for agent, own in _SMALL_OWN.items()
    for name, layer in (("small", _SMALL), ("smoke", _SMOKE))
}
"""For machines without a GPU. The budget is the suite's: 100k environment steps, the paper's smaller one."""
