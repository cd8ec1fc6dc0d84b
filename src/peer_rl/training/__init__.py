"""One run: the loop, and what watches it without changing it.

`loop` plays and learns; `recorder` evaluates, logs and reports for every loop (`evaluate`, `loggers`, `video`), and
`observers` adds the metrics and diagnostics of ours (`metrics`, `representation`). `rundir` and `checkpoint` keep the
run on disk (`files`, `trees`); `process` sets up the process.
"""
