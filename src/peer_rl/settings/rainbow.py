"""Settings of ``rainbow``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peer_rl.errors import ConfigError
from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.fields import Checked, Fraction, NotNegative, Positive, of, part
from peer_rl.settings.replay import PrioritisedConfig

TABLE_ATARI_CURL = "PEER appendix, Atari table with CURL"
CURL_RAINBOW_CODE = "CURL's Rainbow code; the paper's table leaves it open"


@dataclass(frozen=True)
class RainbowConfig(Checked):
    """Data-efficient Rainbow (van Hasselt et al. 2019): distributional, double, dueling, noisy."""

    learning_rate: Positive[float] = of(1e-4, TABLE_ATARI_CURL)
    """Adam's learning rate."""
    adam_epsilon: Positive[float] = of(1.5e-5, TABLE_ATARI_CURL + "; CURL's code has 1.5e-4")
    """Adam's epsilon."""
    max_gradient_norm: Positive[float] = of(10.0, TABLE_ATARI_CURL)
    """Largest norm of all gradients together; larger ones are scaled down."""
    noisy: bool = True
    """Noisy layers, which explore by themselves; without them, epsilon-greedy actions do."""
    dueling: bool = True
    """Two streams, for the state's value and the actions' advantages."""
    double: bool = True
    """The online network chooses the next action and the target values it."""
    epsilon_start: Fraction = of(1.0, "Dopamine's atari_100k lab, OTRainbow")
    """Without noisy layers: probability of a random action when the random phase has ended."""
    epsilon_final: Fraction = of(0.01, "Dopamine's atari_100k lab, OTRainbow")
    """Without noisy layers: final probability of a random action."""
    epsilon_steps: Positive[int] = of(50_000, "Dopamine's atari_100k lab, OTRainbow")
    """Without noisy layers: acting steps over which it falls linearly; independent of --steps."""
    target_every: Positive[int] = of(2_000, TABLE_ATARI_CURL)
    """Updates between copies of the online network into the target network."""
    hidden: Positive[int] = of(256, TABLE_ATARI_CURL)
    """Units of the hidden layer of each stream, ReLU after it; both together are the representation phi."""
    atoms: int = of(51, TABLE_ATARI_CURL)
    """Number of atoms of the return distribution (C51)."""
    lowest_return: float = of(-10.0, CURL_RAINBOW_CODE)
    """Lowest return of the distribution's support."""
    highest_return: float = of(10.0, CURL_RAINBOW_CODE)
    """Highest return of the distribution's support."""
    noise: NotNegative[float] = of(0.1, TABLE_ATARI_CURL)
    """Initial sigma of the noisy layers, before division by the square root of their inputs."""
    epsilon_eval: Fraction = of(1e-3, CURL_RAINBOW_CODE)
    """Probability of a random action in evaluation, where the layers' noise is off."""
    features: Literal["penultimate", "conv"] = "penultimate"
    """What PEER reads as phi: the hidden layers of both streams, or the flattened convolutions."""
    blend_losses: bool = False
    """Weight the added losses like transitions and include them in the priorities, as the published code does."""
    encoder: EncoderConfig = part(
        EncoderConfig(channels=(32, 64), kernels=(5, 5), strides=(5, 5)),
        **dict.fromkeys(("channels", "kernels", "strides"), TABLE_ATARI_CURL),
    )
    """The convolutions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.atoms < 2 or not self.lowest_return < self.highest_return:
            raise ConfigError(
                f"a distribution needs two atoms and a lowest_return below highest_return, "
                f"not {self.atoms} from {self.lowest_return:g} to {self.highest_return:g}"
            )


@dataclass(frozen=True)
class RainbowLearning(PrioritisedConfig):
    """Replay and update schedule of ``rainbow``."""

    gamma: float = of(0.99, TABLE_ATARI_CURL)
    n_step: int = of(20, TABLE_ATARI_CURL)
    batch_size: int = of(32, TABLE_ATARI_CURL)
    start_steps: int = of(1_600, TABLE_ATARI_CURL)
    update_every: int = of(1, TABLE_ATARI_CURL)
    priority_exponent: float = of(0.5, TABLE_ATARI_CURL)
    importance_start: float = of(0.4, TABLE_ATARI_CURL)
    importance_steps: int = of(100_000, TABLE_ATARI_CURL + ": to 1 over training")
