"""The page of td-mpc shows what was measured."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = (ROOT / "docs" / "agents" / "td-mpc.md").read_text(encoding="utf-8")


def test_the_costs_are_those_of_the_benchmark():
    rows = json.loads((RESULTS / "td_mpc_costs.json").read_text())
    assert [(row["agent"], row["profile"]) for row in rows] == [
        (agent, profile) for profile in ("small", "paper") for agent in ("td-mpc", "td-mpc-pixels")
    ]
    for row in rows:
        plans = list(row["plan_ms"].values())
        times = f"{row['update_ms']:,.0f} ms | {plans[0]:.0f} to {plans[-1]:.0f} ms | {row['hours_at_most']:.1f} hours"
        assert f"| `{row['agent']}` | {row['profile']} | {times} |" in PAGE


def test_the_products_shares_are_those_of_bench():
    paper, small = json.loads((RESULTS / "bench_td_mpc.json").read_text())["updates"]
    for found, profile in ((paper, "paper"), (small, "small")):
        assert found["profile"] == profile
        update, plan = (
            f"{found[f'{name}_ms']:.0f} ms | {100 * found[share]:.0f} %"
            for name, share in (("update", "unavoidable_share"), ("plan", "plan_unavoidable_share"))
        )
        adds = found["peer_adds"]
        peer = f"{100 * adds['median']:+.1f} % [{100 * adds['low']:+.1f}, {100 * adds['high']:+.1f}]"
        assert f"| {profile} | {update} | {plan} | {peer} |" in PAGE
    assert min(paper["unavoidable_share"], paper["plan_unavoidable_share"]) >= 0.6
