"""TD-MPC written out in float64, one head, step and candidate at a time: what our agent must equal.

Nothing of the package is called here. The agent's weights are copied once; from then on both learn by themselves.
"""

import torch
from plain_agents import Weights, copies, follow
from torch import Tensor
from torch.nn import functional as F


def three_layers(x: Tensor, weights: Weights, name: str) -> Tensor:
    for index in (0, 2, 4):
        x = F.linear(x, weights[f"{name}.{index}.weight"], weights[f"{name}.{index}.bias"])
        x = F.elu(x) if index < 4 else x
    return x


def encode(obs: Tensor, weights: Weights, prefix: str = "") -> Tensor:
    """One hidden layer for a vector; two convolutions of stride 2 and a linear layer for frames from 0 to 255."""
    if obs.dim() == 2:
        hidden = F.elu(F.linear(obs, weights[f"{prefix}0.weight"], weights[f"{prefix}0.bias"]))
        return F.linear(hidden, weights[f"{prefix}2.weight"], weights[f"{prefix}2.bias"])
    for index in range(2):
        name = f"{prefix}0.layers.{index}"
        obs = F.conv2d(obs if index else obs / 255, weights[f"{name}.weight"], weights[f"{name}.bias"], stride=2)
        obs = obs.clamp(min=0)
    return F.linear(obs.flatten(1), weights[f"{prefix}1.weight"], weights[f"{prefix}1.bias"])


def one_head(z: Tensor, action: Tensor, weights: Weights, head: int, prefix: str = "") -> tuple[Tensor, Tensor]:
    """Q (B,) and phi (B, D) of one critic."""

    def of(name: str) -> Tensor:
        return weights[f"{prefix}{name}"][head]

    x = torch.cat([z, action], -1) @ of("first.weight") + of("first.bias")
    x = F.layer_norm(x, x.shape[-1:], of("norm.weight")[0], of("norm.bias")[0])
    phi = F.elu(torch.tanh(x) @ of("second.weight") + of("second.bias"))
    return (phi @ of("head.weight") + of("head.bias"))[:, 0], phi


class PlainTDMPC:
    """Its own weights, optimizers and losses."""

    def __init__(self, agent, beta: float) -> None:
        self.settings, self.beta, self.weights = agent.settings, beta, copies(agent.model)
        self.target_encoder, self.target_critic = copies(agent.target_encoder), copies(agent.target_critic)
        policy = {name for name in self.weights if name.startswith("policy")}
        self.of_policy = [self.weights[name] for name in self.weights if name in policy]
        self.of_model = [self.weights[name] for name in self.weights if name not in policy]
        self.optimizer = torch.optim.Adam(self.of_model, lr=self.settings.learning_rate)
        self.policy_optimizer = torch.optim.Adam(self.of_policy, lr=self.settings.learning_rate)

    def pi(self, z: Tensor, noise: Tensor | None = None) -> Tensor:
        action = torch.tanh(three_layers(z, self.weights, "policy"))
        if noise is None:
            return action
        clip = self.settings.smoothing_clip
        noisy = action + (self.settings.smoothing_noise * noise).clamp(-clip, clip)
        return noisy - noisy.detach() + noisy.detach().clamp(-1 + 1e-6, 1 - 1e-6)

    def values(self, z: Tensor, action: Tensor) -> list[Tensor]:
        return [one_head(z, action, self.weights, head, "critic.")[0] for head in range(2)]

    def losses(self, batch, views: list[Tensor], noise: Tensor):
        """Value loss, PEER's term, model loss, the latents and the priorities; ``views`` are s_0 to s_L as seen."""
        settings, (steps, rows) = self.settings, batch.mask.shape
        z = encode(views[0], self.weights, "encoder.")
        latents, peer = [z], torch.zeros(())
        per_row = {name: torch.zeros(rows) for name in ("value", "consistency", "reward", "priority")}
        for t in range(steps):
            action, rho = batch.action[t], settings.decay**t * batch.mask[t]
            with torch.no_grad():
                next_z = encode(views[t + 1], self.weights, "encoder.")
                wanted = encode(views[t + 1], self.target_encoder)
                next_action = self.pi(next_z, noise[t])
                targets = [one_head(next_z, next_action, self.target_critic, head) for head in range(2)]
                y = batch.reward[t] + batch.discount[t] * torch.minimum(targets[0][0], targets[1][0])
            for head in range(2):
                q, phi = one_head(z, action, self.weights, head, "critic.")
                per_row["value"] = per_row["value"] + rho * (q - y) ** 2
                per_row["priority"] = per_row["priority"] + rho * (q - y).abs().detach()
                peer = peer + self.beta * (rho * (phi * targets[head][1]).sum(1)).mean()
            reward = three_layers(torch.cat([z, action], 1), self.weights, "reward_head")[:, 0]
            per_row["reward"] = per_row["reward"] + rho * (reward - batch.reward[t]) ** 2
            z = three_layers(torch.cat([z, action], 1), self.weights, "dynamics")
            per_row["consistency"] = per_row["consistency"] + rho * ((z - wanted) ** 2).mean(1)
            latents.append(z)
        cut = {name: row.clamp(max=settings.largest_loss) for name, row in per_row.items()}
        weight = torch.ones(rows) if batch.weight is None else batch.weight
        value, consistency, reward = ((weight * cut[name]).mean() for name in ("value", "consistency", "reward"))
        model = settings.consistency_weight * consistency + settings.reward_weight * reward
        return value, peer, model, latents, cut["priority"] + 1e-6

    def update(self, batch, views: list[Tensor], noise: Tensor, policy_noise: Tensor, index: int):
        """The losses of one update, and the priorities."""
        settings, steps = self.settings, len(batch.mask)
        value, peer, model, latents, priorities = self.losses(batch, views, noise)
        self._descend(self.optimizer, self.of_model, (settings.value_weight * (value + peer) + model) / steps)
        policy = torch.zeros(())
        for t, latent in enumerate(latents):
            z = latent.detach()
            lowest = torch.minimum(*self.values(z, self.pi(z, policy_noise[t])))
            there = batch.mask[t - 1] if t else torch.ones(len(lowest))
            policy = policy - settings.decay**t * (there * lowest).mean()
        self._descend(self.policy_optimizer, self.of_policy, policy)
        if index % settings.target_every == settings.target_every - 1:
            for target, prefix in ((self.target_encoder, "encoder."), (self.target_critic, "critic.")):
                follow(target, {name: self.weights[prefix + name].detach() for name in target}, settings.tau)
        return {"td_loss": value, "regularizer": peer, "model_loss": model, "actor_loss": policy}, priorities

    def _descend(self, optimizer: torch.optim.Optimizer, weights: list[Tensor], loss: Tensor) -> None:
        for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            weight.grad = gradient
        torch.nn.utils.clip_grad_norm_(weights, self.settings.max_gradient_norm)
        optimizer.step()

    @torch.no_grad()
    def plan(self, obs: Tensor, before: Tensor | None, rng: torch.Generator, *, horizon: int, least: float, explore):
        """The action, and the mean that the next plan starts from; draws as many numbers in the same order."""
        settings, planner = self.settings, self.settings.planner
        start, actions = encode(obs, self.weights, "encoder."), len(self.weights["policy.4.bias"])
        z, sequences = start.repeat(int(settings.policy_fraction * planner.samples), 1), []
        for _ in range(horizon):
            sequences.append(self.pi(z, torch.randn(len(z), actions, generator=rng)))
            z = three_layers(torch.cat([z, sequences[-1]], 1), self.weights, "dynamics")
        mean, std = torch.zeros(horizon, actions), torch.full((horizon, actions), planner.std_start)
        if before is not None:
            for t in range(min(horizon, len(before) - 1)):
                mean[t] = before[t + 1]
        for _ in range(planner.iterations):
            noise = torch.randn(horizon, planner.samples, actions, generator=rng)
            candidates = [(mean + std * noise[:, n]).clamp(-1, 1) for n in range(planner.samples)]
            candidates += [torch.stack([step[n] for step in sequences]) for n in range(len(sequences[0]))]
            last = torch.randn(len(candidates), actions, generator=rng)
            values = [self._value(start, one, last[n : n + 1]) for n, one in enumerate(candidates)]
            order = sorted(range(len(values)), key=lambda n: -values[n])[: planner.elites]
            weights = torch.tensor([planner.temperature * (values[n] - values[order[0]]) for n in order]).exp()
            weights = weights / weights.sum()
            centre = sum(w * candidates[n] for w, n in zip(weights, order, strict=True))
            spread = sum(w * (candidates[n] - centre) ** 2 for w, n in zip(weights, order, strict=True)) ** 0.5
            mean = planner.momentum * mean + (1 - planner.momentum) * centre
            std = spread.clamp(least, planner.std_start)
        mark, index = torch.rand(1, generator=rng).item() * weights.sum().item(), 0
        while index < len(order) - 1 and weights[: index + 1].sum().item() <= mark:
            index += 1
        action = candidates[order[index]][0]
        if explore:
            action = action + std[0] * torch.randn(actions, generator=rng)
        return action.clamp(-1, 1), mean

    def _value(self, z: Tensor, actions: Tensor, noise: Tensor) -> float:
        total, gamma = torch.zeros(()), self.settings.planning_discount
        for t, action in enumerate(actions):
            both = torch.cat([z, action[None]], 1)
            total = total + gamma**t * three_layers(both, self.weights, "reward_head")[0, 0]
            z = three_layers(both, self.weights, "dynamics")
        lowest = torch.minimum(*self.values(z, self.pi(z, noise)))
        return (total + gamma ** len(actions) * lowest[0]).item()
