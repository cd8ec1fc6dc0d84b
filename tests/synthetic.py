"""Run directories written by hand: reports read nothing else, so no training is needed to test them."""

import json
from pathlib import Path

import tomli_w

from peer_rl.settings import as_dict, configure
from peer_rl.training.rundir import SCHEMA, run_path


def nested(flat: dict[str, object]) -> dict[str, object]:
    tree: dict[str, object] = {}
    for path, value in flat.items():
        *parents, name = path.split(".")
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[name] = value
    return tree


def write_lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_run(
    runs: Path,
    *,
    task: str = "gridworld/paper",
    seed: int = 0,
    beta: float = 0.0,
    cosine: float = 0.99,
    difference: float = 0.1,
    length: int = 10,
    returns: tuple[float, ...] = (0.0, 10.0),
    final: tuple[list[float], list[int]] | None = None,
    episodes: int = 8,
    state: str = "finished",
    schema: int = SCHEMA,
    hours: float = 0.0,
    agent: str = "dqn",
    **given: object,
) -> Path:
    """One finished run whose every number is known."""
    config = configure(agent, task, seed=seed, beta=beta, **given)
    path = run_path(config, runs)
    path.mkdir(parents=True)
    (path / "config.toml").write_text(tomli_w.dumps(nested(as_dict(config))))
    command = ["peer-rl", "train", agent, "--task", task, "--seed", str(seed)]
    (path / "manifest.json").write_text(json.dumps({"schema": schema, "command": command}))
    steps = episodes * length
    status = {"state": state, "step": steps, "frame": steps, "episode": episodes}
    (path / "status.json").write_text(json.dumps(status))

    def at(episode: int) -> dict[str, object]:
        return {"step": episode * length, "frame": episode * length, "episode": episode}

    rows = [{**at(index), "return": 10.0, "length": length} for index in range(1, episodes + 1)]
    write_lines(path / "metrics.jsonl", [*rows, {**at(episodes), "updates": 5, "td_loss": None}])
    evaluations = [
        {**at(index), "mean": mean, "returns": [mean], "lengths": [7], "seeds": [1]}
        for index, mean in enumerate(returns, start=1)
    ]
    if final:
        played, lengths = final
        mean = sum(played[: config.protocol.final_episodes]) / config.protocol.final_episodes
        row = {"mean": mean, "returns": played, "lengths": lengths, "seeds": [1] * len(played), "final": True}
        evaluations.append({**at(episodes), **row})
    write_lines(path / "eval.jsonl", evaluations)
    probes = {"probe_cosine": cosine, "probe_q_difference": difference, "probe_max_q": [9.0] * 18 + [10.0]}
    measured = {"cosine": cosine, "drd": None, "feature_norm": 2.0, "effective_rank": 3}
    shown = [at(1) | measured | probes | {"probe_cosine": 0.5}, at(episodes) | measured | probes]
    write_lines(path / "diagnostics.jsonl", shown)
    if hours:
        seconds = 3600 * hours
        write_lines(path / "timing.jsonl", [at(episodes) | {"seconds": seconds, "steps_per_second": steps / seconds}])
    return path
