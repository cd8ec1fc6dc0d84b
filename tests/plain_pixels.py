"""CURL, DrQ and SAC+AE on SAC, and DrQ-v2, written out in float64, one head and one view at a time.

Nothing of the package is called here. An agent's weights are copied once; from then on both learn by themselves. Random
numbers come from a stream that begins where the agent's does.
"""

from functools import partial

import torch
from plain_agents import Weights, copies, descend, follow, layer
from torch import Tensor
from torch.distributions import Normal
from torch.distributions.transforms import TanhTransform
from torch.nn import functional as F


def crops(frames: Tensor, size: int, last: int, generator: torch.Generator) -> Tensor:
    """Squares at offsets from 0 to ``last``, rows first."""
    top, left = (torch.randint(last + 1, (len(frames),), generator=generator) for _ in range(2))
    return torch.stack([x[:, i : i + size, j : j + size] for x, i, j in zip(frames, top, left, strict=True)])


def shifts(frames: Tensor, pad: int, generator: torch.Generator) -> Tensor:
    padded = F.pad(frames.double(), (pad, pad, pad, pad), mode="replicate")
    return crops(padded, frames.shape[-1], 2 * pad, generator)


def convolutions(weights: Weights, frames: Tensor, strides: tuple[int, ...]) -> Tensor:
    x = frames
    for index, stride in enumerate(strides):
        x = F.conv2d(x, weights[f"layers.{index}.weight"], weights[f"layers.{index}.bias"], stride).clamp(min=0)
    return x.reshape(len(x), -1)


def latent(weights: Weights, code: Tensor, tanh: bool) -> Tensor:
    x = layer(code, weights, "latent.linear")
    x = (x - x.mean(1, keepdim=True)) / (x.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    x = x * weights["latent.norm.weight"] + weights["latent.norm.bias"]
    return x.tanh() if tanh else x


def one_head(
    weights: Weights, head: int, code: Tensor, action: Tensor, tanh: bool, linear_phi: bool = False
) -> tuple[Tensor, Tensor]:
    """Q (B,) and phi (B, D) of one critic."""
    x = torch.cat([latent(weights, code, tanh), action], 1)
    x = layer(x, weights, "heads.layers.0", head).clamp(min=0)
    phi = layer(x, weights, "heads.layers.1", head)
    phi = phi if linear_phi else phi.clamp(min=0)
    return layer(phi, weights, "heads.head", head)[:, 0], phi


def policy_output(weights: Weights, code: Tensor, tanh: bool) -> Tensor:
    x = layer(latent(weights, code, tanh), weights, "policy.trunk.0").clamp(min=0)
    return layer(layer(x, weights, "policy.trunk.2").clamp(min=0), weights, "policy.head")


class PlainPixelSAC:
    """``pairing`` says which target (view, head) each (view, head) meets; anything but its own is wrong."""

    def __init__(self, kind: str, agent, beta: float, pairing=lambda view, head: (view, head)) -> None:
        self.kind, self.settings, self.beta, self.pairing = kind, agent.settings, beta, pairing
        self.one_head = partial(one_head, linear_phi=getattr(agent.settings, "linear_phi", False))
        self.views = 2 if kind == "drq-sac" else 1
        self.encoder, self.target_encoder = copies(agent.encoder), copies(agent.target_encoder)
        self.actor, self.critic = copies(agent.sac.actor), copies(agent.sac.critic)
        self.target_critic = copies(agent.sac.target_critic)
        self.log_alpha = agent.sac.log_temperature.detach().double().clone().requires_grad_()
        s = agent.settings
        self.of_critic = [*self.encoder.values(), *self.critic.values()]
        self.critic_optimizer = torch.optim.Adam(self.of_critic, s.critic_learning_rate)
        self.actor_optimizer = torch.optim.Adam(self.actor.values(), s.actor_learning_rate)
        betas = (s.temperature_beta1, 0.999)
        self.alpha_optimizer = torch.optim.Adam([self.log_alpha], s.temperature_learning_rate, betas=betas)
        self.encoding = [
            *self.encoder.values(),
            *(weight for name, weight in self.critic.items() if name.startswith("latent.")),
        ]
        if kind == "curl-sac":
            self.bilinear = agent.auxiliary.bilinear.detach().double().clone().requires_grad_()
            rate = s.contrastive_learning_rate
            self.auxiliary = [torch.optim.Adam([*self.encoding, self.bilinear], rate)]
            self.auxiliary += [torch.optim.Adam(self.encoding, rate)] * s.step_encoder_twice
        if kind == "sac-ae":
            self.decoder, rate = copies(agent.auxiliary.decoder), s.reconstruction_learning_rate
            decay = s.decoder_decay
            self.auxiliary = [torch.optim.Adam(self.encoding, rate)]
            self.auxiliary += [torch.optim.Adam(self.decoder.values(), rate, weight_decay=decay)]

    def look(self, frames: Tensor, generator: torch.Generator) -> list[Tensor]:
        """The views, in [0, 1]."""
        if self.kind == "curl-sac":
            last = frames.shape[-1] - self.settings.crop - self.settings.omit_last_offset
            return [crops(frames, self.settings.crop, last, generator).double() / 255]
        if self.kind == "drq-sac":
            return [shifts(frames, self.settings.shift, generator) / 255 for _ in range(2)]
        return [frames.double() / 255]

    def code(self, weights: Weights, frames: Tensor) -> Tensor:
        return convolutions(weights, frames, self.settings.encoder.strides)

    def sample(self, code: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = policy_output(self.actor, code, self.settings.latent_tanh).chunk(2, 1)
        log_std = -10 + 6 * (log_std.tanh() + 1)
        before = mean + log_std.exp() * noise
        squashed = TanhTransform().log_abs_det_jacobian(before, before.tanh())
        return before.tanh(), (Normal(mean, log_std.exp()).log_prob(before) - squashed).sum(1)

    def critic_losses(self, batch, views: list[Tensor], next_views: list[Tensor], noise: Tensor):
        """Mean squared errors to y, and beta times the inner products, summed over views and heads."""
        tanh, action, ys, next_phi = self.settings.latent_tanh, batch.action.double(), [], {}
        for k, (view, its_noise) in enumerate(zip(next_views, noise.chunk(self.views), strict=True)):
            next_action, log_prob = self.sample(self.code(self.encoder, view), its_noise)
            code = self.code(self.target_encoder, view)
            both = [self.one_head(self.target_critic, i, code, next_action, tanh) for i in range(2)]
            soft = torch.minimum(both[0][0], both[1][0]) - self.log_alpha.exp() * log_prob
            ys.append(batch.reward.double() + batch.discount.double() * soft)
            next_phi |= {(k, i): both[i][1].detach() for i in range(2)}
        y = (sum(ys) / len(ys)).detach()
        td, peer = torch.zeros(()), torch.zeros(())
        for k, view in enumerate(views):
            code = self.code(self.encoder, view)
            for i in range(2):
                q, phi = self.one_head(self.critic, i, code, action, tanh)
                td = td + ((q - y) ** 2).mean()
                peer = peer + self.beta * (phi * next_phi[self.pairing(k, i)]).sum(1).mean()
        return td, peer

    def contrastive(self, anchors: Tensor, positives: Tensor) -> Tensor:
        queries = latent(self.critic, self.code(self.encoder, anchors), tanh=False)
        keys = latent(self.target_critic, self.code(self.target_encoder, positives), tanh=False).detach()
        total = torch.zeros(())
        for row, query in enumerate(queries):
            similarities = torch.stack([query @ self.bilinear @ key for key in keys])
            total = total - torch.log(similarities.softmax(0)[row])
        return total / len(queries)

    def reconstruction(self, frames: Tensor, noise: Tensor) -> Tensor:
        code = latent(self.critic, self.code(self.encoder, frames.double() / 255), tanh=True)
        x = layer(code, self.decoder, "linear").clamp(min=0).view(len(code), 5, 4, 4)  # 14 -> 6 -> 4
        x = F.conv_transpose2d(x, self.decoder["layers.0.weight"], self.decoder["layers.0.bias"], 1).clamp(min=0)
        x = F.conv_transpose2d(x, self.decoder["layers.1.weight"], self.decoder["layers.1.bias"], 2, output_padding=1)
        wanted = (torch.div(frames.long(), 8, rounding_mode="floor") + noise.double()) / 32 - 0.5
        return ((x - wanted) ** 2).mean() + self.settings.latent_penalty * (0.5 * (code**2).sum(1)).mean()

    def update(self, batch, index: int, generator: torch.Generator) -> dict[str, Tensor]:
        views, next_views = self.look(batch.obs, generator), self.look(batch.next_obs, generator)
        rows = len(batch.reward)
        noise = torch.randn(self.views * rows, 2, generator=generator).double()
        code = self.code(self.encoder, views[0]).detach()  # before the critics' step
        td, peer = self.critic_losses(batch, views, next_views, noise)
        descend(self.critic_optimizer, self.of_critic, td + peer)
        losses = {"td_loss": td, "regularizer": peer}
        if index % self.settings.policy_every == self.settings.policy_every - 1:
            losses |= self.update_policy(code, torch.randn(rows, 2, generator=generator).double())
        if index % self.settings.target_every == self.settings.target_every - 1:
            follow(self.target_encoder, self.encoder, self.settings.encoder_tau)
            for name in self.critic:
                tau = self.settings.encoder_tau if name.startswith("latent.") else self.settings.tau
                follow({name: self.target_critic[name]}, self.critic, tau)
        if self.kind != "drq-sac":
            losses["auxiliary_loss"] = self.further_step(batch.obs, views[0], generator)
        return losses

    def update_policy(self, code: Tensor, noise: Tensor) -> dict[str, Tensor]:
        action, log_prob = self.sample(code, noise)
        q = [self.one_head(self.critic, i, code, action, self.settings.latent_tanh)[0] for i in range(2)]
        loss = (self.log_alpha.exp().detach() * log_prob - torch.minimum(*q)).mean()
        descend(self.actor_optimizer, list(self.actor.values()), loss)
        log_prob = log_prob.detach()
        descend(self.alpha_optimizer, [self.log_alpha], -(self.log_alpha * (log_prob - 2)).mean())
        return {"actor_loss": loss, "entropy": -log_prob.mean(), "temperature": self.log_alpha.exp()}

    def further_step(self, frames: Tensor, view: Tensor, generator: torch.Generator) -> Tensor:
        if self.kind == "curl-sac":
            (positives,) = self.look(frames, generator)
            loss, learned = self.contrastive(view, positives), [*self.encoding, self.bilinear]
        else:
            noise = torch.rand(frames.shape, generator=generator)
            loss, learned = self.reconstruction(frames, noise), [*self.encoding, *self.decoder.values()]
        for weight, gradient in zip(learned, torch.autograd.grad(loss, learned), strict=True):
            weight.grad = gradient
        for optimizer in self.auxiliary:
            optimizer.step()
        return loss


class PlainDrQv2:
    """DDPG with twin critics; the target critics read the online encoder's code."""

    def __init__(self, agent, beta: float) -> None:
        self.settings, self.beta = agent.settings, beta
        parts = (agent.encoder, agent.actor, agent.critic, agent.target_critic)
        self.encoder, self.actor, self.critic, self.target_critic = map(copies, parts)
        self.of_critic = [*self.encoder.values(), *self.critic.values()]
        self.critic_optimizer = torch.optim.Adam(self.of_critic, agent.settings.critic_learning_rate)
        self.actor_optimizer = torch.optim.Adam(self.actor.values(), agent.settings.actor_learning_rate)

    def code(self, frames: Tensor) -> Tensor:
        return convolutions(self.encoder, frames / 255 - 0.5, self.settings.encoder.strides)

    def policy(self, code: Tensor) -> Tensor:
        return policy_output(self.actor, code, tanh=True).tanh()

    def critic_losses(self, batch, obs: Tensor, next_obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        code, next_code = self.code(obs), self.code(next_obs).detach()
        next_action = (self.policy(next_code) + noise).clamp(-1, 1).detach()
        both = [one_head(self.target_critic, i, next_code, next_action, tanh=True) for i in range(2)]
        y = batch.reward.double() + batch.discount.double() * torch.minimum(both[0][0], both[1][0]).detach()
        td, peer = torch.zeros(()), torch.zeros(())
        for i in range(2):
            q, phi = one_head(self.critic, i, code, batch.action.double(), tanh=True)
            td = td + ((q - y) ** 2).mean()
            peer = peer + self.beta * (phi * both[i][1].detach()).sum(1).mean()
        return td, peer

    def actor_gradients(self, code: Tensor, noise: Tensor) -> tuple[Tensor, list[Tensor]]:
        """By the chain rule: dQ/da at the action that was cut off, times da/dtheta of the one that was not."""
        action = self.policy(code)
        cut = (action + noise).clamp(-1, 1).detach().requires_grad_()
        loss = -torch.minimum(*(one_head(self.critic, i, code, cut, tanh=True)[0] for i in range(2))).mean()
        (slope,) = torch.autograd.grad(loss, cut)
        return loss, list(torch.autograd.grad((slope * action).sum(), list(self.actor.values())))

    def update(self, batch, std: float, generator: torch.Generator) -> dict[str, Tensor]:
        def smoothing() -> Tensor:
            noise = std * torch.randn(len(batch.reward), 2, generator=generator).double()
            return noise.clamp(-self.settings.smoothing_clip, self.settings.smoothing_clip)

        obs, next_obs = (shifts(x, self.settings.shift, generator) for x in (batch.obs, batch.next_obs))
        self._code_before = self.code(obs).detach()
        td, peer = self.critic_losses(batch, obs, next_obs, smoothing())
        losses, noise = {"td_loss": td, "regularizer": peer}, smoothing()
        gradients = torch.autograd.grad(td + peer, self.of_critic)

        def critics() -> None:
            step(self.critic_optimizer, self.of_critic, gradients)

        def actor() -> None:
            losses["actor_loss"], of_actor = self.actor_gradients(self.code_for_actor(obs), noise)
            step(self.actor_optimizer, list(self.actor.values()), of_actor)

        self.steps(critics, actor, lambda: follow(self.target_critic, self.critic, self.settings.tau))
        return losses

    def steps(self, critics, actor, target) -> None:
        """The authors' order."""
        critics()
        actor()
        target()

    def code_for_actor(self, obs: Tensor) -> Tensor:
        """From before the encoder's step."""
        return self._code_before


def step(optimizer: torch.optim.Optimizer, weights: list[Tensor], gradients) -> None:
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.grad = gradient
    optimizer.step()
