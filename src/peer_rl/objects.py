"""Objects named as module:name, ours and the user's."""

from __future__ import annotations

import importlib
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
