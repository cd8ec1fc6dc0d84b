"""What figure 3 shows of a grid-world agent, written with each line of diagnostics.jsonl."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from peer_rl.agents import CriticAgent
from peer_rl.envs.gridworld import GOAL, REWARD, S1, S2, STATES, move
from peer_rl.envs.spec import EnvSpec
from peer_rl.plugin import Features
from peer_rl.plugin.diagnostics import diagnose_features
from peer_rl.replay.store import Batch
from peer_rl.rng import Stream


def probe(agent: CriticAgent, spec: EnvSpec, rng: Stream) -> dict[str, Any]:
    """Figure 3's quantities: every state but S_T with its greedy action.

    (b) mean cosine of phi(s) and the target's phi(s'), (c) max Q(S_1) - max Q(S_2), (a) max Q of every state.
    """
    states, encoded = np.arange(STATES - 1), spec.encode(np.arange(STATES))
    first = np.ones(len(states), dtype=bool)
    actions = agent.act(encoded[states], first=first, explore=False, rng=rng)
    arrivals = np.array([move(int(s), int(a)) for s, a in zip(states, actions, strict=True)])
    arrived = arrivals == GOAL
    batch = Batch.from_numpy(
        obs=encoded[states],
        action=actions,
        reward=(REWARD * arrived).astype(np.float32),
        discount=(1.0 - arrived).astype(np.float32),
        next_obs=encoded[arrivals],
        device=agent.device,
    )
    with torch.no_grad():
        features = agent.temporal_difference(batch, rng).features
        values = agent.value(encoded).tolist()
    report = diagnose_features(Features(features.phi, features.phi_next))
    return {"probe_cosine": report.cosine, "probe_q_difference": values[S1] - values[S2], "probe_max_q": values[:GOAL]}
