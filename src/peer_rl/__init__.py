"""PEER: one line for your critic's loss, and the paper around it.

Names load on first use, so that ``import peer_rl`` and ``peer-rl --help`` cost nothing, and the plug-in needs torch
alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from peer_rl.version import __version__

if TYPE_CHECKING:
    from peer_rl.launch.api import Policy, load, train
    from peer_rl.launch.compare import compare
    from peer_rl.plugin import (
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
    from peer_rl.plugin.check import check_critic
    from peer_rl.plugin.diagnostics import Report, diagnose, drd, gradient_ratio
    from peer_rl.plugin.tap import RepresentationTap
    from peer_rl.report.xray import xray
    from peer_rl.settings import RunConfig, configure

_HOME = {
    "BEER": "plugin",
    "DR3": "plugin",
    "PEER": "plugin",
    "ConstrainedPEER": "plugin",
    "CosinePEER": "plugin",
    "FeatureNorm": "plugin",
    "Features": "plugin",
    "NoRegularizer": "plugin",
    "Regularizer": "plugin",
    "SignedFeaturesWarning": "plugin",
    "TargetGradientWarning": "plugin",
    "peer_loss": "plugin",
    "Report": "plugin.diagnostics",
    "diagnose": "plugin.diagnostics",
    "drd": "plugin.diagnostics",
    "gradient_ratio": "plugin.diagnostics",
    "RepresentationTap": "plugin.tap",
    "check_critic": "plugin.check",
    "RunConfig": "settings",
    "configure": "settings",
    "Policy": "launch.api",
    "load": "launch.api",
    "train": "launch.api",
    "compare": "launch.compare",
    "xray": "report.xray",
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
    "compare",
    "configure",
    "diagnose",
    "drd",
    "gradient_ratio",
    "load",
    "peer_loss",
    "train",
    "xray",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'peer_rl' has no attribute {name!r}")
    home = _HOME[name]
    if not home.startswith("plugin"):
        from peer_rl.packages import require_trainer

        require_trainer(f"peer_rl.{name}", report=home.startswith("report"))
    return getattr(import_module(f"peer_rl.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
