"""TD3, METD3, SAC, REDQ and DQN written out in float64, one head at a time: what our agents must equal.

Nothing of the package is called here. An agent's weights are copied once; from then on both learn by themselves.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributions import Normal
from torch.distributions.transforms import TanhTransform
from torch.nn import functional as F

Weights = dict[str, Tensor]
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


def copies(network: torch.nn.Module) -> Weights:
    return {name: one.detach().double().clone().requires_grad_() for name, one in network.named_parameters()}


def layer(x: Tensor, weights: Weights, name: str, head: int | None = None) -> Tensor:
    weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
    if head is not None:
        return x @ weight[head] + bias[head, 0]
    return x @ weight.T + bias


def policy_output(weights: Weights, obs: Tensor) -> Tensor:
    hidden = layer(obs, weights, "trunk.0").clamp(min=0)
    return layer(layer(hidden, weights, "trunk.2").clamp(min=0), weights, "head")


def one_head(weights: Weights, head: int, obs: Tensor, action: Tensor, mask: Tensor | None = None):
    """Q (B,) and phi (B, D) of one critic."""
    hidden = layer(torch.cat([obs, action], 1), weights, "layers.0", head).clamp(min=0)
    before = layer(hidden, weights, "layers.1", head)
    phi = (before if mask is None else before * mask).clamp(min=0)
    return layer(phi, weights, "head", head)[:, 0], phi


def descend(optimizer: torch.optim.Optimizer, weights: Sequence[Tensor], loss: Tensor) -> None:
    for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
        weight.grad = gradient
    optimizer.step()


@torch.no_grad()
def follow(target: Weights, online: Weights, tau: float) -> None:
    for name, weight in target.items():
        weight.copy_((1 - tau) * weight + tau * online[name])


def assert_same(network: torch.nn.Module, weights: Weights) -> None:
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(parameter.detach().double(), weights[name].detach(), **TOLERANCE)


def assert_same_gradients(network: torch.nn.Module, weights: Weights) -> None:
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        torch.testing.assert_close(parameter.grad.double(), weights[name].grad, **TOLERANCE)


class PlainTD3:
    """``pairing`` says which target head's features each head meets; anything but (0, 1) is wrong."""

    def __init__(self, agent, beta: float, pairing: Sequence[int] = (0, 1)) -> None:
        self.settings, self.beta, self.pairing = agent.settings, beta, pairing
        self.actor, self.critic = copies(agent.actor), copies(agent.critic)
        self.target_actor, self.target_critic = copies(agent.target_actor), copies(agent.target_critic)
        self.actor_optimizer = torch.optim.Adam(self.actor.values(), lr=agent.settings.actor_learning_rate)
        self.critic_optimizer = torch.optim.Adam(self.critic.values(), lr=agent.settings.critic_learning_rate)

    def critic_losses(self, batch, noise: Tensor, masks=(None, None)) -> tuple[Tensor, Tensor]:
        """Mean squared errors to y, and beta times the inner products."""
        obs, action, next_obs = batch.obs.double(), batch.action.double(), batch.next_obs.double()
        clip = self.settings.smoothing_clip
        smoothing = (noise.double() * self.settings.smoothing_noise).clamp(-clip, clip)
        next_action = (torch.tanh(policy_output(self.target_actor, next_obs)) + smoothing).clamp(-1, 1)
        next_q, next_phi = zip(
            *(one_head(self.target_critic, i, next_obs, next_action, masks[i]) for i in range(2)), strict=True
        )
        y = (batch.reward.double() + batch.discount.double() * torch.minimum(*next_q)).detach()
        td, peer = torch.zeros(()), torch.zeros(())
        for i in range(2):
            q, phi = one_head(self.critic, i, obs, action, masks[i])
            td = td + ((q - y) ** 2).mean()
            peer = peer + self.beta * (phi * next_phi[self.pairing[i]].detach()).sum(1).mean()
        return td, peer

    def update(self, batch, noise: Tensor, index: int, masks=(None, None)) -> dict[str, Tensor]:
        td, peer = self.critic_losses(batch, noise, masks)
        descend(self.critic_optimizer, list(self.critic.values()), td + peer)
        losses = {"td_loss": td, "regularizer": peer}
        if index % self.settings.policy_every == self.settings.policy_every - 1:
            obs = batch.obs.double()
            losses["actor_loss"] = -one_head(self.critic, 0, obs, torch.tanh(policy_output(self.actor, obs)))[0].mean()
            descend(self.actor_optimizer, list(self.actor.values()), losses["actor_loss"])
            follow(self.target_critic, self.critic, self.settings.tau)
            follow(self.target_actor, self.actor, self.settings.tau)
        return losses


class PlainSAC:
    """Also REDQ: ``heads`` critics, y from the ``chosen`` ones, the actor on the mean if ``average``, and its gradient
    taken before the critics' step if ``policy_first``."""

    policy_first = False

    def __init__(self, agent, beta: float, *, heads: int = 2, average: bool = False, target_entropy: float = -2.0):
        self.settings, self.beta, self.heads, self.average = agent.settings, beta, heads, average
        self.target_entropy = target_entropy
        self.actor, self.critic, self.target_critic = map(copies, (agent.actor, agent.critic, agent.target_critic))
        self.log_alpha = agent.log_temperature.detach().double().clone().requires_grad_()
        self.optimizers = [
            torch.optim.Adam(weights, lr=rate)
            for weights, rate in (
                (self.critic.values(), agent.settings.critic_learning_rate),
                (self.actor.values(), agent.settings.actor_learning_rate),
                ([self.log_alpha], agent.settings.temperature_learning_rate),
            )
        ]

    def sample(self, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        output = policy_output(self.actor, obs)
        mean, log_std = output[:, :2], output[:, 2:]
        low, high = self.settings.log_std_low, self.settings.log_std_high
        if self.settings.log_std_by == "clip":
            log_std = log_std.clamp(low, high)
        else:
            log_std = low + 0.5 * (high - low) * (log_std.tanh() + 1)
        before = mean + log_std.exp() * noise.double()
        squashed = TanhTransform().log_abs_det_jacobian(before, before.tanh())
        return before.tanh(), (Normal(mean, log_std.exp()).log_prob(before) - squashed).sum(1)

    def critic_losses(self, batch, noise: Tensor, chosen: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Mean squared errors to y, and beta times the inner products of all heads."""
        obs, action, next_obs = batch.obs.double(), batch.action.double(), batch.next_obs.double()
        next_action, log_prob = self.sample(next_obs, noise)
        next_q, next_phi = zip(
            *(one_head(self.target_critic, i, next_obs, next_action) for i in range(self.heads)), strict=True
        )
        lowest = torch.stack([next_q[i] for i in chosen]).min(0).values
        soft_value = lowest - self.log_alpha.exp() * log_prob
        y = (batch.reward.double() + batch.discount.double() * soft_value).detach()
        td, peer = torch.zeros(()), torch.zeros(())
        for i in range(self.heads):
            q, phi = one_head(self.critic, i, obs, action)
            td = td + ((q - y) ** 2).mean()
            peer = peer + self.beta * (phi * next_phi[i].detach()).sum(1).mean()
        return td, peer

    def actor_loss(self, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        action, log_prob = self.sample(obs.double(), noise)
        q = torch.stack([one_head(self.critic, i, obs.double(), action)[0] for i in range(self.heads)])
        value = q.mean(0) if self.average else q.min(0).values
        return (self.log_alpha.exp().detach() * log_prob - value).mean(), log_prob.detach()

    def update(self, batch, noise: Tensor, policy_noise: Tensor | None, index: int, chosen=(0, 1)) -> dict[str, Tensor]:
        """Without ``policy_noise`` the policy is not due."""
        td, peer = self.critic_losses(batch, noise, chosen)
        losses = {"td_loss": td, "regularizer": peer}
        due = policy_noise is not None
        if due and self.policy_first:
            losses |= self.update_policy(batch, policy_noise)
        descend(self.optimizers[0], list(self.critic.values()), td + peer)
        if due and not self.policy_first:
            losses |= self.update_policy(batch, policy_noise)
        if index % self.settings.target_every == self.settings.target_every - 1:
            follow(self.target_critic, self.critic, self.settings.tau)
        return losses

    def update_policy(self, batch, noise: Tensor) -> dict[str, Tensor]:
        loss, log_prob = self.actor_loss(batch.obs, noise)
        descend(self.optimizers[1], list(self.actor.values()), loss)
        temperature_loss = -(self.log_alpha * (log_prob + self.target_entropy)).mean()
        descend(self.optimizers[2], [self.log_alpha], temperature_loss)
        return {"actor_loss": loss, "entropy": -log_prob.mean(), "temperature": self.log_alpha.exp()}


class PlainREDQ(PlainSAC):
    """The order of the authors' code: the actor's loss reads the critics before their step."""

    policy_first = True

    def __init__(self, agent, beta: float, *, heads: int) -> None:
        super().__init__(agent, beta, heads=heads, average=True)


class PlainDQN:
    """From vectors or frames, as its settings say; ``update`` takes the views of s and s' that the agent saw."""

    def __init__(self, agent, beta: float) -> None:
        self.settings, self.beta = agent.settings, beta
        self.critic, self.target = copies(agent.critic), copies(agent.target)
        rate, epsilon = agent.settings.learning_rate, agent.settings.adam_epsilon
        self.optimizer = torch.optim.Adam(self.critic.values(), lr=rate, eps=epsilon)

    def convolutions(self, weights: Weights, frames: Tensor) -> Tensor:
        x, encoder = (frames.double() / 255 if frames.dtype == torch.uint8 else frames.double()), self.settings.encoder
        for index, (kernel, stride) in enumerate(zip(encoder.kernels, encoder.strides, strict=True)):
            if encoder.padding == "same":
                height, width = (max(0, (-(-side // stride) - 1) * stride + kernel - side) for side in x.shape[-2:])
                x = F.pad(x, (width // 2, width - width // 2, height // 2, height - height // 2))
            name = f"encoder.layers.{index}"
            x = F.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], stride).clamp(min=0)
        return x.reshape(len(x), -1)

    def forward(self, weights: Weights, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Q (B, actions), and what PEER reads (B, D)."""
        conv = x = self.convolutions(weights, obs) if "encoder.layers.0.weight" in weights else obs.double()
        for index in range(len(self.settings.critic.hidden) - 1):
            x = layer(x, weights, f"trunk.{2 * index}").clamp(min=0)
        if self.settings.dueling:
            of_value, of_advantage = (layer(x, weights, f"streams.{stream}.0").clamp(min=0) for stream in (0, 1))
            advantage = layer(of_advantage, weights, "heads.1")
            q = layer(of_value, weights, "heads.0") + advantage - advantage.sum(1, keepdim=True) / advantage.shape[1]
            phi = torch.cat([of_value, of_advantage], 1)
        else:
            phi = layer(x, weights, "streams.0.0").clamp(min=0)
            q = layer(phi, weights, "heads.0")
        return q, conv if self.settings.features == "conv" else phi

    def losses(self, batch, obs: Tensor, next_obs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean squared or Huber's error to y, and beta times the inner product."""
        next_q, next_phi = self.forward(self.target, next_obs)
        chooser = self.forward(self.critic, next_obs)[0] if self.settings.double else next_q
        rows = torch.arange(len(next_q))
        y = batch.reward.double() + batch.discount.double() * next_q[rows, chooser.argmax(1)]
        q, phi = self.forward(self.critic, obs)
        error = q[rows, batch.action] - y.detach()
        if self.settings.loss == "huber":
            cost = torch.where(error.abs() < 1, 0.5 * error**2, error.abs() - 0.5)
        else:
            cost = error**2
        return cost.mean(), self.beta * (phi * next_phi.detach()).sum(1).mean()

    def update(self, batch, obs: Tensor, next_obs: Tensor, index: int) -> dict[str, Tensor]:
        td, peer = self.losses(batch, obs, next_obs)
        weights = list(self.critic.values())
        for weight, gradient in zip(weights, torch.autograd.grad(td + peer, weights), strict=True):
            weight.grad = gradient
        if self.settings.max_gradient_norm is not None:
            torch.nn.utils.clip_grad_norm_(weights, self.settings.max_gradient_norm)
        self.optimizer.step()
        if index % self.settings.target_every == self.settings.target_every - 1:
            follow(self.target, self.critic, self.settings.tau)
        return {"td_loss": td, "regularizer": peer}
