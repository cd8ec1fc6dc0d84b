"""Environments: a table of tasks that imports nothing, and what makes them, loaded on demand."""
