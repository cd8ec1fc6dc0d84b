"""PEER and related regularizers: one scalar to add to a critic's loss. Imports torch and nothing else of this package.

`terms` computes the regularizers from `features`, which also checks them; `constrained` adapts beta to a target cosine;
`registry` resolves names and wraps functions. `tap` records phi of any critic and `check` reports what it would find.
`diagnostics` measures a batch of features, `layers` every hidden layer of a network.
"""

from peer_rl.plugin.constrained import ConstrainedPEER
from peer_rl.plugin.features import (
    DEFAULT_BETA,
    Features,
    NoGradientWarning,
    SamePairWarning,
    SignedFeaturesWarning,
    SingleFeatureWarning,
    TargetGradientWarning,
    check_beta,
    check_pair,
    heads_first,
    per_row,
    safe_norm,
    squared_head_norm,
)
from peer_rl.plugin.registry import NAMES, make, wrap
from peer_rl.plugin.terms import (
    BEER,
    DR3,
    PEER,
    CosinePEER,
    FeatureNorm,
    NoRegularizer,
    PublishedBEER,
    Regularizer,
    bellman_bound,
    peer_loss,
)

__all__ = [
    "BEER",
    "DEFAULT_BETA",
    "DR3",
    "NAMES",
    "PEER",
    "ConstrainedPEER",
    "CosinePEER",
    "FeatureNorm",
    "Features",
    "NoGradientWarning",
    "NoRegularizer",
    "PublishedBEER",
    "Regularizer",
    "SamePairWarning",
    "SignedFeaturesWarning",
    "SingleFeatureWarning",
    "TargetGradientWarning",
    "bellman_bound",
    "check_beta",
    "check_pair",
    "heads_first",
    "make",
    "peer_loss",
    "per_row",
    "safe_norm",
    "squared_head_norm",
    "wrap",
]
