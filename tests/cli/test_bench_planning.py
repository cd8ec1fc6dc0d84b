"""``peer-rl bench --agents td-mpc``: the bare products are those of an update and of a plan."""

import pytest
from torch.utils.flop_counter import FlopCounterMode

from peer_rl.bench.planning import TASK, contenders, measure_planning
from peer_rl.settings import configure

pytestmark = pytest.mark.filterwarnings("ignore:phi has negative entries")


def flops(act) -> int:
    with FlopCounterMode(display=False) as counter:
        act()
    return counter.get_total_flops()


def test_the_products_are_those_of_an_update_and_of_a_plan():
    """Counted by torch; heads of one output are inner products in ours, which it does not count."""
    arms = contenders(configure("td-mpc", TASK, profile="small"))
    assert flops(arms["products"]) == pytest.approx(flops(arms["plain"]), rel=0.02)
    assert flops(arms["plan products"]) == pytest.approx(flops(arms["plan"]), rel=0.02)


def test_an_update_and_a_plan_are_measured(monkeypatch):
    monkeypatch.setattr("peer_rl.bench.updates._WARM_UP", 1)
    row = measure_planning("td-mpc", rounds=2, profile="smoke")
    assert 0 < row["unavoidable_share"] < 1.2
    assert 0 < row["plan_unavoidable_share"] < 1.2
    assert row["peer_adds"]["low"] <= row["peer_adds"]["median"] <= row["peer_adds"]["high"]
