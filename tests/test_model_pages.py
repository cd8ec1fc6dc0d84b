"""The pages of the model-based agents show what was measured."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
AGENTS = ("td-mpc", "planet", "dreamer", "dreamer-v2")
PAGES = {name: (ROOT / "docs" / "agents" / f"{name}.md").read_text(encoding="utf-8") for name in AGENTS}


def test_the_costs_are_those_of_the_benchmark():
    rows = json.loads((RESULTS / "model_costs.json").read_text())
    measured = {(row["agent"], row["profile"]) for row in rows}
    assert measured >= {(name + kind, "small") for name in AGENTS for kind in ("", "-pixels")}
    assert measured >= {(f"{name}-pixels", "paper") for name in AGENTS}
    for row in rows:
        action = f"{row['action_ms']:,.1f} ms"
        if plans := list(row.get("plan_ms", {}).values()):
            action = f"{plans[0]:.0f} to {plans[-1]:.0f} ms"
        times = f"{row['update_ms']:,.0f} ms | {action} | {row['hours']:.1f} hours"
        assert f"| `{row['agent']}` | {row['profile']} | {times} |" in PAGES[row["agent"].removesuffix("-pixels")]


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
        assert f"| {profile} | {update} | {plan} | {peer} |" in PAGES["td-mpc"]
    assert min(paper["unavoidable_share"], paper["plan_unavoidable_share"]) >= 0.6
