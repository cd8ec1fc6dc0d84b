"""PEER: one line for your critic's loss, and the paper around it.

Names load on first use, so that ``import peer_rl`` and ``peer-rl --help`` cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from peer_rl.version import __version__

if TYPE_CHECKING:
    from peer_rl.check import check_critic
    from peer_rl.configs import RunConfig, configure
    from peer_rl.diagnostics import Report, diagnose, drd, gradient_ratio
    from peer_rl.regularizers import (
        BEER,
        DR3,
        PEER,
        ConstrainedPEER,
        CosinePEER,
        FeatureNorm,
        Features,
        NoRegularizer,
        Regularizer,
        SignedFeaturesWarning,
        TargetGradientWarning,
        peer_loss,
    )
    from peer_rl.tap import RepresentationTap
    from peer_rl.training.api import Policy, load, train

_HOME = {
    "BEER": "regularizers",
    "DR3": "regularizers",
    "PEER": "regularizers",
    "ConstrainedPEER": "regularizers",
    "CosinePEER": "regularizers",
    "FeatureNorm": "regularizers",
    "Features": "regularizers",
    "NoRegularizer": "regularizers",
    "Regularizer": "regularizers",
    "SignedFeaturesWarning": "regularizers",
    "TargetGradientWarning": "regularizers",
    "peer_loss": "regularizers",
    "Report": "diagnostics",
    "diagnose": "diagnostics",
    "drd": "diagnostics",
    "gradient_ratio": "diagnostics",
    "RepresentationTap": "tap",
    "check_critic": "check",
    "RunConfig": "configs",
    "configure": "configs",
    "Policy": "training.api",
    "load": "training.api",
    "train": "training.api",
}

__all__ = [
    "BEER",
    "DR3",
    "PEER",
    "ConstrainedPEER",
    "CosinePEER",
    "FeatureNorm",
    "Features",
    "NoRegularizer",
    "Policy",
    "Regularizer",
    "Report",
    "RepresentationTap",
    "RunConfig",
    "SignedFeaturesWarning",
    "TargetGradientWarning",
    "__version__",
    "check_critic",
    "configure",
    "diagnose",
    "drd",
    "gradient_ratio",
    "load",
    "peer_loss",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'peer_rl' has no attribute {name!r}")
    return getattr(import_module(f"peer_rl.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
