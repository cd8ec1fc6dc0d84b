"""What an agent refuses in words before it is built: other environments, a machine without what it needs."""

from __future__ import annotations

import os
import shutil
import sys

from peer_rl.envs.spec import EnvSpec
from peer_rl.errors import ConfigError


def check_vectors(agent: str, spec: EnvSpec) -> None:
    """Refuse observations that are not vectors."""
    if len(spec.observation_shape) != 1:
        raise ConfigError(f"{agent} reads vectors, but observations have shape {spec.observation_shape}")


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
