"""Settings of ``metd3``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass

from peer_rl.errors import ConfigError
from peer_rl.settings.fields import SECTION_PYBULLET, of
from peer_rl.settings.td3 import TD3Config


@dataclass(frozen=True)
class METD3Config(TD3Config):
    """METD3 (MEPG on TD3): one dropout mask on each critic and its target."""

    dropout: float = of(0.1, SECTION_PYBULLET)
    """Probability that the mask drops a unit of the critics' last hidden layer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must be in [0, 1), but is {self.dropout}")
