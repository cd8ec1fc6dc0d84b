"""``peer-rl list``: the agents, tasks and experiments there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tyro.conf import Positional

from peer_rl.cli.options import parse
from peer_rl.paper import EXPERIMENTS
from peer_rl.settings import AGENTS, AgentEntry
from peer_rl.settings.tasks import SUITES, TASKS


@dataclass(frozen=True)
class ListOptions:
    """Show what there is."""

    what: Positional[Literal["all", "agents", "tasks", "experiments"]] = "all"
    """What to show."""


def main(arguments: list[str]) -> int:
    """Print the tables."""
    what = parse(ListOptions, arguments, prog="peer-rl list").what
    agents = [(name, _about(entry)) for name, entry in AGENTS.items()]
    tasks = [(task.name, task.summary) for task in TASKS.values()]
    tasks += [("gym/ANY-ID", SUITES["gym"]), ("module:factory", SUITES["custom"])]
    tables = {"agents": agents, "tasks": tasks, "experiments": list(EXPERIMENTS.items())}
    for title, rows in tables.items():
        if what in ("all", title):
            print(f"{title}:")
            width = max(len(name) for name, _ in rows)
            for name, about in rows:
                print(f"  {name:<{width}}  {about}")
    return 0


def _about(entry: AgentEntry) -> str:
    beta = f"beta {entry.beta:g} by default" if entry.td_target else "takes no beta"
    return f"{entry.about}; {entry.actions.replace('either', 'any')} actions, {beta}"
