"""The policies of ``ppo`` and ``trpo``: Stable-Baselines3's networks behind our ``act``. Loading one needs no task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.running_mean_std import RunningMeanStd
from torch import Tensor, nn

from peer_rl.agents import Array
from peer_rl.envs.spec import EnvSpec
from peer_rl.rng import Stream, untouched_generators
from peer_rl.settings.ppo import PPOConfig
from peer_rl.settings.trpo import TRPOConfig

OnPolicySettings = PPOConfig | TRPOConfig

_EPSILON = 1e-8  # VecNormalize's


class OnPolicyPolicy:
    """Policy and value network with the running moments that normalise their observations."""

    def __init__(self, network: ActorCriticPolicy, moments: RunningMeanStd | None, clip: float) -> None:
        self.network, self.moments, self.clip = network, moments, clip
        self.device = network.device

    @torch.no_grad()
    def act(self, obs: Array, *, first: Array, explore: bool, rng: Stream) -> Array:
        """The policy's most likely actions, or with ``explore`` samples; continuous ones are clipped to [-1, 1]."""
        del first
        found: Any = self.network.get_distribution(self._see(obs))
        if isinstance(self.network.action_space, spaces.Discrete):
            actions = torch.multinomial(found.distribution.probs, 1, generator=rng.torch)[:, 0] if explore else None
        else:
            mean, deviation = found.distribution.mean, found.distribution.stddev
            noise = torch.randn(mean.shape, generator=rng.torch, device=mean.device) if explore else None
            actions = (mean if noise is None else mean + deviation * noise).clamp(-1.0, 1.0)
        chosen: Array = (found.mode() if actions is None else actions).cpu().numpy()
        return chosen

    def policy_module(self) -> nn.Module:
        """The most likely action, for export."""
        discrete = isinstance(self.network.action_space, spaces.Discrete)
        return _MostLikely(
            self, (lambda logits: logits.argmax(-1)) if discrete else (lambda mean: mean.clamp(-1.0, 1.0))
        )

    @torch.no_grad()
    def value(self, obs: Array) -> Tensor:
        """The value network's estimate for each observation, (B,), in units of the normalised reward."""
        return self.network.predict_values(self._see(obs))[:, 0]

    def _see(self, obs: Array) -> Tensor:
        """An observation, normalised as by VecNormalize."""
        if self.moments is not None:
            scaled = (obs - self.moments.mean) / np.sqrt(self.moments.var + _EPSILON)
            obs = np.clip(scaled, -self.clip, self.clip).astype(np.float32)
        return torch.from_numpy(obs).to(self.device)

    def state_dict(self) -> dict[str, Any]:
        """The networks and the moments, enough to act but not to resume training."""
        state: dict[str, Any] = {"network": self.network.state_dict()}
        if self.moments is not None:
            moments = self.moments
            state["moments"] = {"mean": moments.mean, "var": moments.var, "count": float(moments.count)}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        self.network.load_state_dict(state["network"])
        if self.moments is not None:
            moments = state["moments"]
            self.moments.mean, self.moments.var = moments["mean"].numpy(), moments["var"].numpy()
            self.moments.count = moments["count"]


class _MostLikely(nn.Module):
    """`OnPolicyPolicy` without exploration, of tensors."""

    mean: Tensor
    scale: Tensor

    def __init__(self, policy: OnPolicyPolicy, choose: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.network, self.clip, self.choose = policy.network, policy.clip, choose
        self.normalised = policy.moments is not None
        if policy.moments is not None:
            self.register_buffer("mean", torch.as_tensor(policy.moments.mean))
            self.register_buffer("scale", torch.as_tensor(np.sqrt(policy.moments.var + _EPSILON)))

    def forward(self, obs: Tensor) -> Tensor:
        """The agent's actions."""
        if self.normalised:
            obs = ((obs.double() - self.mean) / self.scale).clamp(-self.clip, self.clip).float()
        hidden = self.network.mlp_extractor.forward_actor(obs)
        return self.choose(self.network.action_net(hidden))


def spaces_of(spec: EnvSpec) -> tuple[spaces.Box, gym.Space[Any]]:
    """Observations and actions as the agent knows them: vectors; integers from 0, or vectors in [-1, 1]."""
    seen = spaces.Box(-np.inf, np.inf, spec.observation_shape, np.float32)
    if spec.actions:
        return seen, spaces.Discrete(spec.actions)
    return seen, spaces.Box(-1.0, 1.0, (spec.action_size,), np.float32)


def network_options(settings: OnPolicySettings) -> dict[str, Any]:
    """Stable-Baselines3's ``policy_kwargs``: a policy and a value network that share nothing."""
    hidden = list(settings.hidden)
    return {"net_arch": {"pi": hidden, "vf": list(hidden)}, "activation_fn": torch.nn.Tanh}


def build(settings: OnPolicySettings, spec: EnvSpec, *, device: torch.device) -> OnPolicyPolicy:
    """A policy to load a checkpoint into; its first weights, from torch's global generator, are not a run's."""
    with untouched_generators():
        network = ActorCriticPolicy(*spaces_of(spec), lambda _: settings.learning_rate, **network_options(settings))
    moments = RunningMeanStd(shape=spec.observation_shape) if settings.observation_clip else None
    return OnPolicyPolicy(network.to(device), moments, settings.observation_clip)
