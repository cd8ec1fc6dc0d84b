"""Settings of ``dreamer-v2`` and ``dreamer-v2-pixels``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peer_rl.settings.dreamer import BehaviourConfig
from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.fields import Fraction, NotNegative, Positive, of, part
from peer_rl.settings.world_model import DREAMER_V2_CODE, RSSMConfig, WorldModelLearning


@dataclass(frozen=True)
class DreamerV2Config(BehaviourConfig):
    """Dreamer-V2 (Hafner et al. 2021): categorical states, KL balancing, a slow critic, discrete actions too."""

    model_learning_rate: float = of(3e-4, DREAMER_V2_CODE)
    model_epsilon: float = of(1e-5, DREAMER_V2_CODE)
    behaviour_epsilon: float = of(1e-5, DREAMER_V2_CODE)
    max_gradient_norm: float = of(100.0, DREAMER_V2_CODE)
    weight_decay: Fraction = of(1e-6, DREAMER_V2_CODE)
    """Every weight is multiplied by 1 minus this at each of its optimizer's steps, whatever the learning rate."""
    free_nats: float = of(1.0, DREAMER_V2_CODE + ", on DMControl")
    free_nats_per_step: bool = of(False, DREAMER_V2_CODE)
    kl_balance: float = of(0.8, DREAMER_V2_CODE)
    reward_weight: float = of(1.0, DREAMER_V2_CODE)
    image_bits: int = of(8, DREAMER_V2_CODE)
    units: int = of(400, DREAMER_V2_CODE)
    reward_layers: int = of(4, DREAMER_V2_CODE)
    critic_layers: int = of(4, DREAMER_V2_CODE)
    exploration_noise: float = of(0.0, DREAMER_V2_CODE)
    slow_critic_every: Positive[int] = of(100, DREAMER_V2_CODE)
    """Updates between copies of the critic into the slow critic, which the returns bootstrap from."""
    entropy_weight: NotNegative[float] = of(1e-4, DREAMER_V2_CODE + ", on DMControl")
    """Weight of the policy's entropy."""
    actor_gradient: Literal["dynamics", "reinforce", "by-action"] = of("by-action", DREAMER_V2_CODE)
    """How the policy learns: through the model's dynamics, by REINFORCE, or the first for continuous and the second
    for discrete actions."""
    least_action_std: Positive[float] = of(0.1, DREAMER_V2_CODE)
    """Smallest standard deviation of a continuous action."""
    convolution_activation: Literal["relu", "elu"] = of("elu", DREAMER_V2_CODE)
    decoder_channels: tuple[int, ...] = of((192, 96, 48), DREAMER_V2_CODE)
    rssm: RSSMConfig = part(
        RSSMConfig(latent="categorical", variables=32, classes=32, activation="elu", normalised_gru=True),
        **dict.fromkeys(("latent", "variables", "classes", "activation", "normalised_gru"), DREAMER_V2_CODE),
    )
    encoder: EncoderConfig = part(
        EncoderConfig(channels=(48, 96, 192, 384), kernels=(4,) * 4, strides=(2,) * 4, weight_init="xavier"),
        **dict.fromkeys(("channels", "kernels", "strides", "weight_init"), DREAMER_V2_CODE),
    )


@dataclass(frozen=True)
class DreamerV2Learning(WorldModelLearning):
    """Replay and update schedule of ``dreamer-v2``."""

    batch_size: int = of(16, DREAMER_V2_CODE)
    buffer_size: int = of(2_000_000, DREAMER_V2_CODE)
    start_steps: int = of(1_000, DREAMER_V2_CODE)
    pretrain: int = of(100, DREAMER_V2_CODE)
    update_every: int = of(5, DREAMER_V2_CODE)
