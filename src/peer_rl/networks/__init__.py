"""Networks, and what changes their weights and inputs.

`mlp` has the layers, actors and critics from state; `encoders`, `latent` and `decoder` those from frames.
`action_values` is DQN's network, `distributional` (on `noisy` layers) Rainbow's.
`augment` shifts and crops frames; `optimizer` has Adam and the soft update of target networks.
"""
