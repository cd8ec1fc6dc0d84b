"""One line of diagnostics.jsonl: the state of the representation on a batch of the replay."""

from __future__ import annotations

from typing import Any

import torch

from peer_rl.agents import CriticAgent
from peer_rl.plugin import Features
from peer_rl.plugin.diagnostics import diagnose_features, drd, gradient_ratio
from peer_rl.replay.replay import Replay
from peer_rl.rng import Stream


def measure(agent: CriticAgent, replay: Replay, rng: Stream) -> dict[str, Any]:
    """DRD, cosine, norms, rank and gradient ratio; changes neither agent nor replay."""
    # not compiled: the ratio takes two gradients of one graph, and a compiled graph gives only one
    with torch.enable_grad(), torch.compiler.set_stance("force_eager"):
        td = agent.temporal_difference(replay.peek(rng.numpy), rng)
        ratio = gradient_ratio(td.loss, agent.regularizer(td.features), agent.critic_parameters())
    features = td.features
    report = diagnose_features(features)
    first = {"drd_head0": _first_heads_drd(features)} if features.phi.dim() > 2 else {}
    return {**report.as_dict(), **first, "gradient_ratio": ratio}


def _first_heads_drd(features: Features) -> float | None:
    """DRD of an ensemble's first head, which the paper's figure 1 shows; None where it is not defined.

    phi is (heads, B, D), or with several views of each state (views, heads, B, D): then the mean over the views.
    """
    if features.head_weight is None or features.reward is None or features.discount is None:
        return None
    found = drd(
        features.phi[..., 0, :, :].detach(),
        features.phi_next[..., 0, :, :],
        head_weight=features.head_weight[0].detach(),
        reward=features.reward,
        gamma=features.discount,
    ).nanmean()
    return found.item() if bool(found.isfinite()) else None
