"""``peer-rl bench``: steps per second, ours and other libraries', PEER's cost, updates' bounds, replay, rendering."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, get_args

from peer_rl.cli.options import parse
from peer_rl.errors import ConfigError, PeerError
from peer_rl.settings.fields import Positive, check

_PACKAGES = ("peer-rl", "torch", "numpy", "gymnasium", "mujoco", "dm-control", "stable-baselines3", "sbx-rl", "jax")
Measured = Literal["td3", "sac", "curl-rainbow", "drq-dqn", "curl-sac", "drq-sac", "sac-ae", "drq-v2", "td-mpc"]


@dataclass(frozen=True)
class BenchOptions:
    """Measure speed on this machine. Leave the machine idle meanwhile: other load adds noise."""

    agents: tuple[Measured, ...] = get_args(Measured)
    """Agents to measure; those that see DMControl's frames in the small profile, one update and no whole loop."""
    rounds: Positive[int] = 7
    """Turns of each contender."""
    turn_steps: Positive[int] = 200
    """Agent steps of one turn, an update each."""
    update_rounds: Positive[int] = 600
    """Timed pairs of updates, for PEER's cost and the products' share; a tenth of it from DMControl's frames, and
    a fortieth for td-mpc, which has its published size."""
    out: Path = Path("bench.json")
    """Where the figures go."""


def main(arguments: list[str]) -> int:
    """Measure, write, and show."""
    options = parse(BenchOptions, arguments, prog="peer-rl bench")
    check(options)
    if not options.agents:
        raise ConfigError("name an agent to measure: --agents td3 sac")
    if platform.system() != "Linux":
        raise PeerError("peer-rl bench fixes the cores of its processes, which only works on Linux")
    from rich.console import Console

    try:
        options.out.touch()  # now, not after minutes of measuring
    except OSError as error:
        raise PeerError(f"cannot write {options.out} ({error.strerror}); choose another place with --out") from error
    found = measure_all(options, Console(stderr=True))
    options.out.write_text(json.dumps(found, indent=2) + "\n")
    show(found)
    print(options.out)
    return 0


def measure_all(options: BenchOptions, console: Any) -> dict[str, Any]:
    """Everything, with a spinner that says what is being measured."""
    from peer_rl.bench.contenders import TASKS
    from peer_rl.bench.loops import race, side_by_side, usable_cores
    from peer_rl.bench.passes import AGENTS as PASSES
    from peer_rl.bench.passes import measure_passes
    from peer_rl.bench.pixel_updates import NETWORKS, measure_pixels
    from peer_rl.bench.planning import AGENTS as PLANNING
    from peer_rl.bench.planning import measure_planning
    from peer_rl.bench.renderers import measure_renderers
    from peer_rl.bench.replays import CASES, measure_replay
    from peer_rl.bench.updates import measure

    cores = usable_cores()
    loops, updates, pairs, replays = [], [], [], []
    turns = {"turn_steps": options.turn_steps, "rounds": options.rounds}
    with console.status("peer-rl bench") as status:
        for agent in options.agents:
            status.update(f"{agent}: one update")
            if agent in PASSES:
                updates.append(measure_passes(agent, rounds=max(2, options.update_rounds // 10)))
            elif agent in PLANNING:
                updates.append(measure_planning(agent, rounds=max(2, options.update_rounds // 40)))
            else:
                measure_update = measure_pixels if agent in NETWORKS else measure
                updates.append(measure_update(agent, rounds=options.update_rounds))
            if agent in CASES:
                status.update(f"{agent}: filling a replay")
                replays.append(measure_replay(agent, options.update_rounds))
            if agent not in TASKS:
                continue
            for count in (1, 2):
                if len(cores) >= count:
                    loops += race(agent, cores[:count], report=status.update, **turns)
            if len(cores) >= 2:
                pairs.append(side_by_side(agent, cores, report=status.update, **turns))
        frames = any(agent in PASSES for agent in options.agents)
        rendering = measure_renderers(options.turn_steps, report=status.update) if frames else []
    return {
        "machine": _machine(len(cores)),
        "options": {**turns, "update_rounds": options.update_rounds},
        "loops": loops,
        "updates": updates,
        "side_by_side": pairs,
        "replays": replays,
        "rendering": rendering,
    }


def _machine(cores: int) -> dict[str, Any]:
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {"processor": platform.processor() or platform.machine(), "cores": cores, "versions": versions}


def show(found: dict[str, Any]) -> None:
    """The figures as tables."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    title = "whole loop: half-cheetah, or Road Runner from pixels"
    loops = Table("agent", "cores", "library", "steps/s", "speed-up of ours", title=title)
    for row in found["loops"]:
        times = "" if row["library"] == "peer-rl" else f"{row['ours_is_quicker_by']:.2f} x"
        loops.add_row(row["agent"], str(row["cores"]), row["library"], f"{row['steps_per_second']:.0f}", times)
    updates = Table("agent", "update", "PEER adds", "noise", "of what it cannot avoid", title="one update, one thread")
    for row in found["updates"]:
        cells = (row["agent"], f"{row['update_ms']:.2f} ms", _percent(row["peer_adds"]), _percent(row["noise"]))
        updates.add_row(*cells, _unavoidable(row))
    replays = Table("agent", "replay", "memory, measured", "formula", "a draw", title="replay, full, one thread")
    for row in found["replays"]:
        memory = (f"{row[f'gigabytes_{name}']:.3f} GB" for name in ("measured", "formula"))
        replays.add_row(row["agent"], row["what"], *memory, f"{row['ms_median']:.2f} ms")
    title = "DMControl from pixels, one core, nothing learned"
    rendering = Table("task", "renderer", "size", "quality", "agent steps/s", title=title)
    for row in found["rendering"]:
        cells = (row["task"], row["renderer"], str(row["size"]), row["quality"])
        rendering.add_row(*cells, f"{row['pictures_per_second']:.0f}")
    for table in (loops, updates, replays, rendering):
        if table.row_count:
            console.print(table)
    for row in found["side_by_side"]:
        one, two = row["one_run_steps_per_second"], row["two_runs_steps_per_second"]
        console.print(f"{row['agent']}: two runs side by side {two:.0f} steps/s, one {one:.0f}: {row['gain']:.2f} x")
    for package in ("stable-baselines3", "sbx-rl"):
        if found["machine"]["versions"][package] == "not installed":
            console.print(f"{package} is not installed, so it is not in the table")


def _unavoidable(row: dict[str, Any]) -> str:
    """An update compared with its matrix products, one pass of the bare network, or all passes that it needs."""
    if "plan_ms" in row:
        share, plan = row["unavoidable_share"], row["plan_unavoidable_share"]
        return (
            f"matrix products are {share:.0%} ({row['unavoidable_ms']:.0f} ms); a plan takes {row['plan_ms']:.0f} ms, "
            f"{plan:.0%} of it products"
        )
    if "unavoidable_ms" in row:
        return f"forward and backward passes are {row['unavoidable_share']:.0%} ({row['unavoidable_ms']:.1f} ms)"
    if "passes" in row:
        return f"{row['passes']:.2f} forward-and-backward passes of the bare network ({row['pass_ms']:.2f} ms each)"
    share = row.get("products_share")
    return f"matrix products are {share:.0%} ({row['products_ms']:.2f} ms)" if share else ""


def _percent(ratio: dict[str, float]) -> str:
    return f"{ratio['median']:+.1%} [{ratio['low']:+.1%}, {ratio['high']:+.1%}]"
