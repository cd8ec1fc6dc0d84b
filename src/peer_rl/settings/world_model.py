"""Settings that the world models (PlaNet, Dreamer, Dreamer-V2) share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peer_rl.settings.fields import check_not_negative, check_positive, of

PLANET_CODE = "the PlaNet authors' code"


@dataclass(frozen=True)
class RSSMConfig:
    """The recurrent state-space model: a deterministic belief and a stochastic state."""

    belief: int = of(200, PLANET_CODE)
    """Units of the deterministic belief, the GRU's state."""
    hidden: int = of(200, PLANET_CODE)
    """Units of the layers before and after the GRU."""
    latent: Literal["gaussian", "categorical"] = of("gaussian", PLANET_CODE)
    """The stochastic state: independent Gaussians, or one-hot vectors with straight-through gradients."""
    variables: int = of(30, PLANET_CODE)
    """Number of Gaussians, or of categorical variables."""
    classes: int = of(32, "the Dreamer-V2 authors' code; no effect on Gaussians")
    """Classes of each categorical variable."""
    least_std: float = of(0.1, PLANET_CODE)
    """Smallest standard deviation of a Gaussian state."""
    activation: Literal["relu", "elu"] = of("relu", PLANET_CODE)
    """Activation of the layers before and after the GRU."""
    normalised_gru: bool = of(False, PLANET_CODE)
    """A LayerNorm over all three gates, and an update gate that starts nearly closed (Dreamer-V2)."""

    def __post_init__(self) -> None:
        for name in ("belief", "hidden", "variables", "classes"):
            check_positive(f"rssm.{name}", getattr(self, name))
        check_not_negative("rssm.least_std", self.least_std)
