"""What an agent refuses in words before it is built: other environments, a machine without what it needs."""

from __future__ import annotations

import os
import shutil
import sys

from peer_rl.configs.rainbow import RainbowConfig
from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError
from peer_rl.regularizers import Regularizer


def check_vectors(agent: str, spec: EnvSpec) -> None:
    """Refuse observations that are not vectors."""
    if len(spec.observation_shape) != 1:
        raise ConfigError(f"{agent} reads vectors, but observations have shape {spec.observation_shape}")


def check_image(agent: str, spec: EnvSpec) -> None:
    """Refuse observations that are not frames."""
    if not spec.is_image:
        raise ConfigError(f"{agent} reads frames, uint8 of (channels, height, width), not {spec.observation_shape}")


def check_distributional(agent: str, spec: EnvSpec, regularizer: Regularizer, settings: RainbowConfig) -> None:
    """Refuse what a distribution of returns has no place for."""
    if not spec.is_image:
        check_vectors(agent, spec)
        if settings.features == "conv":
            raise ConfigError(f"{agent} has no convolutions here, since observations are vectors; leave out --features")
    if "head_weight" in regularizer.needs:
        raise ConfigError(
            f"{regularizer.name} needs the weight of a linear last layer, which {agent}'s distribution of returns "
            "does not have; choose another --regularizer"
        )


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
            "apt-get install g++ mends it, or train without --compile"
        )
