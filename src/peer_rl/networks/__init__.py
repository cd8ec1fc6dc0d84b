"""Networks, and what acts on their weights and inputs.

`mlp`, `encoders`, `noisy` are the layers; `critics`, `actors`, `latent`, `distributional`, `decoder` put them together;
`augment` shifts and crops frames; `optimizer` and `target` change weights.
"""
