"""``peer-rl list``: the available agents, tasks and experiments."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from peer_rl.cli.options import parse
from peer_rl.packages import from_extra
from peer_rl.paper import EXPERIMENTS
from peer_rl.settings import AGENTS, AgentEntry
from peer_rl.settings.tasks import SUITES, TASKS


@dataclass(frozen=True)
class ListOptions:
    """List the available agents, tasks and experiments."""

    what: Positional[Literal["all", "agents", "tasks", "experiments"]] = "all"
    """What to list."""
    pictures: Path | None = None
    """Draw one frame of every task of the paper's suites into this folder, as PNG, SVG and a page."""


def main(arguments: list[str]) -> int:
    """Print the tables."""
    options = parse(ListOptions, arguments, prog="peer-rl list")
    if options.pictures:
        return _draw(options.pictures)
    what = options.what
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


def _draw(out: Path) -> int:
    with from_extra("report", "--pictures"):
        from peer_rl.paper.suite_pictures import write_pictures

        print(write_pictures(out, lambda line: print(f"peer-rl: {line}", file=sys.stderr, flush=True)))
    return 0


def _about(entry: AgentEntry) -> str:
    beta = f"beta {entry.beta:g} by default" if entry.td_target else "takes no beta"
    return f"{entry.about}; {entry.actions.replace('either', 'any')} actions, {beta}"
