"""Reports whether anything that is learned differs between two commits.

    python tools/compare_commits.py OLD NEW [--agents td3 sac ...] [--resume td3 ...] [--jobs 2]

Every agent trains a short run with the code of each commit: with PEER, and with beta 0. Logs, config and the final
checkpoint must be bit-identical, but for settings and values of the loop's state that NEW adds. For the agents of
``--resume``, a run of OLD is also killed halfway and continued by NEW; it must equal OLD's uninterrupted run. Exit
code: 0 if all is identical, 1 if not, 2 if the input is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NoReturn

_LOOP = "loop.safetensors"
FILES = ("config.toml", "metrics.jsonl", "eval.jsonl", "diagnostics.jsonl")
_OFTEN = "--eval-every 80 --eval-episodes 1 --diagnose-every 40 --log-every 20"
_SHORT = {
    "dqn": f"--task gym/CartPole-v1 --steps 400 --start-steps 150 {_OFTEN}",
    "td3 metd3 sac": f"--task pybullet/hopper --steps 240 --start-steps 120 {_OFTEN}",
    "redq": f"--task pybullet/hopper --steps 140 --start-steps 120 --updates 5 {_OFTEN}",
    "curl-sac drq-sac sac-ae drq-v2": f"--task dmc/cartpole-swingup --steps 160 --start-steps 80 {_OFTEN}",
    "rainbow curl-rainbow": f"--task atari/pong --steps 160 --start-steps 80 --target-every 30 {_OFTEN}",
    "drq-dqn": f"--task atari/pong --steps 160 --start-steps 80 {_OFTEN}",
    "td-mpc planet dreamer dreamer-v2": f"--task pybullet/hopper --steps 120 --start-steps 60 {_OFTEN}",
    "td-mpc-pixels planet-pixels dreamer-pixels dreamer-v2-pixels": (
        f"--task dmc/cartpole-swingup --steps 60 --start-steps 40 {_OFTEN}"
    ),
    "ppo trpo": "--task pybullet/hopper --steps 512 --batch-steps 256 --eval-every 256 --eval-episodes 1",
}
RUNS = {agent: options.split() for agents, options in _SHORT.items() for agent in agents.split()}
"""Options of each agent's short run: every observer fires and every target network changes."""
_COMMON = ["--seed", "1", "--profile", "smoke", "--max-episode-steps", "30", "--quiet"]


def refuse(message: str) -> NoReturn:
    """End with one sentence on what is wrong with the input."""
    print(f"compare_commits: {message}", file=sys.stderr)
    sys.exit(2)


def export(repository: Path, commit: str, folder: Path) -> Path:
    """The package's source as it was at a commit, in a new folder."""
    tar = folder.with_suffix(".tar")
    command = ["git", "-C", str(repository), "archive", "-o", str(tar), f"{commit}^{{commit}}", "src"]
    if subprocess.run(command, capture_output=True).returncode:
        refuse(f"{commit!r} is not a commit of {repository} that has a folder src; see: git log --oneline")
    shutil.unpack_archive(tar, folder, filter="data")
    return folder / "src"


def peer_rl(source: Path, *words: str) -> subprocess.Popen[str]:
    """Start the command line of an exported commit."""
    command, pipe = [sys.executable, "-m", "peer_rl", *words], subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.Popen(command, env=environment, cwd=source, text=True, stdout=pipe, stderr=pipe)


def variants_of(source: Path) -> dict[str, dict[str, list[str]]]:
    """The options of each agent's variants; its default beta is not given, so that a change of it is noticed."""
    listing, errors = peer_rl(source, "list", "agents").communicate()
    rows = re.findall(r"^  (\S+) .*(?:takes no beta|beta (\S+) by default)$", listing, re.MULTILINE)
    if not rows or len(rows) != len(re.findall(r"^  \S", listing, re.MULTILINE)):
        refuse(f"`peer-rl list agents` of OLD does not name agents and betas: {(errors or listing).strip()[-300:]!r}")
    zero, other = {"PEER": ["--beta", "0.0005"], "beta 0": []}, {"PEER": [], "beta 0": ["--beta", "0"]}
    return {name: {"no beta": []} if not beta else zero if beta == "0" else other for name, beta in rows}


def newest(runs: Path) -> Path:
    """The newest checkpoint of the one run below a folder; its name is its step, 0 if there is none."""
    found = [Path(parent, name) for parent, names, _ in os.walk(runs) for name in names if name.isdigit()]
    return max(found, key=lambda path: int(path.name), default=runs / "0")


def train(source: Path, words: list[str], runs: Path, *, halfway: bool = False) -> str:
    """Train or continue a run, or kill it at a checkpoint past half of its steps; returns why that failed."""
    steps, often = int(words[words.index("--steps") + 1]), ["--checkpoint-seconds", "0"] if halfway else []
    process = peer_rl(source, "train", *words, "--runs", str(runs), *often)
    while halfway and process.poll() is None and 2 * int(newest(runs).name) < steps:
        time.sleep(0.005)
    if halfway:
        process.kill()
    reason = (process.communicate()[1].strip().splitlines() or [f"exit code {process.returncode}"])[-1]
    good = 0 < int(newest(runs).name) < steps if halfway else process.returncode == 0
    return "" if good else f"{source.parent.name} failed: {reason}"


def difference(one: Path, two: Path) -> str:
    """The files of two runs that differ and the first difference; empty if there is none."""
    contents: list[dict[str, bytes]] = []
    for runs in (one, two):
        run = next(runs.rglob("config.toml")).parent
        paths = [*(run / name for name in FILES), *sorted(newest(runs).glob("*.safetensors"))]
        contents.append({path.name: path.read_bytes() for path in paths if path.exists()})
    configs = [tomllib.loads(files["config.toml"].decode()) for files in contents]
    if without_additions(*configs) == configs[0]:
        contents[1]["config.toml"] = contents[0]["config.toml"]
    if all(_LOOP in files for files in contents):
        before, after = (loop_state(files[_LOOP]) for files in contents)
        if {path: after.get(path) for path in before} == before:
            contents[1][_LOOP] = contents[0][_LOOP]
    names = [name for name in contents[0] | contents[1] if contents[0].get(name) != contents[1].get(name)]
    if not names:
        return ""
    old, new = (files.get(names[0], b"") for files in contents)
    at = next((place for place, (a, b) in enumerate(zip_longest(old, new)) if a != b), 0)
    if names[0] not in FILES:
        return f"{', '.join(names)} differ from byte {at}"
    begin, line = max(old.rfind(b"\n", 0, at) + 1, at - 40), old.count(b"\n", 0, at) + 1
    was, became = (text[begin : at + 30].decode(errors="replace") for text in (old, new))
    return f"{', '.join(names)} differ; {names[0]} line {line}: {was!r} became {became!r}"


def loop_state(content: bytes) -> dict[str, Any]:
    """The values and arrays of a checkpoint's loop.safetensors by their path."""
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    values = {json.dumps(path): value for path, value in json.loads(header.pop("__metadata__")["values"])}
    for path, array in header.items():
        first, last = array["data_offsets"]
        values[path] = (array["dtype"], array["shape"], content[begin + first : begin + last])
    return values


def without_additions(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """NEW's settings as far as OLD has them: an added setting has a default that changes nothing."""
    return {
        name: without_additions(value, new[name]) if isinstance(value, dict) else new[name]
        for name, value in old.items()
        if name in new
    }


def compare(old: Path, new: Path, words: list[str], runs: Path, resume: bool) -> list[str]:
    """What differs between the runs of two commits and, with ``resume``, between OLD's and one that NEW continues."""
    failure = train(old, words, runs / "OLD") or train(new, words, runs / "NEW")
    verdicts = [failure or difference(runs / "OLD", runs / "NEW")]
    if resume:
        failure = train(old, words, runs / "both", halfway=True) or train(new, words, runs / "both")
        verdicts.append(failure or difference(runs / "OLD", runs / "both"))
    return verdicts


def main() -> int:
    """Export, train, compare, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("commits", nargs=2, metavar=("OLD", "NEW"))
    parser.add_argument("--agents", nargs="+", help="default: all agents of OLD")
    parser.add_argument("--resume", nargs="*", default=["td3", "curl-sac", "rainbow"], help="of these agents")
    parser.add_argument("--jobs", type=int, choices=range(1, 65), default=1, metavar="N", help="runs at a time")
    parser.add_argument("--repository", type=Path, default=Path(__file__).parents[1], help="default: this one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as pool:
        exports = zip(options.commits, (Path(scratch, "OLD"), Path(scratch, "NEW")), strict=True)
        old, new = (export(options.repository, commit, folder) for commit, folder in exports)
        known, verdicts = variants_of(old), {}
        agents = options.agents or list(known)
        if unknown := [name for name in (*agents, *options.resume) if name not in known or name not in RUNS]:
            refuse(
                f"no short run of {', '.join(unknown)} in OLD; there are: {', '.join(n for n in known if n in RUNS)}"
            )
        cases = [(name, variant) for name in agents for variant in known[name]]
        words = [[name, *RUNS[name], *known[name][variant], *_COMMON] for name, variant in cases]
        folders = [Path(scratch, *case) for case in cases]
        resume = [name in options.resume and variant != "beta 0" for name, variant in cases]
        results = pool.map(partial(compare, old, new), words, folders, resume)
        for (name, variant), result in zip(cases, results, strict=True):
            for column, verdict in zip((variant, "resumed"), result, strict=False):
                print(f"{name:<12} {column:<8} {verdict or 'identical'}", flush=True)
                verdicts[name, column] = verdict or "identical"
    columns = [one for one in ("PEER", "beta 0", "no beta", "resumed") if one in {column for _, column in verdicts}]
    print("", f"{'agent':<12} " + " ".join(f"{column:<9}" for column in columns), sep="\n")
    for name in agents:
        cells = (verdicts.get((name, column), "-") for column in columns)
        print(f"{name:<12} " + " ".join(f"{'DIFFERS' if ' ' in cell else cell:<9}" for cell in cells))
    return int(set(verdicts.values()) != {"identical"})


if __name__ == "__main__":
    sys.exit(main())
