"""Diagnoses the critic's representation of a Stable-Baselines3 agent, stock or ours; training stays bit-identical."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor, nn

from peer_rl.errors import ConfigError, RunError
from peer_rl.plugin import Features
from peer_rl.plugin.diagnostics import Report, diagnose_features, gradient_verdict
from peer_rl.plugin.layers import LayerHealth, layer_health
from peer_rl.plugin.tap import RepresentationTap
from peer_rl.rng import untouched_generators
from peer_rl.sb3.hooks import NOT_IN_ZIP, critic_and_target, last_layers


class RepresentationCallback(BaseCallback):
    """Logs DRD, cosine, norms, effective rank, dormant units and gradient ratio as ``representation/...``.

    every: environment steps between two diagnoses, counted over all environments; the last is at the end of training.
        The first is after learning starts and, with a HerReplayBuffer, after the first episode.
    batch_size: transitions drawn from the replay buffer, with a random stream of the callback's own.
    layers: whether to log rank, dormant units and norm of every hidden layer as well.
    verbose: 1 prints the verdict on the gradient ratio when training ends.

    For TD3, DDPG, SAC, TQC, DQN and QRDQN. Each diagnosis is written immediately, as by EvalCallback. DRD and the
    Bellman gap are not defined for TQC and QRDQN. The gradient ratio needs one of our agents with beta
    above 0: it is measured in one of the agent's own updates in each interval. ``report`` holds the latest diagnosis,
    ``gradient_ratios`` the measurements, ``verdict`` what their median means.
    """

    def __init__(self, every: int = 1000, batch_size: int = 256, layers: bool = False, verbose: int = 1) -> None:
        super().__init__(verbose)
        for name, value in (("every", every), ("batch_size", batch_size)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, not {value!r}")
        self.every, self.batch_size, self.layers = every, batch_size, layers
        self.report: Report | None = None
        self.gradient_ratios: list[float] = []
        self._asked = False
        self._due = self._diagnosed_at = 0
        self._seeds = np.random.default_rng(0)

    def _init_callback(self) -> None:
        for network in critic_and_target(self.model):
            last_layers(network)

    def _on_training_start(self) -> None:
        self._due, self._diagnosed_at = self.num_timesteps + self.every, self.num_timesteps
        self.gradient_ratios = []
        self._ask()

    def _on_step(self) -> bool:
        if not self._asked and self.num_timesteps >= self._due - self.every // 2:
            self._ask()
        if self.num_timesteps >= self._due:
            self._diagnose()
        return True

    def _on_training_end(self) -> None:
        if self.num_timesteps > self._diagnosed_at:
            self._diagnose()
        if self.verbose and self.verdict:
            print(self.verdict)

    @property
    def verdict(self) -> str | None:
        """What the median gradient ratio of this training means; None if none was measured."""
        if not self.gradient_ratios:
            return None
        name = str(getattr(self.model, "regularizer", "peer")).removeprefix(NOT_IN_ZIP)
        shown = {"peer": "PEER", "auto": "ConstrainedPEER"}.get(name, name)
        return gradient_verdict(statistics.median(self.gradient_ratios), shown)

    def _ask(self) -> None:
        """Have the agent measure the gradient ratio in its next update."""
        self._asked = True
        passes = getattr(self.model, "_passes", None)
        if passes is not None:
            passes.measure, passes.gradient_ratio = True, None

    def _log_gradient_ratio(self) -> None:
        ratio = getattr(getattr(self.model, "_passes", None), "gradient_ratio", None)
        if ratio is not None and math.isfinite(ratio):
            self.gradient_ratios.append(ratio)
            self.logger.record("representation/gradient_ratio", ratio)

    def _diagnose(self) -> None:
        model: Any = self.model
        if self.num_timesteps <= model.learning_starts or not _can_sample(model.replay_buffer):
            return
        self._due = self.num_timesteps + self.every
        self._diagnosed_at = self.num_timesteps
        layers: list[LayerHealth] | None = [] if self.layers else None
        features = representation(model, self.batch_size, seed=int(self._seeds.integers(2**32)), layers=layers)
        self._log_gradient_ratio()
        self._asked = False
        for layer in layers or ():
            for name in ("effective_rank", "dormant_fraction", "feature_norm"):
                self.logger.record(f"representation/{layer.name}/{name}", getattr(layer, name))
        self.report = diagnose_features(features)
        for name, value in self.report.as_dict().items():
            if value is not None and name not in ("rows", "drd_rows"):
                self.logger.record(f"representation/{name}", value)
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.logger.dump(self.num_timesteps)


@torch.no_grad()
def representation(
    model: BaseAlgorithm, batch_size: int = 256, *, seed: int = 0, layers: list[LayerHealth] | None = None
) -> Features:
    """Features of an agent's critic and target critic on transitions of its replay buffer.

    phi is (batch, dim), or (critics, batch, dim). phi_next belongs to the next action of the agent's TD target, noise
    included. The fields that DRD needs are set unless the critic is distributional. Parameters, modes and random
    states are restored.
    layers: a list to fill with the health of the critic's hidden layers.
    """
    critic, target = critic_and_target(model)
    agent: Any = model
    if not _can_sample(agent.replay_buffer):
        raise RunError(
            "the replay buffer is empty, or a HerReplayBuffer without a whole episode: collect transitions first, with "
            "learn or load_replay_buffer"
        )
    with _untouched(agent.policy, seed):
        batch = agent.replay_buffer.sample(batch_size, env=agent._vec_normalize_env)
        next_action = _next_action(agent, batch)
        with (
            RepresentationTap(critic, last_layers(critic)) as tap,
            RepresentationTap(target, last_layers(target)) as next_tap,
        ):
            pair = (batch.observations, *(() if next_action is None else (batch.actions,)))
            critic(*pair)
            q_next = target(batch.next_observations, *(() if next_action is None else (next_action,)))
            features = Features(tap.phi, next_tap.phi)
            if layers is not None:
                layers.extend(layer_health(critic, *pair))
            weight, outputs = tap.head_weight, tap.heads[0].out_features
    if next_action is None and isinstance(q_next, Tensor) and q_next.dim() == 2:
        features.same_action = (batch.actions[:, 0] == q_next.argmax(1)).to(weight.dtype)
    elif outputs > 1 or next_action is None:
        return features
    # n-step replay comes with a discount per row; older versions of Stable-Baselines3 know only gamma
    steps = getattr(batch, "discounts", None)
    discount = (1 - batch.dones) * (agent.gamma if steps is None else steps)
    features.head_weight, features.reward, features.discount = weight, batch.rewards[:, 0], discount[:, 0]
    return features


def _can_sample(buffer: Any) -> bool:
    """Whether there are transitions to draw; a HerReplayBuffer draws from episodes that have ended."""
    lengths = getattr(buffer, "ep_length", None)
    return buffer is not None and buffer.size() > 0 and (lengths is None or bool((lengths > 0).any()))


def _next_action(agent: Any, batch: Any) -> Tensor | None:
    """The a' of the TD target; None for a critic that takes no action."""
    if isinstance(agent.action_space, spaces.Discrete):
        return None
    if not hasattr(agent, "actor_target"):
        sampled: Tensor = agent.actor.action_log_prob(batch.next_observations)[0]
        return sampled
    noise = torch.randn_like(batch.actions) * agent.target_policy_noise
    clip = agent.target_noise_clip
    smoothed: Tensor = agent.actor_target(batch.next_observations) + noise.clamp(-clip, clip)
    return smoothed.clamp(-1, 1)


@contextmanager
def _untouched(policy: nn.Module, seed: int) -> Iterator[None]:
    """Run the block in evaluation mode and from a seed; restore modes and global generators."""
    modes = [(module, module.training) for module in policy.modules()]
    with untouched_generators():
        np.random.seed(seed)  # noqa: NPY002 - the replay buffer draws from numpy's global generator
        torch.manual_seed(seed)
        policy.eval()
        try:
            yield
        finally:
            for module, mode in modes:
                module.training = mode
