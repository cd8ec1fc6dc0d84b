"""Settings of the paper's 16 DMControl tasks, by agent, and the protocol that all share.

Budgets and evaluations count environment steps, which are agent steps times the action repeat. The task table brings
action repeat, frame size, stack and quality (environment.py); an agent's layer may say otherwise.
"""

from __future__ import annotations

from peer_rl.configs.layers import Frames, Layer, Value

ENVIRONMENT_STEPS = 500_000
"""The larger of the paper's two budgets; a run's evaluation at 100,000 is the smaller one's score."""
EVALUATION_EVERY = 10_000
"""Environment steps between evaluations (pytorch_sac and DrQ-v2; CURL's and DrQ's code count agent steps)."""

_PYTORCH_SAC = "pytorch_sac"
_NO_REPEAT = "State SAC repeats no action (the DrQ authors)"
_PROTOCOL = "PEER appendix, DMControl table with CURL"
_OURS = "ours"

STATE_SAC: Layer = {
    "action_repeat": Value(1, _NO_REPEAT),
    "steps": Value(ENVIRONMENT_STEPS, "PEER, DMControl500k: 500,000 environment steps"),
    "learning.gamma": Value(0.99, _PYTORCH_SAC),
    "learning.batch_size": Value(1_024, _PYTORCH_SAC),
    "learning.buffer_size": Value(ENVIRONMENT_STEPS, _PYTORCH_SAC + ": all of the steps"),
    "learning.start_steps": Value(5_000, _PYTORCH_SAC),
    "protocol.eval_every": Value(EVALUATION_EVERY, _PYTORCH_SAC),
    "protocol.eval_episodes": Value(10, _PROTOCOL),
    "protocol.diagnose_every": Value(2_500, _OURS + ": figure 1 does not say how often"),
    "settings.actor_learning_rate": Value(1e-4, _PYTORCH_SAC),
    "settings.critic_learning_rate": Value(1e-4, _PYTORCH_SAC),
    "settings.temperature_learning_rate": Value(1e-4, _PYTORCH_SAC),
    "settings.initial_temperature": Value(0.1, _PYTORCH_SAC),
    "settings.tau": Value(0.005, _PYTORCH_SAC),
    "settings.target_every": Value(2, _PYTORCH_SAC),
    "settings.policy_every": Value(1, _PYTORCH_SAC),
    "settings.log_std_low": Value(-5.0, _PYTORCH_SAC),
    "settings.log_std_high": Value(2.0, _PYTORCH_SAC),
    "settings.log_std_by": Value("tanh", _PYTORCH_SAC),
    "settings.actor.hidden": Value((1_024, 1_024), _PYTORCH_SAC),
    "settings.actor.weight_init": Value("orthogonal", _PYTORCH_SAC),
    "settings.actor.bias_init": Value("zero", _PYTORCH_SAC),
    "settings.critic.hidden": Value((1_024, 1_024), _PYTORCH_SAC),
    "settings.critic.weight_init": Value("orthogonal", _PYTORCH_SAC),
    "settings.critic.bias_init": Value("zero", _PYTORCH_SAC),
}
"""SAC from state, the paper's yardstick. It quotes the scores from CURL's paper; the settings are pytorch_sac's."""

SMALL: Layer = {
    "steps": Value(Frames(100_000), "PEER, DMControl100k: 100k environment steps"),
    "learning.batch_size": Value(256, _OURS),
    "learning.start_steps": Value(2_500, _OURS),
    "protocol.eval_every": Value(Frames(EVALUATION_EVERY), _PYTORCH_SAC),
    "protocol.eval_episodes": Value(5, _OURS),
    "settings.actor.hidden": Value((256, 256), _OURS),
    "settings.critic.hidden": Value((256, 256), _OURS),
    "image_size": Value(64, _OURS),
    "render_quality": Value("draft", _OURS + ": for machines without a GPU"),
}
SMOKE: Layer = SMALL | {
    "steps": Value(2_000, _OURS),
    "learning.batch_size": Value(64, _OURS),
    "learning.start_steps": Value(500, _OURS),
    "protocol.eval_every": Value(1_000, _OURS),
    "protocol.eval_episodes": Value(1, _OURS),
    "protocol.diagnose_every": Value(250, _OURS),
    "protocol.log_every": Value(100, _OURS),
}
"""Profiles of the suite; what they say of pictures is left out for agents that see none."""
