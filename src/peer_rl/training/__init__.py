"""One run: the loop, and what watches it without changing it.

`loop` plays and learns; `observers` evaluates, diagnoses and logs (`evaluate`, `representation`, `metrics`, `loggers`,
`video`); `rundir` and `checkpoint` keep the run on disk (`files`, `trees`); `memory`, `processor` set up the process.
"""
