"""Steps per second of whole loops, in turns, so that drifts in the machine's speed affect all alike."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from typing import Any

from peer_rl.bench.contenders import Contender, installed

Row = dict[str, Any]


def race(agent: str, cores: list[int], *, turn_steps: int, rounds: int, report: Callable[[str], None]) -> list[Row]:
    """Every installed library's loop, one after another, ``rounds`` times."""
    contenders = [Contender(library, agent, cores, turn_steps) for library in installed(agent)]
    seconds: list[list[float]] = [[] for _ in contenders]
    try:
        for contender in contenders:
            report(f"{agent} on {len(cores)} core(s): warming up {contender.library}")
            contender.seconds()  # the first turn: caches, compilation
        for _ in range(rounds):
            for contender, taken in zip(contenders, seconds, strict=True):
                report(f"{agent} on {len(cores)} core(s): {contender.library}")
                contender.go()
                taken.append(contender.seconds())
    finally:
        for contender in contenders:
            contender.stop()
    ours = seconds[0]
    return [
        {
            "agent": agent,
            "cores": len(cores),
            "library": contender.library,
            "steps_per_second": turn_steps / statistics.median(taken),
            "ours_is_quicker_by": statistics.median(theirs / mine for theirs, mine in zip(taken, ours, strict=True)),
        }
        for contender, taken in zip(contenders, seconds, strict=True)
    ]


def side_by_side(agent: str, cores: list[int], *, turn_steps: int, rounds: int, report: Callable[[str], None]) -> Row:
    """Two of our runs in parallel, a core each, compared with one alone."""
    report(f"{agent}: two runs side by side")
    pair = [Contender("peer-rl", agent, [core], turn_steps) for core in cores[:2]]
    alone, together = [], []
    try:
        for contender in pair:
            contender.seconds()
        for _ in range(rounds):
            pair[0].go()
            alone.append(pair[0].seconds())
            for contender in pair:
                contender.go()
            together.append(max(contender.seconds() for contender in pair))
    finally:
        for contender in pair:
            contender.stop()
    gain = statistics.median(2 * one / two for one, two in zip(alone, together, strict=True))
    return {
        "agent": agent,
        "one_run_steps_per_second": turn_steps / statistics.median(alone),
        "two_runs_steps_per_second": 2 * turn_steps / statistics.median(together),
        "gain": gain,
    }


def usable_cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0))
