"""One run: the loop, and what watches it without changing it.

`loop` plays and learns; `recorder` evaluates, logs and reports for every loop (`evaluate`, `loggers`, `video`), and
`observers` adds the metrics and diagnostics of ours (`metrics`, `representation`, `gridworld_probe`). `rundir` and
`checkpoint` keep the run on disk (`files`, `trees`), `extend` gives it a larger budget; `process` sets up the process,
`stopping` ends it in order. `script_loader` and `script_run` are for a user's own agent, `imagined` for world models.
"""
