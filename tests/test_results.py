"""Every number of a training that README.md and docs/ show comes from run directories under results/."""

import re
import statistics
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path

import pytest

from peer_rl.paper.published import score_table
from peer_rl.paper.report import write_report
from peer_rl.report.runs import find_runs
from peer_rl.training.files import read_json_lines
from peer_rl.training.rundir import read_json

ROOT = Path(__file__).parents[1]
GRIDWORLD = ROOT / "results" / "gridworld"
CARTPOLE = ROOT / "results" / "cartpole"


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> list[str]:
    """The lines of a report made anew from the runs."""
    out = tmp_path_factory.mktemp("report")
    write_report(find_runs([GRIDWORLD]), out, title="")
    return (out / "table.md").read_text().splitlines()


def shown(page: str, begins: tuple[str, ...]) -> list[str]:
    return [line for line in (ROOT / page).read_text().splitlines() if line.startswith(begins)]


@pytest.mark.parametrize("page", ["README.md", "docs/gridworld.md"])
def test_the_pages_rows_are_the_reports_rows(page, table):
    """Rows of the table of numbers and of differences, to the letter."""
    rows = shown(page, ("| DQN (beta = 0) |", "| PEER (beta = 0.0005) |", "| PEER (beta = 0.01) |"))
    differences = shown(page, ("| Final cosine |", "| Final Q difference |", "| Steps per episode |"))
    assert len(rows) == 3
    assert len(differences) == 3
    for line in rows + differences:
        assert line in table


def test_what_the_issue_asked_of_the_grid_world():
    """Cosine of PEER below DQN's; at beta 1e-2 below 0.8, and fewer steps per episode than DQN."""
    cosine, steps = {}, {}
    for record in find_runs([GRIDWORLD]):
        beta = record.config.beta
        lengths = [row["length"] for row in read_json_lines(record.path / "metrics.jsonl") if "length" in row]
        assert len(lengths) == 2000
        steps.setdefault(beta, []).append(sum(lengths) / len(lengths))
        cosine.setdefault(beta, []).append(read_json_lines(record.path / "diagnostics.jsonl")[-1]["probe_cosine"])
    assert {beta: len(found) for beta, found in cosine.items()} == {0.0: 5, 5e-4: 5, 1e-2: 5}
    mean = {beta: sum(found) / 5 for beta, found in cosine.items()}
    assert mean[5e-4] < mean[0.0]
    assert mean[1e-2] < 0.8
    assert sum(steps[1e-2]) < sum(steps[0.0])


def test_cartpole_reaches_400():
    """The mean over five seeds, at the step that docs/agents/dqn.md names, with and without PEER."""
    for variant in ("dqn", "dqn+beta0"):
        runs = sorted((CARTPOLE / "paper" / "gym-CartPole-v1" / variant).iterdir())
        assert [run.name for run in runs] == [f"seed{seed}" for seed in range(5)]
        last = [read_json_lines(run / "eval.jsonl")[-1] for run in runs]
        assert {row["step"] for row in last} == {20_000}
        assert sum(row["mean"] for row in last) / 5 >= 400


def test_the_table_of_betas_that_find_themselves():
    for seed in range(3):
        run = ROOT / "results/beta-auto/paper/gridworld-paper/dqn+betaauto" / f"seed{seed}"
        rows = [row for row in read_json_lines(run / "metrics.jsonl") if "beta" in row]
        betas, cosines = ([row[name] for row in rows] for name in ("beta", "cosine"))
        cells = f"{max(betas):.4f} | {betas[-1]:.4f} | {max(cosines):.3f} | {cosines[-1]:.3f}"
        assert f"| {seed} | {cells} |" in (ROOT / "docs" / "choosing-beta.md").read_text()


@pytest.mark.parametrize("agent", ["ppo", "trpo"])
def test_the_table_of_the_on_policy_agents(agent):
    runs = sorted((ROOT / "results/on-policy/paper/gym-CartPole-v1" / f"{agent}+steps30000").iterdir())
    found = [{row["step"]: row["mean"] for row in read_json_lines(run / "eval.jsonl")} for run in runs]
    assert [sorted(steps) for steps in found] == 3 * [list(range(5_000, 30_001, 5_000))]
    columns = [[steps[step] for steps in found] for step in sorted(found[0])]
    cells = [f"{statistics.mean(column):.0f} ± {statistics.stdev(column):.0f}" for column in columns]
    assert shown("docs/agents/ppo-trpo.md", (f"| {agent} |",)) == [f"| {agent} | {' | '.join(cells)} |"]


def test_the_page_of_results_shows_the_runs():
    """tools/results_page.py would write the page as it is, and every picture that it names is there."""
    spec = spec_from_file_location("results_page", ROOT / "tools" / "results_page.py")
    page = module_from_spec(spec)
    spec.loader.exec_module(page)
    text = (ROOT / "docs" / "results.md").read_text()
    assert len(page.BLOCK.findall(text)) >= 2
    assert page.render(text) == text, "run: python tools/results_page.py"
    for picture in re.findall(r"\]\((figures/.*?)\)", text):
        assert (ROOT / "docs" / picture).stat().st_size > 10_000


CONTINUOUS = ROOT / "results" / "continuous" / "paper"
REACHED = [
    ("mujoco-inverted-pendulum/td3+*", 20_000, 950),
    ("mujoco-inverted-pendulum/sac+*", 20_000, 950),
    ("mujoco-inverted-pendulum/metd3+*", 20_000, 950),
    ("mujoco-inverted-pendulum/redq+*", 5_000, 950),
    ("pybullet-inverted-pendulum-swingup/td3+*updates2", 50_000, 700),
    ("pybullet-inverted-pendulum-swingup/sac+*", 50_000, 700),
]


MISSED = {"td3+start-steps5000+steps50000+updates2/seed2"}
"""Runs that do not get there, as docs/results.md says."""


@pytest.mark.parametrize(("runs", "steps", "wanted"), REACHED)
def test_every_run_reaches_what_was_asked_within_its_steps(runs, steps, wanted):
    found = sorted(CONTINUOUS.glob(f"{runs}/seed*"))
    assert found
    for run in found:
        evaluations = read_json_lines(run / "eval.jsonl")
        reached = max(row["mean"] for row in evaluations if row["step"] <= steps) >= wanted
        assert reached != (f"{run.parent.name}/{run.name}" in MISSED), run


PAIRED = [
    ("mujoco-inverted-pendulum", "td3", "start-steps1000+steps20000+updates2"),
    ("mujoco-inverted-pendulum", "sac", "start-steps1000+steps20000"),
    ("pybullet-inverted-pendulum-swingup", "td3", "start-steps5000+steps50000+updates2"),
    ("pybullet-inverted-pendulum-swingup", "td3", "exploration-noise0.2+start-steps5000+steps50000+updates2"),
    ("pybullet-inverted-pendulum-swingup", "sac", "start-steps5000+steps50000"),
    ("pybullet-hopper", "td3", "start-steps10000+steps120000"),
]


@pytest.mark.parametrize(("task", "agent", "options"), PAIRED)
def test_both_sides_have_three_seeds_and_finished(task, agent, options):
    for side in (agent, f"{agent}+beta0"):
        runs = sorted((CONTINUOUS / task / f"{side}+{options}").glob("seed*"))
        assert [run.name for run in runs] == ["seed0", "seed1", "seed2"], side
        assert all(read_json(run / "status.json")["state"] == "finished" for run in runs), side


def test_the_page_says_how_the_hopper_scores_differ():
    def scores(side):
        runs = sorted((CONTINUOUS / "pybullet-hopper" / f"{side}+start-steps10000+steps120000").glob("seed*"))
        return [statistics.mean(row["mean"] for row in read_json_lines(run / "eval.jsonl")[-10:]) for run in runs]

    peer, plain = scores("td3"), scores("td3+beta0")
    differences = [a - b for a, b in zip(peer, plain, strict=True)]
    assert statistics.mean(differences) < 0
    page = (ROOT / "docs" / "results.md").read_text()
    for side, found in (("with PEER", peer), ("without", plain)):
        assert f"{' / '.join(f'{score:.0f}' for score in found)} {side}" in page
    assert f"{-statistics.mean(differences):.0f} less with PEER on average" in page
    assert f"reach from {min(differences):+.0f} to {max(differences):+.0f}" in page


SWING_UP = CONTINUOUS / "pybullet-inverted-pendulum-swingup"


@pytest.mark.parametrize(
    ("agent", "options", "all_above"),
    [
        ("sac", "start-steps5000+steps50000", True),
        ("td3", "start-steps5000+steps50000+updates2", False),
        ("td3", "exploration-noise0.2+start-steps5000+steps50000+updates2", True),
    ],
)
def test_the_page_says_how_the_swing_up_ends(agent, options, all_above):
    """And the aim of 700 that every run at the end is above, or not."""
    peer, plain = (
        [read_json_lines(run / "eval.jsonl")[-1]["mean"] for run in sorted((SWING_UP / f"{side}+{options}").iterdir())]
        for side in (agent, f"{agent}+beta0")
    )
    page = (ROOT / "docs" / "results.md").read_text()
    assert f"{statistics.mean(peer):.0f} with PEER and {statistics.mean(plain):.0f} without" in page
    assert (min(peer + plain) > 700) == all_above


def test_the_page_says_when_td3_with_the_papers_noise_swings_up():
    runs = SWING_UP.glob("td3+*exploration-noise0.2*/seed*")
    first = [next(row["step"] for row in read_json_lines(run / "eval.jsonl") if row["mean"] >= 700) for run in runs]
    assert len(first) == 6
    assert f"all six runs pass 700 by {max(first):,} steps at the latest" in (ROOT / "docs" / "results.md").read_text()


@pytest.mark.parametrize(
    ("side", "said"), [("td3+beta0", "without PEER at 40,000 (745"), ("td3", "with PEER at 45,000 (713")]
)
def test_the_mean_of_td3s_seeds_swings_up_within_50000_steps(side, said):
    runs = (SWING_UP / f"{side}+start-steps5000+steps50000+updates2").iterdir()
    curves = [[(row["step"], row["mean"]) for row in read_json_lines(run / "eval.jsonl")] for run in runs]
    means = {rows[0][0]: statistics.mean(mean for _, mean in rows) for rows in zip(*curves, strict=True)}
    step = min(step for step, mean in means.items() if mean >= 700)
    assert step <= 50_000
    assert said.endswith(f"at {step:,} ({means[step]:.0f}")
    assert said in (ROOT / "docs" / "results.md").read_text()


DMC = ROOT / "results" / "dmc" / "small" / "dmc-cartpole-swingup"


def dmc_pairs():
    """Runs with and without PEER, by agent."""
    for agent, seeds in (("curl-sac", (0, 1)), ("drq-sac", (0,))):
        yield agent, *([DMC / side / f"seed{seed}" for seed in seeds] for side in (agent, f"{agent}+beta0"))


def test_every_run_from_dmcontrols_frames_ends_well_above_random_play():
    """By half at least, at the end and over the last three evaluations; the page tells the ends."""
    page = (ROOT / "docs" / "results.md").read_text()
    for _, *sides in dmc_pairs():
        ends = []
        for runs in sides:
            for run in runs:
                assert read_json(run / "status.json")["frame"] == 100_000
                played = [row["return"] for row in read_json_lines(run / "metrics.jsonl") if "return" in row]
                random = statistics.mean(played[:8])  # the first 1,000 agent steps
                means = [row["mean"] for row in read_json_lines(run / "eval.jsonl")]
                assert min(means[-1], statistics.mean(means[-3:])) > 1.5 * random, run
            ends.append(" / ".join(f"{read_json_lines(run / 'eval.jsonl')[-1]['mean']:.0f}" for run in runs))
        assert f"({ends[0]} against {ends[1]})" in page


def test_peer_lowers_cosine_norm_and_drd_from_dmcontrols_frames():
    """Over the last fifth of training, in each pair; the page tells DRD, which stays above zero."""
    page = (ROOT / "docs" / "results.md").read_text()

    def late(run, name):
        rows = read_json_lines(run / "diagnostics.jsonl")
        return statistics.mean(row[name] for row in rows[-(len(rows) // 5) :])

    said = {"curl-sac": "{} with PEER and {} without for CURL", "drq-sac": "{} and {} for DrQ"}
    for agent, peer, plain in dmc_pairs():
        for name in ("cosine", "feature_norm", "drd_head0"):
            assert all(late(a, name) < late(b, name) for a, b in zip(peer, plain, strict=True))
        cells = [" / ".join(f"{late(run, 'drd_head0'):.1f}" for run in runs) for runs in (peer, plain)]
        assert said[agent].format(*cells) in page
        assert all(late(run, "drd_head0") > 0 for run in peer)


ROAD_RUNNER = ROOT / "results" / "atari" / "paper" / "atari-road-runner"
SIDES = {"PEER": "", "plain": "+beta0"}


def road_runner(side, seed, log, agent="curl-rainbow"):
    return read_json_lines(ROAD_RUNNER / f"{agent}{SIDES[side]}" / f"seed{seed}" / f"{log}.jsonl")


def stretches(side, seed, agent="curl-rainbow"):
    """What the games of training pay in the last three stretches of 10,000 steps."""
    games = [row for row in road_runner(side, seed, "metrics", agent) if "return" in row]
    found = [[game["return"] for game in games if (game["step"] - 1) // 10_000 == number] for number in (7, 8, 9)]
    return [statistics.mean(stretch) for stretch in found]


def test_the_page_says_how_road_runner_ends():
    """ "Near" is within a tenth of the paper's number."""
    page, table3 = (ROOT / "docs/results.md").read_text(), score_table("table3")
    final = {(side, seed): road_runner(side, seed, "eval")[-1] for side in SIDES for seed in (0, 1)}
    assert all(row["final"] and len(row["returns"]) >= 100 for row in final.values())
    score = {run: statistics.mean(row["returns"][:100]) for run, row in final.items()}
    below = [score["plain", seed] - score["PEER", seed] for seed in (0, 1)]
    assert "PEER is {:.0f} points below CURL with seed 0 and {:.0f} below it with seed 1".format(*below) in page
    curl, peer = (table3.find("atari/road-runner", system, 100_000).mean for system in ("CURL", "PEER+CURL"))
    assert f"the paper has it {peer - curl:.0f} above" in page
    assert abs(score["plain", 0] / curl - 1) < 0.1
    assert score["plain", 1] / curl == pytest.approx(1.2, abs=0.02)


def test_the_page_says_who_is_ahead_on_road_runner():
    page = (ROOT / "docs/results.md").read_text()
    for seed, leader, behind, since in ((0, "plain", "PEER", 30_000), (1, "PEER", "plain", 40_000)):
        rows = [road_runner(side, seed, "eval")[:-1] for side in (leader, behind)]  # the last is told apart
        assert all(a["mean"] > b["mean"] for a, b in zip(*rows, strict=True) if a["step"] >= since)
    peer, plain = ({row["step"]: row["mean"] for row in road_runner(side, 1, "eval")} for side in ("PEER", "plain"))
    said = [f"{peer[step]:.0f} against {plain[step]:.0f} at {step:,}" for step in (70_000, 90_000)]
    assert f"({', '.join(said)})" in page


def test_the_page_says_what_road_runners_logs_say():
    page = (ROOT / "docs/results.md").read_text()

    def late(side, name, digits):
        rows = [road_runner(side, seed, "diagnostics") for seed in (0, 1)]
        means = (statistics.mean(row[name] for row in run if row["step"] > 90_000) for run in rows)
        return " / ".join(f"{mean:.{digits}f}" for mean in means)

    assert f"cosine is {late('PEER', 'cosine', 2)} with it and {late('plain', 'cosine', 2)} without" in page
    assert f"norm of phi {late('PEER', 'feature_norm', 1)} and {late('plain', 'feature_norm', 1)}." in page
    for seed, said in ((0, "pay {} with PEER and seed 0, and {} without"), (1, "seed 1 {} with PEER, and {} without")):
        told = ("{:.0f}, {:.0f} and {:.0f}".format(*stretches(side, seed)) for side in SIDES)
        assert said.format(*told) in page
    for seed, largest, at in ((0, 0.25, 4_000), (1, 0.14, 12_000)):
        shares = {row["step"]: row["gradient_ratio"] for row in road_runner("PEER", seed, "diagnostics")}
        assert max(shares.values()) == shares[at] == pytest.approx(largest, abs=0.005)
        assert max(share for step, share in shares.items() if step >= 24_000) < 1 / 20
        assert max(share for step, share in shares.items() if step >= 76_000) < 1 / 100
    assert road_runner("plain", 1, "eval")[-1]["mean"] > 2 * stretches("plain", 1)[-1]
    means = [[row["mean"] for row in road_runner(side, seed, "eval")] for side in SIDES for seed in (0, 1)]
    assert f"differ by up to {max(abs(b - a) for run in means for a, b in pairwise(run)):.0f}." in page


def test_the_page_says_how_drq_ends_on_road_runner():
    page, table3 = (ROOT / "docs/results.md").read_text(), score_table("table3")
    rows = {side: road_runner(side, 0, "eval", "drq-dqn") for side in SIDES}
    assert all(row[-1]["final"] and row[-1]["step"] == 100_000 for row in rows.values())
    peer, plain = (statistics.mean(row[-1]["returns"][:100]) for row in rows.values())
    ours = f"DrQ, with seed 0, ends at {peer:.0f} with PEER and {plain:.0f} without, {peer - plain:.0f} points above it"
    assert ours in page
    drq, with_peer = (table3.find("atari/road-runner", system, 100_000).mean for system in ("DrQ", "PEER+DrQ"))
    assert f"the paper has PEER {drq - with_peer:.0f} points below ({with_peer:.0f} and {drq:.0f})" in page
    ahead = {a["step"]: a["mean"] > b["mean"] for a, b in zip(*rows.values(), strict=True)}
    assert {step for step, leads in ahead.items() if not leads} == {20_000}
    assert abs(plain / drq - 1) < 0.1  # "near"
    assert (
        f"Road Runner pays {peer:.0f} with PEER and {plain:.0f} without"
        in (ROOT / "docs/agents/drq-dqn.md").read_text()
    )


def test_the_page_says_what_drqs_logs_say():
    page = (ROOT / "docs/results.md").read_text()
    logs = {side: road_runner(side, 0, "diagnostics", "drq-dqn") for side in SIDES}

    def late(side, name, digits):
        return f"{statistics.mean(row[name] for row in logs[side] if row['step'] > 90_000):.{digits}f}"

    assert f"DrQ's cosine is {late('PEER', 'cosine', 2)} with PEER and {late('plain', 'cosine', 2)} without" in page
    assert f"its norm of phi {late('PEER', 'feature_norm', 1)} and {late('plain', 'feature_norm', 1)}." in page
    shares = {row["step"]: row["gradient_ratio"] for row in logs["PEER"]}
    assert max(shares.values()) == shares[2_000] == pytest.approx(0.15, abs=0.005)
    assert max(share for step, share in shares.items() if step >= 10_000) < 1 / 50
    assert max(share for step, share in shares.items() if step >= 16_000) < 1 / 100
    told = ("{:.0f}, {:.0f} and {:.0f}".format(*stretches(side, 0, "drq-dqn")) for side in SIDES)
    assert "pay {} with PEER, and {} without.".format(*told) in page
