"""Starting runs: one from Python (`api`), many from a sweep or a search, on this machine or on Ray.

`sweep` and `search` make `jobs`; `engines` runs them, by `pool` (local) or `ray_engine`, each in a `child` process;
`measure`, `needs` and `outlook` estimate time and memory; `progress` and `board` show how far they are.
"""
