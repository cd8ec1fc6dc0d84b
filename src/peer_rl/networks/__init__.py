"""Networks, and what changes their weights and inputs.

`mlp` has layers, the deterministic actor and ensembles of critics; `gaussian` SAC's actor.
`encoders`, `latent` and `decoder` are for frames; `contrastive` is CURL's loss.
`action_values` is DQN's network, `distributional` (on `noisy` layers) Rainbow's, `latent_model` TD-MPC's;
`world_model`, on an `rssm`, and its `policies` are PlaNet's and Dreamer's.
`augment` shifts and crops frames; `optimizer` has Adam and the soft update of target networks.
"""
