"""How long people wait before anything happens: ``peer-rl --help``, and ``import peer_rl`` on top of ``import torch``.

Run: .venv/bin/python benchmarks/startup.py
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

REPEATS = 9


def seconds(*arguments: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    uses = "import torch; from peer_rl import PEER, peer_loss, drd, diagnose, RepresentationTap, check_critic"
    commands = {
        "peer-rl --help": ["-m", "peer_rl", "--help"],
        "peer-rl train dqn --help": ["-m", "peer_rl", "train", "dqn", "--help"],
        "import torch": ["-c", "import torch"],
        "import torch, peer_rl": ["-c", "import torch, peer_rl"],
        "import torch and the whole plug-in": ["-c", uses],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(REPEATS):  # interleaved, since the machine's speed drifts
        for name, arguments in commands.items():
            times[name].append(seconds(*arguments))
    medians = {name: statistics.median(values) for name, values in times.items()}
    for extra in ("import torch, peer_rl", "import torch and the whole plug-in"):
        paired = [a - b for a, b in zip(times[extra], times["import torch"], strict=True)]
        medians[f"added by: {extra}"] = statistics.median(paired)
    for name, value in medians.items():
        print(f"{name:<50} {value:7.3f} s")
    out = Path(__file__).parent / "results" / "startup.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps({"repeats": REPEATS, "median_seconds": medians}, indent=1) + "\n")


if __name__ == "__main__":
    main()
