"""Starting runs: one from Python (`api`), many from a sweep or a search, on this machine or on Ray.

`sweep`, `search` and `compare` make `jobs`; an `engine`, which is `local_engine` or `ray_engine`, runs each in a
`child` process.
`estimate` and `cost` say how much time and memory a run will take, `progress` how far it is.
`export` writes a run's policy as a file; `random_batches` are noise to time updates with.
"""
