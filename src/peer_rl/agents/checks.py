"""Checks before an agent is built: whether it suits the environment and the machine."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.plugin import Regularizer
from peer_rl.settings import AGENTS
from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.rainbow import RainbowConfig


def check_agent(agent: str, settings: Any, spec: EnvSpec, regularizer: Regularizer) -> None:
    """Refuse observations that the agent cannot read, and a regularizer that it cannot serve."""
    reads = AGENTS[agent].observations
    if reads == "vectors":
        check_vectors(agent, spec)
    elif hasattr(settings, "encoder"):
        check_pixels(agent, settings.encoder, spec, vectors=reads == "either", default=type(settings)().encoder)
    check_features(getattr(settings, "features", ""), spec, regularizer)
    if isinstance(settings, RainbowConfig):
        reason = "a distribution of returns has no linear last layer; choose another --regularizer"
        check_regularizer(regularizer, lacking="head_weight", reason=reason)


def check_vectors(agent: str, spec: EnvSpec) -> None:
    """Refuse observations that are not vectors."""
    if len(spec.observation_shape) != 1:
        raise ConfigError(f"{agent} reads vectors, but observations have shape {spec.observation_shape}")


def check_pixels(
    agent: str, encoder: EncoderConfig, spec: EnvSpec, *, vectors: bool = False, default: EncoderConfig | None = None
) -> None:
    """Refuse observations that the encoder cannot read; with ``vectors``, these need none."""
    shape = spec.observation_shape
    if vectors and len(shape) == 1:
        if encoder != (default or EncoderConfig()):
            raise ConfigError(f"there is nothing to encode in a vector of {shape[0]}; leave out --encoder")
        return
    if not spec.is_image:
        raise ConfigError(
            f"{agent} reads {'vectors, or ' * vectors}uint8 frames of shape (channels, height, width), "
            f"but observations are {spec.observation_dtype} of shape {shape}; wrap the environment"
        )
    if encoder.padding == "same":
        return
    sides = shape[-2:]
    for layer, (kernel, stride) in enumerate(zip(encoder.kernels, encoder.strides, strict=True), 1):
        if min(sides) < kernel:
            raise ConfigError(
                f"frames of {shape[-2]}x{shape[-1]} are too small for the convolutions: layer {layer} has a kernel of "
                f"{kernel} for {sides[0]}x{sides[1]}; make --encoder.kernels or --encoder.strides smaller"
            )
        sides = tuple((side - kernel) // stride + 1 for side in sides)


def check_features(features: str, spec: EnvSpec, regularizer: Regularizer) -> None:
    """Refuse convolutional features where there are no convolutions, or where a regularizer wants phi's head."""
    if features != "conv":
        return
    if not spec.is_image:
        raise ConfigError(
            f"--features conv needs frames, but observations have shape {spec.observation_shape}; "
            "take --features penultimate"
        )
    reason = "convolutional features do not feed the last layer; take --features penultimate"
    check_regularizer(regularizer, lacking="head_weight", reason=reason)


def check_regularizer(regularizer: Regularizer, *, lacking: str, reason: str) -> None:
    """Refuse a regularizer that needs a quantity the agent lacks; ``reason`` says why and what to do."""
    if lacking in regularizer.needs:
        name = regularizer.name or type(regularizer).__name__
        raise ConfigError(f"the regularizer {name} reads {lacking}, but {reason}")


def compiler() -> str:
    """The C++ compiler that torch.compile calls on a CPU."""
    return os.environ.get("CXX", {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++"))


def check_compiler(settings: object, device: str) -> None:
    """Refuse torch.compile on a CPU where the C++ compiler that it calls is missing: else the first update fails."""
    if not getattr(settings, "compile", False) or device != "cpu":
        return
    name = compiler()
    if shutil.which(name) is None:
        raise ConfigError(
            f"--compile needs a C++ compiler on a CPU, but there is no {name}; "
            "apt-get install g++ installs one, or train without --compile"
        )
