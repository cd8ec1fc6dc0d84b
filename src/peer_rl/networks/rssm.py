"""The recurrent state-space model (Hafner et al. 2019), which PlaNet, Dreamer and Dreamer-V2 share.

h_t = GRU(h_{t-1}, s_{t-1}, a_{t-1}); prior p(s_t | h_t); posterior q(s_t | h_t, e_t), with e_t the encoded observation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peer_rl.networks.mlp import ACTIVATIONS, linear
from peer_rl.settings.networks import ActorConfig
from peer_rl.settings.world_model import RSSMConfig

GLOROT = ActorConfig(weight_init="xavier", bias_init="zero")
_CLOSED = -1.0
"""Added to the update gate's input, so that a new belief stays close to the old one at first (Dreamer-V2)."""


class State(NamedTuple):
    """A belief and a draw of the stochastic state, with whatever axes before the last."""

    belief: Tensor
    """h, (*rows, belief)"""
    sample: Tensor
    """s, (*rows, S)"""
    statistics: Tensor
    """Means and standard deviations, or logits, of the distribution that s was drawn from, (*rows, P)"""

    @property
    def features(self) -> Tensor:
        """What heads, decoder and policy read, (*rows, belief + S)."""
        return torch.cat([self.belief, self.sample], -1)

    def as_starts(self) -> State:
        """States of (T, B) rows as T * B rows without a gradient, to imagine from."""
        return State(*(part.detach().flatten(0, 1) for part in self))

    def rows(self, index: Tensor | slice | int) -> State:
        """Some of the rows."""
        return State(*(part[index] for part in self))


def stack(states: list[State]) -> State:
    """States one after the other, along a new first axis."""
    return State(*(torch.stack(parts) for parts in zip(*states, strict=True)))


class Gaussian(nn.Module):
    """Independent Gaussians, with a least standard deviation."""

    def __init__(self, config: RSSMConfig) -> None:
        super().__init__()
        self.size = config.variables
        self.outputs = 2 * config.variables
        self.least_std = config.least_std

    def statistics(self, outputs: Tensor) -> Tensor:
        """Mean and standard deviation from a layer's outputs."""
        mean, std = outputs.chunk(2, -1)
        return torch.cat([mean, F.softplus(std) + self.least_std], -1)

    def noise(self, rows: int, rng: torch.Generator) -> Tensor:
        """What one draw for each row needs."""
        return torch.randn(rows, self.size, generator=rng, device=rng.device)

    def draw(self, statistics: Tensor, noise: Tensor) -> Tensor:
        """The mean plus std * noise."""
        mean, std = statistics.chunk(2, -1)
        return mean + std * noise

    def divergence(self, posterior: Tensor, prior: Tensor) -> Tensor:
        """KL(posterior || prior), summed over the variables."""
        mean, std = posterior.chunk(2, -1)
        other_mean, other_std = prior.chunk(2, -1)
        ratio, distance = (std / other_std).square(), ((mean - other_mean) / other_std).square()
        return 0.5 * (ratio + distance - 1 - ratio.log()).sum(-1)


class Categorical(nn.Module):
    """One-hot vectors; a draw's gradient is that of its probabilities (straight-through, Dreamer-V2)."""

    def __init__(self, config: RSSMConfig) -> None:
        super().__init__()
        self.variables, self.classes = config.variables, config.classes
        self.size = self.outputs = config.variables * config.classes

    def statistics(self, outputs: Tensor) -> Tensor:
        """Logits."""
        return outputs

    def noise(self, rows: int, rng: torch.Generator) -> Tensor:
        """A uniform number for each variable."""
        return torch.rand(rows, self.variables, generator=rng, device=rng.device)

    def draw(self, statistics: Tensor, noise: Tensor) -> Tensor:
        """The class whose cumulated probability first exceeds the noise, as a one-hot vector."""
        shares = self._by_variable(statistics).softmax(-1)
        index = (shares.detach().cumsum(-1) <= noise.unsqueeze(-1)).sum(-1).clamp(max=self.classes - 1)
        one_hot = F.one_hot(index, self.classes).to(shares.dtype)
        return (one_hot + shares - shares.detach()).flatten(-2)

    def divergence(self, posterior: Tensor, prior: Tensor) -> Tensor:
        """KL(posterior || prior), summed over the variables."""
        mine, theirs = (self._by_variable(one).log_softmax(-1) for one in (posterior, prior))
        return (mine.exp() * (mine - theirs)).sum((-2, -1))

    def _by_variable(self, logits: Tensor) -> Tensor:
        return logits.reshape(*logits.shape[:-1], self.variables, self.classes)


class NormalisedGRUCell(nn.Module):
    """Dreamer-V2's GRU: one LayerNorm over all gates, and the reset gate acts on the candidate's input."""

    def __init__(self, inputs: int, units: int, rng: torch.Generator) -> None:
        super().__init__()
        self.gates = linear(inputs + units, 3 * units, GLOROT, rng)
        self.norm = nn.LayerNorm(3 * units, eps=1e-3)  # Keras's

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """The next belief."""
        reset, candidate, update = self.norm(self.gates(torch.cat([x, h], -1))).chunk(3, -1)
        candidate = torch.tanh(torch.sigmoid(reset) * candidate)
        update = torch.sigmoid(update + _CLOSED)
        new: Tensor = update * candidate + (1 - update) * h
        return new


def _gru(config: RSSMConfig, rng: torch.Generator) -> nn.Module:
    if config.normalised_gru:
        return NormalisedGRUCell(config.hidden, config.belief, rng)
    cell = nn.GRUCell(config.hidden, config.belief, device="meta").to_empty(device="cpu")
    nn.init.xavier_uniform_(cell.weight_ih, generator=rng)
    nn.init.orthogonal_(cell.weight_hh, generator=rng)
    nn.init.zeros_(cell.bias_ih)
    nn.init.zeros_(cell.bias_hh)
    return cell


class RSSM(nn.Module):
    """The model's dynamics. ``inputs`` counts the encoded observation's units."""

    def __init__(self, inputs: int, actions: int, config: RSSMConfig, rng: torch.Generator) -> None:
        super().__init__()
        self.latent = (Gaussian if config.latent == "gaussian" else Categorical)(config)
        self.belief = config.belief
        self.features = config.belief + self.latent.size
        activation = ACTIVATIONS[config.activation]
        hidden, outputs = config.hidden, self.latent.outputs
        self.before = nn.Sequential(linear(self.latent.size + actions, hidden, GLOROT, rng), activation())
        self.gru = _gru(config, rng)
        self.prior = nn.Sequential(
            linear(config.belief, hidden, GLOROT, rng), activation(), linear(hidden, outputs, GLOROT, rng)
        )
        self.posterior = nn.Sequential(
            linear(config.belief + inputs, hidden, GLOROT, rng), activation(), linear(hidden, outputs, GLOROT, rng)
        )

    def start(self, rows: int) -> State:
        """The state before an episode: zeros."""
        zeros = self.prior[-1].get_parameter("weight").new_zeros
        return State(zeros(rows, self.belief), zeros(rows, self.latent.size), zeros(rows, self.latent.outputs))

    def step(self, state: State, action: Tensor, noise: Tensor) -> State:
        """The prior after an action, (B, A), with a draw from it."""
        belief = self.gru(self.before(torch.cat([state.sample, action], -1)), state.belief)
        statistics = self.latent.statistics(self.prior(belief))
        return State(belief, self.latent.draw(statistics, noise), statistics)

    def correct(self, prior: State, encoded: Tensor, noise: Tensor) -> State:
        """The posterior: the same belief, and a state that has seen the observation."""
        statistics = self.latent.statistics(self.posterior(torch.cat([prior.belief, encoded], -1)))
        return State(prior.belief, self.latent.draw(statistics, noise), statistics)

    def observe(
        self, encoded: Tensor, actions: Tensor, first: Tensor, rng: torch.Generator, state: State | None = None
    ) -> tuple[State, State]:
        """Posteriors and priors along T observations, (T, B, ...) each.

        ``encoded`` is (T, B, E); ``actions`` (T, B, A) led to each observation; where ``first`` (T, B) is 1 an episode
        begins, so state, belief and action before it are zero.
        """
        rows = encoded.shape[1]
        state = state or self.start(rows)
        posteriors, priors = [], []
        for seen, action, begins in zip(encoded, actions, first, strict=True):
            goes_on = (1 - begins).unsqueeze(-1)
            state = State(*(part * goes_on for part in state))
            prior = self.step(state, action * goes_on, self.latent.noise(rows, rng))
            state = self.correct(prior, seen, self.latent.noise(rows, rng))
            posteriors.append(state)
            priors.append(prior)
        return stack(posteriors), stack(priors)

    def imagine(
        self, start: State, policy: Callable[[State], Tensor], horizon: int, rng: torch.Generator
    ) -> tuple[State, Tensor]:
        """H steps without observations: states s_1 ... s_H, (H, B, ...), and the actions before each, (H, B, A)."""
        state, states, actions = start, [], []
        for _ in range(horizon):
            actions.append(policy(state))
            state = self.step(state, actions[-1], self.latent.noise(len(state.belief), rng))
            states.append(state)
        return stack(states), torch.stack(actions)
