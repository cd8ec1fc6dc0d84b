"""SAC (Haarnoja et al. 2018) with a learned temperature; REDQ is SAC with more critics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from peer_rl.agents import TD, Array, Stateful, Update
from peer_rl.envs.spec import EnvSpec
from peer_rl.networks.encoders import ConvEncoder
from peer_rl.networks.gaussian import GaussianActor
from peer_rl.networks.latent import LatentCritic, LatentGaussian
from peer_rl.networks.mlp import CriticOutput, EnsembleCritic, Heads, pick
from peer_rl.networks.optimizer import Adam, SoftUpdate, target_of
from peer_rl.plugin import Features, NoRegularizer, Regularizer
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream
from peer_rl.settings.sac import SACConfig


def lowest(q: Tensor) -> Tensor:
    """The actor climbs the lower of both critics; (N, B) -> (B,)."""
    return q.amin(0)


class SAC(Stateful):
    """Actions are in [-1, 1]; twin critics are one ensemble of two. Actor and critics read one vector per state.

    From pixels that vector is an encoder's code (agents/pixel_sac.py), and ``encoder`` learns by the critics' loss.
    """

    parts = (
        "actor",
        "critic",
        "target_critic",
        "actor_optimizer",
        "critic_optimizer",
        "temperature_optimizer",
        "log_temperature",
    )

    def __init__(
        self,
        settings: SACConfig,
        actor: GaussianActor | LatentGaussian,
        critic: EnsembleCritic | LatentCritic,
        *,
        actions: int,
        regularizer: Regularizer,
        device: torch.device,
        target_critic: EnsembleCritic | LatentCritic | None = None,
        encoder: ConvEncoder | None = None,
        draw_heads: Callable[[Stream], Tensor] | None = None,
        actor_value: Callable[[Tensor], Tensor] = lowest,
        policy_first: bool = False,
    ) -> None:
        self.settings, self.regularizer, self.device = settings, regularizer, device
        self.draw_heads, self.actor_value, self.policy_first = draw_heads, actor_value, policy_first
        self.actor, self.critic, self.encoder = actor, critic, encoder
        self.target_critic = target_of(critic) if target_critic is None else target_critic
        temperature = torch.tensor(math.log(settings.initial_temperature), device=device)
        self.log_temperature = torch.nn.Parameter(temperature)
        self.target_entropy = -float(actions) if settings.target_entropy is None else settings.target_entropy
        self.actor_optimizer = Adam(actor.parameters(), settings.actor_learning_rate)
        self.critic_optimizer = Adam(self.critic_parameters(), settings.critic_learning_rate)
        self.temperature_optimizer = Adam(
            [self.log_temperature], settings.temperature_learning_rate, beta1=settings.temperature_beta1
        )
        self.update_target = SoftUpdate(critic, self.target_critic, settings.tau)
        compiled: Callable[..., Any] = torch.compile if settings.compile else lambda loss: loss
        self.bootstrap, self.actor_loss = compiled(self._bootstrap), compiled(self._actor_loss)
        self.td_loss = compiled(self._td_loss)

    @torch.no_grad()
    def act(self, obs: Array, *, first: Array, explore: bool, rng: Stream) -> Array:
        """A draw from pi(. | s) if exploring, else tanh of its mean."""
        del first
        return self.choose(torch.from_numpy(obs).to(self.device), explore=explore, rng=rng)

    def choose(self, state: Tensor, *, explore: bool, rng: Stream) -> Array:
        """``act`` for what the actor reads."""
        mean, log_std = self.actor(state)
        if explore:
            mean = mean + log_std.exp() * self.noise(mean.shape, rng)
        action: Array = torch.tanh(mean).cpu().numpy()
        return action

    @torch.no_grad()
    def value(self, obs: Array) -> Tensor:
        """The critics' value of tanh of the policy's mean, as the actor reads it; without entropy."""
        return self.greedy_value(torch.from_numpy(obs).to(self.device))

    def greedy_value(self, state: Tensor) -> Tensor:
        """``value`` for what the networks read."""
        output: CriticOutput = self.critic(state, torch.tanh(self.actor(state)[0]))
        return self.actor_value(output.q)

    def noise(self, shape: torch.Size, rng: Stream) -> Tensor:
        """The noise behind the policy's samples."""
        return torch.randn(shape, generator=rng.torch, device=self.device)

    def _bootstrap(
        self,
        reward: Tensor,
        discount: Tensor,
        next_states: tuple[Tensor, Tensor],
        noise: Tensor,
        evaluated: Heads = None,
        lowest_of: Heads = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The target y = R + discount * (min Q'(s', a') - alpha log pi(a' | s')), with phi'(s', a') and a'.

        ``next_states`` is s' as the actor and as the target critics read it: one tensor twice, if it is a vector. The
        target heads ``evaluated`` are computed; the minimum is over ``lowest_of`` these.
        """
        of_actor, of_target = next_states
        next_action, log_prob = self.actor.sample(of_actor, noise)  # (B, A), (B,)
        target = self.target_critic(of_target, next_action, heads=evaluated)  # q (N, B), phi (N, B, D)
        soft_value = pick(target.q, lowest_of).amin(0) - self.log_temperature.exp() * log_prob
        return reward + discount * soft_value, target.phi, next_action

    def _td_loss(self, state: Tensor, action: Tensor, bootstrap: Tensor) -> tuple[Tensor, CriticOutput]:
        """L_PE = sum_i (Q_i(s, a) - y)^2: the sum of the heads' mean squared errors, without SB3's 1/2."""
        online: CriticOutput = self.critic(state, action)
        return (online.q - bootstrap).square().mean(-1).sum(), online

    def _actor_loss(self, state: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """The mean of alpha log pi(a | s) - Q(s, a) with a from the policy, and the log-probabilities."""
        action, log_prob = self.actor.sample(state, noise)
        q = self.actor_value(self.critic(state, action).q)
        return (self.log_temperature.detach().exp() * log_prob - q).mean(), log_prob.detach()

    def temporal_difference(self, batch: Batch, rng: Stream) -> TD:
        """The TD loss of all heads, and the features of each head and of the same target head (section 3.2)."""
        return self._evaluate(batch, rng, every_target=True)

    def _evaluate(self, batch: Batch, rng: Stream, *, every_target: bool) -> TD:
        """Without ``every_target`` only the target heads of the minimum are computed: enough if nothing reads phi."""
        noise = self.noise(batch.action.shape, rng)
        drawn = self.draw_heads(rng) if self.draw_heads else None  # REDQ's M of N
        evaluated, lowest_of = (None, drawn) if every_target else (drawn, None)
        with torch.no_grad():
            bootstrap, phi_next, next_action = self.bootstrap(
                batch.reward, batch.discount, (batch.next_obs, batch.next_obs), noise, evaluated, lowest_of
            )
        loss, online = self.td_loss(batch.obs, batch.action, bootstrap)
        again = "phi_next_online" in self.regularizer.needs
        features = Features(
            pick(online.phi, evaluated),
            phi_next,
            phi_next_online=self.critic(batch.next_obs, next_action).phi if again else None,
            head_weight=pick(self.critic.head.weight, evaluated).mT,  # (N, 1, D)
            reward=batch.reward,
            discount=batch.discount,
        )
        return TD(loss=loss, features=features, q=online.q.detach().mean())

    def critic_parameters(self) -> list[Tensor]:
        """All heads, and the encoder if there is one."""
        return [*(self.encoder.parameters() if self.encoder else ()), *self.critic.parameters()]

    def update(self, batch: Batch, *, index: int, rng: Stream) -> Update:
        """One step of the critics; when due, of actor and temperature (in REDQ before it), and of the targets."""
        td = self._evaluate(batch, rng, every_target=not isinstance(self.regularizer, NoRegularizer))
        metrics: dict[str, Tensor] = {}
        due = (index + 1) % self.settings.policy_every == 0
        if due and self.policy_first:
            metrics |= self.update_policy(batch.obs, self.noise(batch.action.shape, rng))
        metrics |= self.update_critics(td)
        if due and not self.policy_first:
            metrics |= self.update_policy(batch.obs, self.noise(batch.action.shape, rng))
        if (index + 1) % self.settings.target_every == 0:
            self.update_target()
        return Update(metrics)

    def update_critics(self, td: TD) -> dict[str, Tensor]:
        """One step of the critics, and of the encoder if there is one."""
        regularizer = self.regularizer(td.features)
        self.critic_optimizer.minimise(td.loss + regularizer)
        return {"td_loss": td.loss.detach(), "regularizer": regularizer.detach(), "q": td.q}

    def update_policy(self, state: Tensor, noise: Tensor) -> dict[str, Tensor]:
        """One step of the actor, then of the temperature: J(alpha) = -log alpha (log pi(a | s) + target entropy)."""
        actor_loss, log_prob = self.actor_loss(state, noise)
        self.actor_optimizer.minimise(actor_loss)  # leaves the critics alone
        entropy = -log_prob.mean()
        self.temperature_optimizer.minimise(self.log_temperature * (entropy - self.target_entropy))
        temperature = self.log_temperature.detach().exp()
        return {"actor_loss": actor_loss.detach(), "entropy": entropy, "temperature": temperature}


def networks(
    settings: SACConfig, spec: EnvSpec, *, rng: Stream, device: torch.device, heads: int = 2
) -> tuple[GaussianActor, EnsembleCritic]:
    """Actor and critics for vectors."""
    weights = rng.for_weights()
    seen, acted = spec.observation_shape[0], spec.action_size
    log_std = (settings.log_std_low, settings.log_std_high)
    actor = GaussianActor(seen, acted, settings.actor, weights, log_std=log_std, log_std_by=settings.log_std_by)
    critic = EnsembleCritic(heads, seen + acted, settings.critic, weights)
    return actor.to(device), critic.to(device)


def build(settings: SACConfig, spec: EnvSpec, *, regularizer: Regularizer, rng: Stream, device: torch.device) -> SAC:
    """A SAC for an environment with vector observations and continuous actions."""
    actor, critic = networks(settings, spec, rng=rng, device=device)
    return SAC(settings, actor, critic, actions=spec.action_size, regularizer=regularizer, device=device)
