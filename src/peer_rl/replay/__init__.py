"""Replay: a store keeps transitions, a sampler chooses among them, and `Replay` combines the two.

`store` has the ring of rows, n-step windows over it, `Batch`, and the store of vectors; `frames` the store of frames;
`sequences` both stores again, with windows of consecutive steps.
`replay` has `Replay` and the uniform sampler; `priority`, over a `sumtree`, the prioritised one.
`make` builds what the settings ask for, and checks with `memory` that the machine can hold it.
"""
