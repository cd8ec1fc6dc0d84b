"""The experiments as data: what they run, against what the paper's tables have."""

import pytest
from synthetic import write_run

from peer_rl.errors import ConfigError
from peer_rl.paper import plan as planning
from peer_rl.paper.catalogue import CATALOGUE
from peer_rl.paper.plan import Choice, describe, make_plan, planned_runs, stand_ins
from peer_rl.paper.published import figures_of, published_figures, score_table, tables_of
from peer_rl.report.runs import find_runs, group_runs
from peer_rl.settings import AGENTS
from peer_rl.settings.tasks import TASKS

PROFILES = ("paper", "small", "smoke")
NAMES = (
    "figure1", "gridworld", "figure4", "table1", "table2", "table3", "mujoco", "redq", "beta-study", "dmc-curves",
    "controls",
)  # fmt: skip


def test_every_table_and_figure_with_numbers_has_an_experiment():
    assert tuple(CATALOGUE) == NAMES
    assert {figure.experiment for figure in published_figures()} - {""} <= set(CATALOGUE)
    assert all(tables_of(name) or figures_of(name) for name in NAMES if name != "controls")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_run_of_an_agent_that_we_have_can_be_configured(name, profile):
    runs = planned_runs(CATALOGUE[name], Choice(profile, seeds=1))
    for run in runs:
        assert run.config or run.system.agent not in AGENTS, run.absent
    assert any(run.config for run in runs)


@pytest.mark.parametrize("name", NAMES)
def test_systems_are_compared_with_one_of_the_same_part(name):
    for part in CATALOGUE[name].parts:
        labels = [system.label for system in part.systems]
        assert len(set(labels)) == len(labels)
        assert all(not system.baseline or system.baseline in labels for system in part.systems)
        assert set(part.tasks) <= set(TASKS)


@pytest.mark.parametrize("name", ["table1", "table2", "table3", "mujoco", "redq"])
def test_a_system_of_a_table_runs_the_tables_agent_and_beta(name):
    ours = {system.label: system for system in CATALOGUE[name].systems}
    for table in tables_of(name):
        for theirs in table.systems:
            if theirs.agent and theirs.name in ours:
                system = ours[theirs.name]
                assert (system.agent, system.options.get("beta", 0.0)) == (theirs.agent, theirs.beta)
                assert system.baseline == theirs.backbone
                assert not theirs.seeds or theirs.quoted or system.seeds == theirs.seeds
            else:
                assert not theirs.agent or theirs.name == "PEER+CURL", f"{theirs.name} of {table.name} is not run"
        assert set(table.tasks) == {task for part in CATALOGUE[name].parts for task in part.tasks}
        assert table.seeds == CATALOGUE[name].seeds


def test_paper_plans_have_the_papers_numbers_of_runs(tmp_path):
    counts = {name: len(make_plan(CATALOGUE[name], Choice(), tmp_path).jobs) for name in ("table1", "redq", "mujoco")}
    assert counts == {"table1": 6 * 4 * 10, "redq": 3 * (10 + 20), "mujoco": 4 * 7 * 10}
    figure = next(figure for figure in published_figures() if figure.label == "fig: various beta")
    (part,) = CATALOGUE["beta-study"].parts
    betas = {system.options["beta"] for system in part.systems} - {0.0}
    assert (len(part.tasks), len(betas)) == (figure.tasks, figure.betas)


def test_experiments_share_runs(tmp_path):
    def paths(name):
        return {job.path for job in make_plan(CATALOGUE[name], Choice(), tmp_path).jobs}

    assert len(paths("redq") & paths("mujoco")) == 3 * 10
    assert len(paths("table1") & paths("controls")) == 2 * 4 * 10
    assert paths("figure4") & paths("table2") == paths("figure4") - {
        p for p in paths("figure4") if "drq-sac/" in str(p)
    }
    assert paths("beta-study") & paths("table3")


def test_both_budgets_of_dmcontrol_are_one_run(tmp_path):
    jobs = make_plan(CATALOGUE["table2"], Choice(seeds=1, tasks=("dmc/reacher-easy",), agents=("sac",)), tmp_path).jobs
    assert [job.config.steps for job in jobs] == [500_000]


def test_what_is_not_there_is_not_available_and_joins_when_it_lands(monkeypatch, tmp_path):
    choice = Choice("smoke", seeds=1)
    monkeypatch.setattr(planning, "AGENTS", {name: entry for name, entry in AGENTS.items() if name != "drq-v2"})
    plan = make_plan(CATALOGUE["table2"], choice, tmp_path)
    assert any("not available: DrQ-v2" in line and "no agent drq-v2 yet" in line for line in describe(plan))
    assert "drq-v2" not in {job.config.agent for job in plan.jobs}
    monkeypatch.undo()
    assert "drq-v2" in {job.config.agent for job in make_plan(CATALOGUE["table2"], choice, tmp_path).jobs}


def test_a_plan_says_how_it_differs_from_the_paper(tmp_path):
    lines = describe(make_plan(CATALOGUE["table1"], Choice("small", seeds=2), tmp_path))
    assert lines[0] == "table1, profile small: 24 runs, 0 done, 24 to do"
    assert lines[-1].endswith("shorter runs and smaller settings; 2 of 4 tasks; 2 of 10 seeds")
    assert len(describe(make_plan(CATALOGUE["table1"], Choice(), tmp_path))) == 1


def test_the_backbone_is_always_there_and_seeds_are_shared(tmp_path):
    jobs = make_plan(CATALOGUE["gridworld"], Choice(seeds=3, betas=(5e-4, 1e-2)), tmp_path).jobs
    by_beta = {beta: {job.config.seed for job in jobs if job.config.beta == beta} for beta in (0.0, 5e-4, 1e-2)}
    assert by_beta == {beta: {0, 1, 2} for beta in (0.0, 5e-4, 1e-2)}


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (Choice(betas=(0.1,)), "--betas is for gridworld"),
        (Choice(tasks=("pybullet/hoper",)), "table1 has no task 'pybullet/hoper'; did you mean 'pybullet/hopper'"),
        (Choice(agents=("dqn",)), "table1 has no agent 'dqn'"),
    ],
)
def test_a_choice_that_an_experiment_does_not_have_is_refused(choice, words):
    with pytest.raises(ConfigError, match=words):
        planned_runs(CATALOGUE["table1"], choice)


def test_the_two_halves_and_the_other_regularizers_are_controls():
    options = {system.label: dict(system.options) for system in CATALOGUE["controls"].systems}
    regularizers = {label: given.get("regularizer", "peer") for label, given in options.items()}
    assert regularizers == {
        "TD3": "peer",
        "PEER": "peer",
        "cosine only": "cosine-peer",
        "norm only": "feature-norm",
        "LayerNorm": "peer",
        "DR3": "dr3",
        "BEER": "beer",
        "beta auto": "peer",
    }
    assert options["beta auto"] == {"beta": "auto"}
    assert options["LayerNorm"] == {"beta": 0.0, "critic.layer_norm": True}


def test_table_3_runs_the_authors_features_and_shows_the_papers_with_them():
    features = {system.label: system.options.get("features") for system in CATALOGUE["table3"].systems}
    assert [label for label, kind in features.items() if kind == "conv"] == ["PEER+CURL", "PEER+DrQ"]
    assert {"PEER+CURL, last hidden layer", "PEER+DrQ, last hidden layer"} <= set(features)
    assert score_table("table3").system("PEER+CURL").agent == "curl-rainbow"


def test_a_run_stands_for_a_planned_one_whatever_its_seed_and_however_often_it_logs(tmp_path):
    planned = planned_runs(CATALOGUE["gridworld"], Choice())
    assert stand_ins(planned, []) == 0
    for seed in range(6, 13):  # seven of plain DQN, of which five are planned
        write_run(tmp_path, seed=seed, steps=30_000, diagnose_every=500, log_every=100)
    write_run(tmp_path, seed=6, beta=5e-4, steps=30_000)
    for other in ({"steps": 20_000}, {"steps": 30_000, "encoding": "one-hot"}, {"steps": 30_000, "eval_every": 500}):
        write_run(tmp_path, seed=6, beta=1e-2, **other)
    write_run(tmp_path, seed=7, beta=1e-2, steps=30_000, state="running")
    groups = group_runs(find_runs([tmp_path]))
    assert stand_ins(planned, groups) == 5 + 1
