"""Settings of ``curl-rainbow``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass

from peer_rl.settings.fields import NotNegative, Positive, PositiveFraction, of
from peer_rl.settings.rainbow import CURL_RAINBOW_CODE, TABLE_ATARI_CURL, RainbowConfig


@dataclass(frozen=True)
class CURLRainbowConfig(RainbowConfig):
    """Rainbow with CURL's contrastive loss (Laskin et al. 2020)."""

    contrastive: NotNegative[float] = of(1.0, CURL_RAINBOW_CODE)
    """Weight of the contrastive loss."""
    contrastive_hidden: Positive[int] = of(256, CURL_RAINBOW_CODE)
    """Units of the contrastive head's hidden layer."""
    contrastive_units: Positive[int] = of(128, CURL_RAINBOW_CODE)
    """Units of the compared codes."""
    sharpness: Positive[float] = of(0.1, CURL_RAINBOW_CODE)
    """Factor of the contrastive logits."""
    momentum: PositiveFraction = of(1e-3, TABLE_ATARI_CURL)
    """Fraction of the online encoder in each update of the momentum encoder (tau in the paper)."""
    crop_margin: Positive[int] = of(4, CURL_RAINBOW_CODE)
    """Pixels removed by a view's random crop, which is then padded by as many on each side and cropped back."""
