"""``peer-rl watch RUN``: record a video of a run's policy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import Positional

from peer_rl.cli.options import parse
from peer_rl.settings.fields import NotNegative, Positive, check

if TYPE_CHECKING:
    from peer_rl.launch.api import Policy
    from peer_rl.training.evaluate import Evaluation


@dataclass(frozen=True)
class WatchOptions:
    """Record a video of the policy in a run's newest checkpoint; needs no screen.

    It shows the episodes that peer-rl eval plays with the same seed.
    """

    run: Positional[Path]
    """The run directory."""
    episodes: Positive[int] = 1
    """Episodes to record, one after the other in one video."""
    seed: NotNegative[int] = 0
    """Seed of the episodes."""
    out: Path | None = None
    """The video; RUN/videos/step-N.mp4, or imagine-step-N.mp4, if not given."""
    imagine: bool = False
    """Record a world model instead of the scene: real frames, below them the model's reconstruction, and at the bottom
    its open-loop prediction from 5 frames of context. Also writes some steps as a PNG, which reports show."""
    fps: Positive[float] | None = None
    """Frames per second; the environment's own if not given."""
    max_steps: Positive[int] | None = None
    """Steps after which an episode is cut short."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""


def main(arguments: list[str]) -> int:
    """Record, and say where the video is."""
    options = parse(WatchOptions, arguments, prog="peer-rl watch")
    check(options)
    from rich.console import Console

    from peer_rl.launch.api import load
    from peer_rl.training.video import check_installed

    check_installed()
    policy = load(options.run, options.device)
    out = options.out or options.run / "videos" / f"{'imagine-' * options.imagine}step-{policy.step}.mp4"
    console = Console(file=sys.stderr)
    label = f"recording {policy.config.agent} on {policy.config.task}"
    if not console.is_terminal:
        print(f"{label} ...", file=sys.stderr, flush=True)
    with console.status(label) as status:
        show = lambda episode, step: status.update(f"{label}: episode {episode + 1}, step {step}")  # noqa: E731
        result = _record(policy, options, out, show)
    for index, (total, length) in enumerate(zip(result.returns, result.lengths, strict=True)):
        print(f"episode {index + 1}: return {total:.2f}, length {length} steps")
    print(f"video: {out}")
    if options.imagine:
        print(f"picture: {out.with_suffix('.png')}")
    return 0


def _record(policy: Policy, options: WatchOptions, out: Path, show: Callable[[int, int], None]) -> Evaluation:
    """The scene as the environment renders it, or the world model's predictions of the same episodes."""
    from peer_rl.training.imagined import record_imagination, world_model_of
    from peer_rl.training.video import record

    wanted: dict[str, Any] = {"seeds": policy.episode_seeds(options.episodes, options.seed), "out": out, "show": show}
    wanted |= {"fps": options.fps, "max_steps": options.max_steps}
    if options.imagine:
        world_model_of(policy.agent, policy.config.agent)  # before an environment is made
    with closing(policy.make_env(render_mode=None if options.imagine else "rgb_array")) as env:
        if options.imagine:
            return record_imagination(policy.agent, env, policy.spec, run_seed=policy.config.seed, **wanted)
        return record(env, lambda observation, first: policy.act(observation, first=first), **wanted)
