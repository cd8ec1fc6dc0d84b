"""Environments as the loop sees them.

`make` turns a task of ``settings.tasks`` into an environment; `spec` describes its observations and actions to agents
and replay; `simulators` knows each simulator's quirks; `atari`, `dmc`, `gridworld` hold what a suite needs; `pixels`
stacks frames; `headless` finds an OpenGL that draws without a screen.
"""
