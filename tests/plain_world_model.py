"""PlaNet's, Dreamer's and Dreamer-V2's losses written out in float64, one state at a time: what our agents must equal.

Nothing of ours is called here. The agent's weights are copied; noise is drawn in the order in which the agent draws it.
"""

import math

import torch
from plain_agents import Weights, copies
from torch import Tensor
from torch.distributions import Categorical, Normal, kl_divergence
from torch.nn import functional as F


def mlp(x: Tensor, weights: Weights, prefix: str = "", activation=F.elu, *, last: bool = False) -> Tensor:
    """Linear layers with an activation between them, and behind the last one if asked."""
    places = sorted({int(name[len(prefix) :].split(".")[0]) for name in weights if name.startswith(prefix)})
    for place in places:
        x = x @ weights[f"{prefix}{place}.weight"].T + weights[f"{prefix}{place}.bias"]
        x = activation(x) if last or place != places[-1] else x
    return x


class PlainWorldModel:
    """A state is (belief, sample); ``categorical`` models have Dreamer-V2's GRU, the others PyTorch's."""

    def __init__(self, agent) -> None:
        self.settings, self.weights = agent.settings, copies(agent.model)
        self.config = agent.settings.rssm
        self.categorical = self.config.latent == "categorical"
        self.activation = F.relu if self.config.activation == "relu" else F.elu

    def mlp(self, x: Tensor, prefix: str) -> Tensor:
        return mlp(x, self.weights, prefix, self.activation)

    def layer(self, x: Tensor, name: str) -> Tensor:
        return x @ self.weights[f"rssm.{name}.weight"].T + self.weights[f"rssm.{name}.bias"]

    def gru(self, x: Tensor, h: Tensor) -> Tensor:
        of = lambda name: self.weights[f"rssm.gru.{name}"]  # noqa: E731
        if self.categorical:
            sums = torch.cat([x, h], -1) @ of("gates.weight").T + of("gates.bias")
            sums = F.layer_norm(sums, sums.shape[-1:], of("norm.weight"), of("norm.bias"), eps=1e-3)
            reset, candidate, update = sums.chunk(3, -1)
            update = torch.sigmoid(update - 1)
            return update * torch.tanh(torch.sigmoid(reset) * candidate) + (1 - update) * h
        of_x, of_h = (x @ of("weight_ih").T + of("bias_ih")).chunk(3, -1), (h @ of("weight_hh").T).chunk(3, -1)
        bias = of("bias_hh").chunk(3)
        reset, keep = (torch.sigmoid(of_x[i] + of_h[i] + bias[i]) for i in range(2))
        return (1 - keep) * torch.tanh(of_x[2] + reset * (of_h[2] + bias[2])) + keep * h

    def distribution(self, name: str, x: Tensor):
        """p(s | h) for ``prior``, q(s | h, e) for ``posterior``."""
        outputs = self.layer(self.activation(self.layer(x, f"{name}.0")), f"{name}.2")
        if self.categorical:
            return Categorical(logits=outputs.view(len(x), self.config.variables, self.config.classes))
        mean, std = outputs.chunk(2, -1)
        return Normal(mean, F.softplus(std) + self.config.least_std)

    def noise(self, rows: int, rng: torch.Generator) -> Tensor:
        draw = torch.rand if self.categorical else torch.randn
        return draw(rows, self.config.variables, generator=rng)

    def sample(self, distribution, noise: Tensor) -> Tensor:
        if not self.categorical:
            return distribution.mean + distribution.stddev * noise
        return torch.cat([one_hot(distribution.probs[:, i], noise[:, i]) for i in range(self.config.variables)], -1)

    def step(self, state: tuple[Tensor, Tensor], action: Tensor, rng: torch.Generator):
        """The next state by the prior, and the prior."""
        belief, sample = state
        belief = self.gru(self.activation(self.layer(torch.cat([sample, action], -1), "before.0")), belief)
        prior = self.distribution("prior", belief)
        return (belief, self.sample(prior, self.noise(len(belief), rng))), prior

    def kl(self, posterior, prior, seen: Tensor) -> Tensor:
        """Over (T, B) lists of distributions: the free nats, and Dreamer-V2's balance."""
        settings = self.settings

        def beyond(mine, theirs) -> Tensor:
            found = torch.stack([kl_divergence(*pair).sum(-1) for pair in zip(mine, theirs, strict=True)])
            if settings.free_nats_per_step:
                return ((found - settings.free_nats).clamp(min=0) * seen).sum() / seen.sum()
            return ((found * seen).sum() / seen.sum()).clamp(min=settings.free_nats)

        if settings.kl_balance == 0.5:
            return beyond(posterior, prior)
        fixed_posterior, fixed_prior = ([still(one) for one in part] for part in (posterior, prior))
        share = settings.kl_balance
        return share * beyond(fixed_posterior, prior) + (1 - share) * beyond(posterior, fixed_prior)

    def loss(self, batch, rng: torch.Generator):
        """The loss, the posterior features without a gradient as belief and sample, and which rows go on."""
        settings, (steps, rows) = self.settings, batch.mask.shape
        acted = [batch.previous_action, *batch.action]
        state = torch.zeros(rows, self.config.belief), torch.zeros(rows, self.state_size)
        posteriors, priors, states = [], [], []
        for t in range(steps + 1):
            action = acted[t]
            action = F.one_hot(action, self.actions).double() if action.dtype == torch.int64 else action
            if t == 0:
                action = action * (1 - batch.first)[:, None]
            state, prior = self.step(state, action, rng)
            encoded = mlp(batch.obs[t], self.weights, "encoder.", self.activation, last=True)
            posterior = self.distribution("posterior", torch.cat([state[0], encoded], -1))
            state = state[0], self.sample(posterior, self.noise(rows, rng))
            for kept, one in zip((posteriors, priors, states), (posterior, prior, state), strict=True):
                kept.append(one)
        features = torch.stack([torch.cat(one, -1) for one in states])
        seen = torch.cat([torch.ones(1, rows), batch.mask])
        errors = (self.mlp(features, "decoder.") - batch.obs).square().sum(-1)
        total = 0.5 * (errors * seen).sum() / seen.sum()
        known = torch.cat([batch.first[None], batch.mask])  # a window's first reward is 0 where an episode begins
        rewards = torch.cat([torch.zeros(1, rows), batch.reward])
        rewards = torch.tanh(rewards) if settings.tanh_rewards else rewards
        missed = (self.reward(features) - rewards).square()
        total = total + settings.reward_weight * 0.5 * (missed * known).sum() / known.sum()
        total = total + settings.kl_weight * self.kl(posteriors, priors, seen)
        goes_on = torch.cat([torch.ones(1, rows), (batch.discount > 0).double()])
        if settings.predict_end:
            chance = torch.sigmoid(self.mlp(features, "end_head.")[..., 0])
            surprise = -(goes_on * chance.log() + (1 - goes_on) * (1 - chance).log())
            total = total + settings.end_weight * (surprise * known).sum() / known.sum()
        starts = tuple(torch.cat([state[part] for state in states]).detach() for part in range(2))
        return total, starts, (seen * goes_on).flatten()

    @property
    def state_size(self) -> int:
        return self.config.variables * (self.config.classes if self.categorical else 1)

    @property
    def actions(self) -> int:
        return self.weights["rssm.before.0.weight"].shape[1] - self.state_size

    def reward(self, features: Tensor) -> Tensor:
        return self.mlp(features, "reward_head.")[..., 0]

    def continues(self, features: Tensor) -> Tensor:
        if not self.settings.predict_end:
            return torch.ones(features.shape[:-1])
        return torch.sigmoid(self.mlp(features, "end_head.")[..., 0])


def still(distribution):
    """The same distribution without a gradient."""
    if isinstance(distribution, Categorical):
        return Categorical(logits=distribution.logits.detach())
    return Normal(distribution.mean.detach(), distribution.stddev.detach())


def one_hot(shares: Tensor, noise: Tensor) -> Tensor:
    """One draw for each row; its gradient is that of the probabilities."""
    drawn = torch.zeros_like(shares)
    for row, limits in enumerate(shares.detach().cumsum(-1)):
        drawn[row, next(i for i, limit in enumerate(limits) if limit > noise[row])] = 1
    return drawn + shares - shares.detach()


class PlainDreamer:
    """Imagined states 1 to H; the return of state k counts the reward of entering it; no target network."""

    def __init__(self, agent) -> None:
        self.model, self.settings = PlainWorldModel(agent), agent.settings
        self.policy, self.critic = copies(agent.policy), copies(agent.critic)

    def draw(self, features: Tensor, rng: torch.Generator) -> Tensor:
        mean, std = mlp(features, self.policy, "layers.").chunk(2, -1)
        mean, std = 5 * torch.tanh(mean / 5), F.softplus(std + math.log(math.exp(5) - 1)) + 1e-4
        return torch.tanh(mean + std * torch.randn(mean.shape, generator=rng))

    def imagine(self, state: tuple[Tensor, Tensor], rng: torch.Generator):
        """The states that actions lead to, and the actions."""
        states, actions = [], []
        for _ in range(self.settings.imagined_steps):
            actions.append(self.draw(torch.cat(state, -1).detach(), rng))
            state, _ = self.model.step(state, actions[-1], rng)
            states.append(torch.cat(state, -1))
        return states, actions

    def returns(self, features: list[Tensor], critic: Weights, discount: list[Tensor]) -> list[Tensor]:
        """R_k for all states but the last, whose value is where they begin."""
        rewards, values = ([part(one) for one in features] for part in (self.model.reward, value_of(critic)))
        found, share = [values[-1]], self.settings.return_lambda
        for k in reversed(range(len(features) - 1)):
            found.insert(0, rewards[k] + discount[k] * ((1 - share) * values[k + 1] + share * found[0]))
        return found[:-1]

    def losses(self, batch, rng: torch.Generator) -> dict[str, Tensor]:
        model_loss, start, valid = self.model.loss(batch, rng)
        features, _ = self.imagine(start, rng)
        discount = [self.settings.imagined_discount * self.model.continues(one) for one in features]
        returns = self.returns(features, self.critic, discount)
        policy_loss, critic_loss, weight = torch.zeros(()), torch.zeros(()), valid
        for k, wanted in enumerate(returns):
            policy_loss = policy_loss - (weight * wanted).sum()
            missed = value_of(self.critic)(features[k].detach()) - wanted.detach()
            critic_loss = critic_loss + (weight * 0.5 * missed.square()).sum()
            weight = weight * discount[k].detach()
        scale = len(returns) * valid.sum()
        return {"model_loss": model_loss, "actor_loss": policy_loss / scale, "critic_loss": critic_loss / scale}


class PlainDreamerV2(PlainDreamer):
    """Imagined states 0 to H; the action of state k answers for R_{k+1}, which bootstraps from the slow critic."""

    def __init__(self, agent) -> None:
        super().__init__(agent)
        self.slow_critic, self.discrete = copies(agent.slow_critic), agent.discrete

    def truncated(self, features: Tensor):
        mean, std = mlp(features, self.policy, "layers.").chunk(2, -1)
        mean, std = torch.tanh(mean), 2 * torch.sigmoid(std / 2) + self.settings.least_action_std
        unit = Normal(torch.zeros(()), torch.ones(()))
        return mean, std, unit.cdf((-1 - mean) / std), unit.cdf((1 - mean) / std)

    def draw(self, features: Tensor, rng: torch.Generator) -> Tensor:
        if self.discrete:
            shares = mlp(features, self.policy, "layers.").softmax(-1)
            return one_hot(shares, torch.rand(len(features), 1, generator=rng)[:, 0])
        mean, std, low, high = self.truncated(features)
        noise = torch.rand(mean.shape, generator=rng)
        return mean + std * Normal(torch.zeros(()), torch.ones(())).icdf(low + noise * (high - low))

    def entropy(self, features: Tensor) -> Tensor:
        if self.discrete:
            return Categorical(logits=mlp(features, self.policy, "layers.")).entropy()
        mean, std, low, high = self.truncated(features)
        unit, mass = Normal(torch.zeros(()), torch.ones(())), high - low
        a, b = (-1 - mean) / std, (1 - mean) / std
        ends = a * unit.log_prob(a).exp() - b * unit.log_prob(b).exp()
        return ((std * mass * math.sqrt(2 * math.pi * math.e)).log() + ends / (2 * mass)).sum(-1)

    def losses(self, batch, rng: torch.Generator) -> dict[str, Tensor]:
        settings = self.settings
        model_loss, start, valid = self.model.loss(batch, rng)
        imagined, actions = self.imagine(start, rng)
        features = [torch.cat(start, -1), *imagined]
        discount = [torch.full_like(valid, settings.imagined_discount)]
        discount += [settings.imagined_discount * self.model.continues(one) for one in imagined]
        returns = self.returns(features, self.slow_critic, discount)  # of states 0 to H - 1
        weights = [valid]
        for one in discount:
            weights.append(weights[-1] * one.detach())
        critic_loss, policy_loss = torch.zeros(()), torch.zeros(())
        for k, wanted in enumerate(returns):
            missed = value_of(self.critic)(features[k].detach()) - wanted.detach()
            critic_loss = critic_loss + (weights[k] * 0.5 * missed.square()).sum()
        for k in range(len(returns) - 1):
            seen = features[k].detach()
            gained = returns[k + 1]
            if self.discrete:
                log_shares = mlp(seen, self.policy, "layers.").log_softmax(-1)
                better = (gained - value_of(self.slow_critic)(seen)).detach()
                gained = (log_shares * actions[k].detach()).sum(-1) * better
            policy_loss = policy_loss - (weights[k] * (gained + settings.entropy_weight * self.entropy(seen))).sum()
        policy_loss = policy_loss / ((len(returns) - 1) * valid.sum())
        critic_loss = critic_loss / (len(returns) * valid.sum())
        return {"model_loss": model_loss, "actor_loss": policy_loss, "critic_loss": critic_loss}


def value_of(critic: Weights):
    return lambda features: mlp(features, critic)[..., 0]
