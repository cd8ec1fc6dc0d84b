"""A run's policy as a file that needs no peer-rl: TorchScript, or ONNX.

The file takes a batch of observations as the task's environment returns them, and gives actions as it takes them.
It computes what `Policy.act` does without exploration. It is checked before it is written.
"""

from __future__ import annotations

import copy
import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from peer_rl.agents.deterministic import policy_module
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError, RunError
from peer_rl.launch.api import Policy
from peer_rl.packages import EXTRAS, absent
from peer_rl.settings.beta import describe_beta
from peer_rl.training.files import check_folder, replace_file
from peer_rl.version import __version__

Array = np.ndarray[Any, Any]

CHECKED = 64
"""Random observations that the file must agree on."""
_TOLERANCE = 1e-4
"""Largest difference of an action, as a fraction of its range: the libraries round differently."""
_NEAR_TIES = 2
"""Discrete actions that may differ: rounding decides between actions of nearly the same value."""
_PLANS = "plans anew at every step"
_REMEMBERS = "acts on a memory of the whole episode"
_REASONS = {"td-mpc": _PLANS, "planet": _PLANS, "dreamer": _REMEMBERS, "dreamer-v2": _REMEMBERS}
"""Why an agent's action is no function of the observation alone."""


@dataclass(frozen=True)
class Format:
    """A file format: its suffix, how a module becomes bytes, and how those bytes act."""

    suffix: str
    reader: str
    packages: tuple[str, ...]
    write: Callable[[nn.Module, Tensor, dict[str, str]], bytes]
    read: Callable[[bytes], Callable[[Array], Array]]


def export(policy: Policy, kind: str, out: Path | None = None) -> Path:
    """Write the policy as ``torchscript`` or ``onnx``; returns the file, by default in RUN/export."""
    form = FORMATS[kind]
    missing = absent(form.packages)
    if missing:
        raise ConfigError(f"--{kind} needs {' and '.join(missing)}; install with: pip install 'peer-rl[export]'")
    module = PolicyModule(policy).eval()
    observations = random_observations(policy.spec, CHECKED)
    with torch.no_grad(), _silent():
        content = form.write(module, torch.from_numpy(observations[:2]), describe(policy))
        actions = form.read(content)
        found = np.concatenate([actions(observations[:1]), actions(observations[1:])])
    with without_random_actions(policy):
        check(found, policy.act(observations), policy.spec, form.reader)
    if out is None:
        out = policy.path / "export" / f"policy{form.suffix}"
        check_folder(out.parent)
    out.parent.mkdir(parents=True, exist_ok=True)
    replace_file(out, content)
    return out


@contextmanager
def without_random_actions(policy: Policy) -> Iterator[None]:
    """Evaluation's epsilon, which a file has not, is 0 in this block."""
    settings = policy.agent.settings if getattr(policy.config.settings, "epsilon_eval", 0) else None
    if settings is not None:
        policy.agent.settings = replace(settings, epsilon_eval=0.0)
    try:
        yield
    finally:
        if settings is not None:
            policy.agent.settings = settings


def check(found: Array, expected: Array, spec: EnvSpec, reader: str) -> None:
    """Refuse a file whose actions are not the policy's."""
    if found.shape == expected.shape and found.dtype == expected.dtype:
        if spec.actions:
            agrees = int((found != expected).sum()) <= _NEAR_TIES
        else:
            widths = np.subtract(spec.action_high, spec.action_low).reshape(spec.action_shape)
            agrees = bool((np.abs(found - expected) <= _TOLERANCE * widths).all())
        if agrees:
            return
    raise RunError(f"nothing was written: {reader} does not give the actions of the policy; please report this")


class PolicyModule(nn.Module):
    """Observations as the environment returns them -> actions as it takes them, both with a batch axis."""

    low: Tensor
    high: Tensor
    centre: Tensor
    reach: Tensor

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        name, module = policy.config.agent, policy_module(policy.agent)
        if module is None:
            reason = _REASONS.get(name.removesuffix("-pixels"), "has no method policy_module")
            raise ConfigError(
                f"{name} {reason}, so its policy cannot be exported; use it from Python with peer_rl.load"
            )
        self.policy, self.spec = copy.deepcopy(module).requires_grad_(False), policy.spec
        low, high = (np.array(edge, dtype=np.float64) for edge in (self.spec.action_low, self.spec.action_high))
        for buffer, value in (("low", low), ("high", high), ("centre", (high + low) / 2), ("reach", (high - low) / 2)):
            self.register_buffer(buffer, torch.from_numpy(value))

    def forward(self, observation: Tensor) -> Tensor:
        """The actions that the policy takes without exploration."""
        return self.decode(self.policy(self.encode(observation)))

    def encode(self, observation: Tensor) -> Tensor:
        """``EnvSpec.encode`` of tensors."""
        kind: torch.dtype = getattr(torch, self.spec.observation_dtype)
        if self.spec.one_hot:
            start = self.spec.one_hot_start
            return (observation.unsqueeze(-1) == torch.arange(start, start + self.spec.one_hot)).to(kind)
        return observation.unsqueeze(-1).to(kind) if self.spec.integer else observation

    def decode(self, action: Tensor) -> Tensor:
        """``EnvSpec.decode`` of tensors, in double precision as there."""
        if self.spec.actions:
            return action + self.spec.action_start
        scaled = torch.minimum(torch.maximum(self.centre + self.reach * action.double(), self.low), self.high)
        return scaled.float().reshape(-1, *self.spec.action_shape)


def random_observations(spec: EnvSpec, rows: int) -> Array:
    """Observations as the environment might return them, the same ones every time."""
    rng = np.random.default_rng(0)
    if spec.one_hot:
        return rng.integers(spec.one_hot_start, spec.one_hot_start + spec.one_hot, rows)
    if spec.integer:
        return rng.integers(0, 20, rows)
    if spec.is_image:
        return rng.integers(0, 256, (rows, *spec.observation_shape), dtype=np.uint8)
    return rng.standard_normal((rows, *spec.observation_shape)).astype(spec.observation_dtype)


def describe(policy: Policy) -> dict[str, str]:
    """What the file says of itself."""
    config = policy.config
    return {
        "agent": config.agent,
        "task": config.task,
        "seed": str(config.seed),
        "beta": describe_beta(config),
        "step": str(policy.step),
        "spec": json.dumps(policy.spec.as_json()),
        "peer-rl": __version__,
    }


def _write_torchscript(module: nn.Module, example: Tensor, about: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.trace(module, (example,)), buffer, _extra_files={"peer-rl.json": json.dumps(about)})  # type: ignore[no-untyped-call]
    return buffer.getvalue()


def _read_torchscript(content: bytes) -> Callable[[Array], Array]:
    module = torch.jit.load(io.BytesIO(content))  # type: ignore[no-untyped-call]
    return lambda observations: np.asarray(module(torch.from_numpy(observations)).numpy())


def _write_onnx(module: nn.Module, example: Tensor, about: dict[str, str]) -> bytes:
    import onnx

    program = torch.onnx.export(
        module,
        (example,),
        dynamo=True,
        input_names=["observation"],
        output_names=["action"],
        dynamic_shapes=({0: torch.export.Dim("batch")},),
        verbose=False,
    )
    assert program is not None
    model = program.model_proto
    onnx.helper.set_model_props(model, about)
    content: bytes = model.SerializeToString()
    return content


def _read_onnx(content: bytes) -> Callable[[Array], Array]:
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return lambda observations: np.asarray(session.run(["action"], {"observation": observations})[0])


@contextmanager
def _silent() -> Iterator[None]:
    """Without what torch's exporters log about themselves."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


FORMATS = {
    "torchscript": Format(".pt", "torch.jit", (), _write_torchscript, _read_torchscript),
    "onnx": Format(".onnx", "onnxruntime", EXTRAS["export"].packages, _write_onnx, _read_onnx),
}
