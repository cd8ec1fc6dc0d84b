"""Settings that the pixel agents on SAC share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.fields import Positive, PositiveFraction, of, part
from peer_rl.settings.networks import ActorConfig, CriticConfig
from peer_rl.settings.sac import SACConfig

TABLE_DMC_CURL = "PEER appendix, DMControl table with CURL"
CURL_CODE = "CURL's code; the paper's table leaves it open"

WIDE_ACTOR = ActorConfig(hidden=(1_024, 1_024), weight_init="orthogonal", bias_init="zero")
WIDE_CRITIC = CriticConfig(hidden=(1_024, 1_024), weight_init="orthogonal", bias_init="zero")
FOUR_CONVOLUTIONS = EncoderConfig(
    channels=(32, 32, 32, 32), kernels=(3, 3, 3, 3), strides=(2, 1, 1, 1), weight_init="orthogonal"
)


@dataclass(frozen=True)
class PixelSACConfig(SACConfig):
    """SAC on convolutions that actor and critics share."""

    log_std_by: Literal["clip", "tanh"] = of("tanh", CURL_CODE)
    actor: ActorConfig = part(WIDE_ACTOR, hidden=CURL_CODE)
    critic: CriticConfig = part(WIDE_CRITIC, hidden=CURL_CODE)
    encoder_tau: PositiveFraction = 0.05
    """Fraction of the critics' convolutions and latent in each update of the targets."""
    latent: Positive[int] = 50
    """Units of the latent between convolutions and MLP, one latent for the actor and one for the critics."""
    latent_tanh: bool = True
    """Apply tanh to the latent after its LayerNorm."""
    encoder: EncoderConfig = part(FOUR_CONVOLUTIONS)
    """The convolutions."""
