"""Everything about Stable-Baselines3.

`algorithms`: its off-policy agents with a beta; `hooks`: how the regularizer joins their loss; `callback`: the
representation in its logs; `on_policy`, `trainer`: its PPO and TRPO as agents of peer-rl.
"""
