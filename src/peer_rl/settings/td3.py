"""Settings of ``td3``, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass

from peer_rl.settings.fields import TABLE_STATE, Checked, NotNegative, Positive, PositiveFraction, of, part
from peer_rl.settings.networks import ActorConfig, CriticConfig

TD3_INIT = "PyTorch's own, as in the TD3 authors' code"


@dataclass(frozen=True)
class TD3Config(Checked):
    """TD3 (Fujimoto et al. 2018): twin critics, a delayed actor, a smoothed target; actions are in [-1, 1]."""

    actor_learning_rate: Positive[float] = of(3e-4, TABLE_STATE)
    """Adam's learning rate for the actor."""
    critic_learning_rate: Positive[float] = of(3e-4, TABLE_STATE)
    """Adam's learning rate for the critics."""
    tau: PositiveFraction = of(5e-3, TABLE_STATE)
    """Fraction of the online networks in each update of the targets (eta in the paper)."""
    policy_every: Positive[int] = of(2, TABLE_STATE)
    """Critic updates between updates of the actor and all target networks (d in the paper)."""
    exploration_noise: NotNegative[float] = of(0.1, "the TD3 authors' code; the paper prints 0.2, its code has 0.1")
    """Standard deviation of the Gaussian noise on actions in training."""
    smoothing_noise: NotNegative[float] = of(0.2, TABLE_STATE)
    """Standard deviation of the noise on the target policy's action."""
    smoothing_clip: NotNegative[float] = of(0.5, TABLE_STATE)
    """Clip of the noise on the target policy's action."""
    compile: bool = False
    """torch.compile for the losses: for accelerators; on a CPU the plain update is faster."""
    actor: ActorConfig = part(ActorConfig(), hidden=TABLE_STATE, weight_init=TD3_INIT, bias_init=TD3_INIT)
    """The actor's network."""
    critic: CriticConfig = part(CriticConfig(), hidden=TABLE_STATE, weight_init=TD3_INIT, bias_init=TD3_INIT)
    """The critics' networks."""
