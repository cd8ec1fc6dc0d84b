"""``peer-rl export RUN --onnx``: write a run's policy for use without peer-rl."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from peer_rl.cli.options import parse
from peer_rl.errors import ConfigError


@dataclass(frozen=True)
class ExportOptions:
    """Write the policy in a run's newest checkpoint as a file that needs no peer-rl.

    It maps a batch of observations, as the task's environment returns them, to the actions that peer-rl eval takes.
    """

    run: Positional[Path]
    """The run directory."""
    onnx: bool = False
    """Write ONNX, for onnxruntime and others."""
    torchscript: bool = False
    """Write TorchScript, for torch.jit.load in Python and C++."""
    out: Path | None = None
    """The file; RUN/export/policy.onnx or policy.pt, if not given."""


def main(arguments: list[str]) -> int:
    """Export, and say where the file is."""
    options = parse(ExportOptions, arguments, prog="peer-rl export")
    if options.onnx == options.torchscript:
        raise ConfigError("choose one format: --onnx or --torchscript")
    from peer_rl.launch.api import load
    from peer_rl.launch.export import CHECKED, FORMATS, export, random_observations

    kind = "onnx" if options.onnx else "torchscript"
    policy = load(options.run, "cpu")
    path = export(policy, kind, options.out)
    observation = random_observations(policy.spec, 1)
    action = policy.act(observation)
    print(f"{policy.config.agent} on {policy.config.task}, trained for {policy.step} steps")
    for name, array in (("observation", observation), ("action", action)):
        print(f"{name}: batch{''.join(f' x {size}' for size in array.shape[1:])}, {array.dtype}")
    if getattr(policy.config.settings, "epsilon_eval", 0):
        print(
            f"greedy: without the random actions of evaluation (--epsilon-eval {policy.config.settings.epsilon_eval})"
        )
    print(f"checked: {FORMATS[kind].reader} gives the policy's actions for {CHECKED} random observations")
    print(f"policy: {path}")
    return 0
