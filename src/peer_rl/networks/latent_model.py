"""TD-MPC's latent model (TOLD): encoder h, dynamics d, reward R, critics Q and policy pi."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peer_rl.networks.encoders import ConvEncoder
from peer_rl.networks.mlp import CriticOutput, EnsembleHead, EnsembleLinear, EnsembleNorm, linear
from peer_rl.settings.networks import ActorConfig, CriticConfig
from peer_rl.settings.td_mpc import TDMPCConfig

_INIT = ActorConfig(weight_init="orthogonal", bias_init="zero")
_CRITIC_INIT = CriticConfig(weight_init="orthogonal", bias_init="zero")
_EDGE = 1 - 1e-6
"""The policy's noisy actions end here, as in the authors' code."""


class LatentModel(nn.Module):
    """Everything that TD-MPC learns. Latents are (*rows, d), actions (*rows, A)."""

    def __init__(self, observation: tuple[int, ...], actions: int, settings: TDMPCConfig, rng: torch.Generator) -> None:
        super().__init__()
        latent, hidden = settings.latent, settings.hidden
        self.encoder = _encoder(observation, settings, rng)
        self.dynamics = _elu_mlp((latent + actions, hidden, hidden, latent), rng)
        self.reward_head = _elu_mlp((latent + actions, hidden, hidden, 1), rng)
        self.policy = _elu_mlp((latent, hidden, hidden, actions), rng)
        self.critic = LatentQ(latent + actions, hidden, rng)
        last = self.reward_head[-1]
        nn.init.zeros_(last.get_parameter("weight"))

    def step(self, z: Tensor, action: Tensor) -> Tensor:
        """The next latent, d(z, a)."""
        following: Tensor = self.dynamics(torch.cat([z, action], -1))
        return following

    def reward(self, z: Tensor, action: Tensor) -> Tensor:
        """R(z, a), without the last axis."""
        predicted: Tensor = self.reward_head(torch.cat([z, action], -1)).squeeze(-1)
        return predicted

    def act(self, z: Tensor, noise: Tensor | None = None) -> Tensor:
        """pi(z), in [-1, 1]; with ``noise``, pi(z) + noise."""
        action = torch.tanh(self.policy(z))
        if noise is None:
            return action
        noisy = action + noise
        return noisy + (noisy.clamp(-_EDGE, _EDGE) - noisy).detach()  # straight-through: J moves saturated actions too

    def follow_policy(self, z: Tensor, noise: Iterable[Tensor]) -> Tensor:
        """What the policy does from z (d,) on, with the noise of each step, (P, A): actions (H, P, A)."""
        actions = []
        for one in noise:
            z = z.expand(len(one), -1)
            actions.append(self.act(z, one))
            z = self.step(z, actions[-1])
        return torch.stack(actions)

    def returns(self, z: Tensor, actions: Tensor, *, discount: float, noise: Tensor) -> Tensor:
        """sum_t gamma^t R(z_t, a_t) + gamma^H min_i Q_i(z_H, pi(z_H) + noise) for actions (H, N, A); (N,)."""
        z, power = z.expand(actions.shape[1], -1), 1.0
        total = torch.zeros(len(z), device=z.device)
        for action in actions:
            total += power * self.reward(z, action)
            z, power = self.step(z, action), discount * power
        output: CriticOutput = self.critic(z, self.act(z, noise))
        return total + power * output.q.amin(0)

    def model_parameters(self) -> list[Tensor]:
        """All but the policy's."""
        parts = (self.encoder, self.dynamics, self.reward_head, self.critic)
        return [parameter for part in parts for parameter in part.parameters()]


class LatentQ(nn.Module):
    """Two Q(z, a): linear, LayerNorm, tanh, linear, ELU, linear, which begins at 0; phi is the ELU's output."""

    def __init__(self, inputs: int, hidden: int, rng: torch.Generator) -> None:
        super().__init__()
        self.first = EnsembleLinear(2, inputs, hidden, _CRITIC_INIT, rng)
        self.norm = EnsembleNorm(2, hidden)
        self.second = EnsembleLinear(2, hidden, hidden, _CRITIC_INIT, rng)
        self.head = EnsembleHead(2, hidden, _CRITIC_INIT, rng)
        nn.init.zeros_(self.head.weight)

    def forward(self, z: Tensor, action: Tensor) -> CriticOutput:
        """Values of rows (B, d) and (B, A): q (2, B) and phi (2, B, hidden)."""
        x = torch.cat([z, action], -1)
        x = torch.tanh(self.norm(self.first(x.expand(2, *x.shape))))
        phi = F.elu(self.second(x))
        return CriticOutput(q=self.head(phi), phi=phi)


def _encoder(observation: tuple[int, ...], settings: TDMPCConfig, rng: torch.Generator) -> nn.Sequential:
    """Frames through convolutions and one linear layer, or a vector through one hidden layer, to the latent."""
    if len(observation) == 1:
        return _elu_mlp((observation[0], settings.encoder_hidden, settings.latent), rng)
    convolutions = ConvEncoder(observation, settings.encoder, rng)
    return nn.Sequential(convolutions, linear(convolutions.features, settings.latent, _INIT, rng))


def _elu_mlp(sizes: tuple[int, ...], rng: torch.Generator) -> nn.Sequential:
    """Linear layers with an ELU between them."""
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [linear(before, after, _INIT, rng), nn.ELU(inplace=True)]
    return nn.Sequential(*layers[:-1])
