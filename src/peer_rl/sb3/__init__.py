"""Everything about Stable-Baselines3.

`algorithms`: its off-policy agents with a beta, added to their updates by `hooks`; `callback`: diagnostics in its logs.
`script` trains a user's model for ``peer-rl compare``, with `layer_norm` as a control; `rollout` plays episodes for
``peer-rl xray``. `on_policy` and `trainer` run its PPO and TRPO as agents of peer-rl.
"""
