"""Objects named as module:name, ours and the user's, and the versions of packages."""

from __future__ import annotations

import importlib
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from peer_rl.errors import ConfigError


def load_object(path: str) -> Any:
    """Import what ``module:name`` names."""
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"cannot load {path!r}: {error}; is its folder on PYTHONPATH?") from error
    except Exception as error:
        raise ConfigError(f"cannot load {path!r}: importing it raised {type(error).__name__}: {error}") from error


def version_of(name: str) -> str | None:
    """The version of a package, named as pip or as Python names it; None if it is not there or its module is not."""
    module = name.replace("-", "_")
    if find_spec(module) is None:
        return None
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # cv2 comes in packages of several names, none of them its own
        pass
    try:
        return getattr(importlib.import_module(module), "__version__", None)
    except ImportError:
        return None
