"""The animation of what PEER does to features in the grid world: docs/figures/features.gif.

    python tools/animate_features.py collect    trains DQN with beta 0, 5e-4 and 1e-2; writes results/features.json
    python tools/animate_features.py draw       makes the GIF of that file

phi(s) of the online network and phi'(s) of its target, of every state but S_T, on the two principal components of all
that are drawn in one panel; one seed, so a picture and not evidence (docs/gridworld.md has that).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from peer_rl.envs.gridworld import COLUMNS, GOAL, STATES
from peer_rl.settings import configure
from peer_rl.training.loop import Trainer
from peer_rl.training.process import processor
from peer_rl.training.rundir import RunDirectory

ROOT = Path(__file__).parents[1]
DATA = ROOT / "results" / "features.json"
GIF = ROOT / "docs" / "figures" / "features.gif"
BETAS = (0.0, 5e-4, 1e-2)
COLOURS = ("#0072B2", "#D55E00", "#009E73")
SEED, STEPS, FRAMES = 6, 10_000, 40
SMOOTHING = 50
LEFT = np.array([state for state in range(GOAL - 1) if (state + 1) % COLUMNS])
"""States whose right neighbour is a state with features, too."""


class Recorder(Trainer):
    """Keeps every state's features at evenly spaced steps, at the end of the episode that reaches them."""

    def record(self) -> None:
        """What both networks make of the states now."""
        states = torch.as_tensor(self.spec.encode(np.arange(STATES - 1)))
        agent: Any = self.agent
        with torch.no_grad():
            phi, target = (network(states).phi.double().numpy() for network in (agent.critic, agent.target))
        self.frames.append({"step": self.step, "phi": phi, "target": target})

    def play_episode(self) -> None:
        """One episode, and a frame if one is due."""
        before = self.step
        super().play_episode()
        self.lengths.append([self.step, self.step - before])
        if self.step * FRAMES // STEPS >= len(self.frames):
            self.record()


def collect() -> None:
    """Train one run for each beta and keep what the pictures need."""
    about = {"seed": SEED, "steps": STEPS, "task": "gridworld/paper"}
    found: dict[str, Any] = {}
    for beta in BETAS:
        options = {"eval_every": 0, "diagnose_every": 10**9}
        config = configure("dqn", "gridworld/paper", beta=beta, seed=SEED, steps=STEPS, device="cpu", **options)
        with tempfile.TemporaryDirectory() as folder, processor(1):
            run = RunDirectory(Path(folder) / "run", config)
            trainer = Recorder(config, run, checkpoint_seconds=1e9)
            trainer.frames, trainer.lengths = [], []
            with run, trainer:
                trainer.train()
        found[f"{beta:g}"] = {"frames": _project(trainer.frames), "lengths": trainer.lengths}
        DATA.write_text(json.dumps({**about, "encoding": config.encoding, "runs": found}) + "\n")
        print(f"beta {beta:g}: {len(trainer.frames)} frames, {len(trainer.lengths)} episodes")


def _project(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Both networks' features on the first two principal components of all of a run's frames."""
    rows = np.concatenate([frame[name] for frame in frames for name in ("phi", "target")])
    centre = rows.mean(axis=0)
    _, sigma, directions = np.linalg.svd(rows - centre, full_matrices=False)
    share = float(np.square(sigma[:2]).sum() / np.square(sigma).sum())
    projected = []
    for frame in frames:
        points = {name: ((frame[name] - centre) @ directions[:2].T).round(4).tolist() for name in ("phi", "target")}
        phi, target = frame["phi"][LEFT], frame["target"][LEFT + 1]
        norms = np.linalg.norm(phi, axis=1) * np.linalg.norm(target, axis=1)
        cosine = float(((phi * target).sum(1)[norms > 0] / norms[norms > 0]).mean())  # a dead phi has no direction
        projected.append({"step": frame["step"], "cosine": round(cosine, 4), "share": round(share, 3), **points})
    return projected


def draw() -> None:
    """The GIF: a panel for each beta, and the learning curves up to the moment shown."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.animation import FuncAnimation, PillowWriter

    runs = json.loads(DATA.read_text())["runs"]
    figure, axes = plt.subplots(1, len(runs) + 1, figsize=(11.2, 3.1), layout="constrained")
    count = min(len(run["frames"]) for run in runs.values())

    def frame(index: int) -> None:
        for panel, (beta, run) in zip(axes, runs.items(), strict=False):
            _draw_features(panel, beta, run["frames"], index)
        _draw_lengths(axes[-1], runs, index)

    hold = [count - 1] * 12
    movie = FuncAnimation(figure, frame, frames=[*range(count), *hold])
    GIF.parent.mkdir(exist_ok=True)
    movie.save(GIF, writer=PillowWriter(fps=8), dpi=80)
    print(f"{GIF}: {GIF.stat().st_size / 1e6:.2f} MB")


def _draw_features(panel: Any, beta: str, frames: list[dict[str, Any]], index: int) -> None:
    every = np.concatenate([np.array(frame[name]) for frame in frames for name in ("phi", "target")])
    low, high = every.min(axis=0), every.max(axis=0)
    margin = 0.06 * (high - low) + 1e-6
    shown = frames[index]
    phi, target = np.array(shown["phi"]), np.array(shown["target"])
    states = np.arange(GOAL)
    panel.clear()
    panel.plot(phi[:, 0], phi[:, 1], color="#999999", linewidth=0.8, zorder=1)
    panel.scatter(target[:, 0], target[:, 1], c=states, cmap="viridis", marker="x", s=22, linewidths=1, zorder=2)
    panel.scatter(phi[:, 0], phi[:, 1], c=states, cmap="viridis", s=26, zorder=3)
    panel.set(xlim=(low[0] - margin[0], high[0] + margin[0]), ylim=(low[1] - margin[1], high[1] + margin[1]))
    panel.set(xticks=[], yticks=[])
    name = "without PEER" if beta == "0" else f"PEER, beta = {beta}"
    panel.set_title(f"{name}\ncosine of neighbours {shown['cosine']:.3f}", fontsize=9)
    panel.set_xlabel(f"{100 * shown['share']:.0f} % of the variance", fontsize=8)


def _draw_lengths(panel: Any, runs: dict[str, Any], index: int) -> None:
    panel.clear()
    for colour, (beta, run) in zip(COLOURS, runs.items(), strict=True):
        until = run["frames"][index]["step"]
        rows = np.array([row for row in run["lengths"] if row[0] <= until])
        means = [rows[max(0, end - SMOOTHING) : end, 1].mean() for end in range(1, len(rows) + 1)]
        panel.plot(rows[:, 0], means, color=colour, label="without" if beta == "0" else f"beta = {beta}")
    panel.set(xlim=(0, STEPS), ylim=(0, 105))
    panel.set_title("steps to reach S_T", fontsize=9)
    panel.set_xlabel("agent steps", fontsize=8)
    panel.tick_params(labelsize=7)
    panel.legend(fontsize=7, loc="lower left")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("collect", "draw"))
    {"collect": collect, "draw": draw}[parser.parse_args().what]()
