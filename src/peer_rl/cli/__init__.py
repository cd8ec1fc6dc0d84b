"""``peer-rl``: one module per command, none of which imports torch before it has to.

`main` chooses the command; `options` holds what several commands share; `child` is ``peer-rl`` inside a process pool.
"""
