"""The line of diagnostics: figure 1's DRD of the first head, written out."""

import pytest
import torch
from continuous_pixels import KINDS, agent_with, batch_of, stream

from peer_rl.training.representation import measure


class OneBatch:
    """A replay that always shows the same rows."""

    def peek(self, rng):
        return batch_of()


@pytest.mark.parametrize("kind", KINDS)
def test_drd_of_head_0_is_the_formula_over_rows_and_views(kind):
    agent = agent_with(kind)
    found = measure(agent, OneBatch(), stream())
    features = agent.temporal_difference(batch_of(), stream()).features
    phi, phi_next = (one.detach().double() for one in (features.phi, features.phi_next))
    if kind != "drq-sac":
        phi, phi_next = phi[None], phi_next[None]  # one view
    assert phi.shape[:2] == (2 if kind == "drq-sac" else 1, 2)
    weight = features.head_weight[0].detach().double()
    rows = []
    for view in range(len(phi)):
        for row in range(len(batch_of().reward)):
            if features.discount[row] > 0:  # DRD is not defined at the end of an episode
                cosine = torch.cosine_similarity(phi[view, 0, row], phi_next[view, 0, row], dim=0)
                bound = 1 / features.discount[row] - features.reward[row] ** 2 / (2 * weight.square().sum())
                rows.append(cosine - bound)
    assert found["drd_head0"] == pytest.approx(torch.stack(rows).nanmean().item(), rel=1e-5)
    assert found["drd_head0"] != pytest.approx(found["drd"], rel=1e-3)
