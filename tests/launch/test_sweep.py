"""A sweep's file: what it means, and what is wrong with it, told before anything starts."""

import re
from pathlib import Path

import pytest
from running import TINY, peer_rl

from peer_rl.cli.train import read_options
from peer_rl.errors import ConfigError, PeerError
from peer_rl.launch.jobs import Job, merge
from peer_rl.launch.sweep import SearchSettings, read_sweep
from peer_rl.settings import AGENTS, as_dict, configure

ROOT = Path(__file__).parents[2]
START = 'agent = "dqn"\ntask = "gridworld/paper"\n'


def sweep(folder: Path, text: str):
    (folder / "sweep.toml").write_text(text)
    return read_sweep(folder / "sweep.toml", folder / "runs")


def names(folder: Path, text: str) -> list[str]:
    return [str(job.path.relative_to(folder / "runs")) for job in sweep(folder, text).jobs]


def test_every_combination_seed_by_seed(tmp_path):
    text = 'agents = ["td3", "sac"]\ntasks = ["pybullet/hopper", "mujoco/hopper"]\nbetas = [0, 5e-4]\nseeds = 2\n'
    found = names(tmp_path, text)
    assert found == [
        f"paper/{task}/{variant}/seed{seed}"
        for seed in (0, 1)
        for agent in ("td3", "sac")
        for task in ("pybullet-hopper", "mujoco-hopper")
        for variant in (f"{agent}+beta0", agent)
    ]


def test_a_ledger_is_a_sweep_without_the_blocks_on_hold(tmp_path):
    text = (
        '[[ledger.block]]\nname = "now"\n[[ledger.block]]\nname = "later"\nhold = "not tuned yet"\n'
        f'[[grid]]\nblock = "now"\n{START}seeds = [3]\n[[grid]]\nblock = "later"\n{START}seeds = [4]\n'
    )
    assert [name.rpartition("/")[2] for name in names(tmp_path, text)] == ["seed3"]


def test_grids_add_to_what_they_share_and_a_run_that_two_of_them_ask_for_is_one(tmp_path):
    text = (
        'profile = "smoke"\ntask = "gridworld/paper"\nagent = "dqn"\nseeds = 2\n[[grid]]\nbetas = [0, 0.01]\n'
        '[[grid]]\nregularizers = ["peer", "dr3"]\nbetas = [0.0, 0.01]\nseeds = [1, 7]\n'
    )
    assert sorted(names(tmp_path, text)) == sorted(
        f"smoke/gridworld-paper/{name}"
        for name in (
            "dqn+beta0/seed0", "dqn+beta0/seed1", "dqn+beta0/seed7",
            "dqn+beta0.01/seed0", "dqn+beta0.01/seed1", "dqn+beta0.01/seed7",
            "dqn+beta0.01+regularizer-dr3/seed1", "dqn+beta0.01+regularizer-dr3/seed7",
        )
    )  # fmt: skip


def test_lists_of_lists_where_a_list_is_one_value(tmp_path):
    one = sweep(tmp_path, START + "critic.hidden = [16, 8]\ncritic.layer-norm = [true, false]\n")
    assert [job.config.settings.critic.hidden for job in one.jobs] == [(16, 8), (16, 8)]
    assert [job.config.settings.critic.layer_norm for job in one.jobs] == [True, False]
    two = sweep(tmp_path, START + "[critic]\nhidden = [[16, 8], [32]]\n")
    assert [job.config.settings.critic.hidden for job in two.jobs] == [(16, 8), (32,)]


def test_options_of_the_command_line_that_are_no_settings(tmp_path):
    (job,) = sweep(tmp_path, START + "checkpoint_seconds = 5\ntensorboard = true\nwandb = false\nseed = 5\n").jobs
    assert job.extra == ("--checkpoint-seconds", "5", "--tensorboard")
    assert job.config.seed == 5, "one seed, where seeds = 5 are five"
    options, _ = read_options([*job.words[1:]])
    assert options.checkpoint_seconds == 5
    assert options.tensorboard


def test_a_budget_in_frames(tmp_path):
    text = 'agent = "drq-v2"\ntask = "dmc/cheetah-run"\nframes = [4000, 8000]\n'
    assert [job.config.steps for job in sweep(tmp_path, text).jobs] == [2000, 4000], "DrQ-v2 repeats an action"


@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_the_command_of_a_job_is_its_config(agent, tmp_path):
    """Whatever a sweep asks for gets to the training, which is started by words."""
    task, settings = TINY[agent]
    config = configure(agent, task, **settings, seed=3, device="cpu", threads=2)
    options, _ = read_options(Job.of(config, tmp_path).words[1:])
    assert as_dict(options.run) == as_dict(config)


def test_a_preset_reaches_the_run(tmp_path):
    config = configure("drq-dqn", TINY["drq-dqn"][0], preset="as-published")
    options, _ = read_options(Job.of(config, tmp_path).words[1:])
    assert as_dict(options.run) == as_dict(config)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("agent = ", "sweep.toml is not TOML: "),
        ('task = "gridworld/paper"', "sweep.toml: name the agents: agents = [...]"),
        ('agent = "dqn"', "name the tasks: tasks = [...]"),
        ('agent = "dqm"\ntask = "gridworld/paper"', "unknown agent 'dqm'; did you mean 'dqn'?"),
        ('agent = 3\ntask = "gridworld/paper"', "agent must be a name in quotation marks, but is 3"),
        ('agent = "dqn"\ntask = "gridworld/paper"\nlr = 1e-3', "dqn has no option 'lr'; did you mean 'learning-rate'?"),
        ('agent = "dqn"\ntask = "gridworld/papr"', "unknown task 'gridworld/papr'; did you mean 'gridworld/paper'?"),
        (START + "beta = [-1]", "beta must be 0 or above, and finite, but is -1"),
        (START + 'beta = "much"', "setting beta must be float or 'auto', but is 'much'"),
        (START + "betas = []", "beta is an empty list"),
        (START + "batchsize = 3", "dqn has no option 'batchsize'; did you mean 'batch-size'?"),
        (START + "target-heads = 3", "dqn has no option 'target-heads'"),
        (START + "steps = 2.5", "setting steps must be int"),
        (START + "steps = 5\nepisodes = 5", "give one budget, not 2: steps and episodes"),
        (START + "frames = 1.5", "frames must be int, but is 1.5"),
        (START + "seeds = 0", "seeds must be above 0"),
        (START + "seeds = [-1]", "seed must be 0 or above"),
        (START + "beta = 0\nbetas = [1]", "'betas' gives beta a second time"),
        (START + 'profile = "huge"', "unknown profile 'huge'"),
        (START + 'regularizer = "peeer"', "regularizer 'peeer' is unknown: did you mean 'peer'?"),
        (START + 'runs = "here"', "runs is not for the file; use --runs"),
        (START + 'checkpoint-seconds = "1"', "checkpoint-seconds must be a number, but is '1'"),
        (START + "tensorboard = 1", "tensorboard must be true or false, but is 1"),
        (START + "[[grid]]\nbetas = [0]\n[[grid]]\ngama = 0.9", "sweep.toml, grid 2: dqn has no option 'gama'; did"),
        (START + "[grid]\nbetas = [0]", "each under a line [[grid]]"),
        ('agent = "ppo"\ntask = "gym/CartPole-v1"\nbeta = 1.0', "ppo has no TD target"),
        (START + "[search]\ntrails = 3", "sweep.toml, [search]: unknown setting 'trails'; did you mean 'trials'?"),
        (START + "[search]\ntrials = 3.5", "setting trials must be int, but is 3.5"),
        (START + "search = 3", "sweep.toml, [search]: it must be a table"),
        (START + "[search]\nlow = 1\nhigh = 0.1", "high must be above low, but they are 0.1 and 1"),
        (START + "threads = [1, 2]", "two runs would share"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(text, words, tmp_path):
    with pytest.raises(PeerError, match=re.escape(words)):
        sweep(tmp_path, text)


def test_a_mistake_on_the_command_line_leaves_nothing_behind(tmp_path):
    (tmp_path / "sweep.toml").write_text(START + "gama = 0.9\n")
    result = peer_rl("sweep", "sweep.toml", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == "peer-rl: sweep.toml: dqn has no option 'gama'; did you mean 'gamma'?\n"
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.toml"]
    for words, told in (
        (["no.toml"], "cannot read no.toml (No such file or directory)"),
        (["sweep.toml", "--workers", "0"], "workers must be above 0"),
        (["sweep.toml", "--address", "auto"], "--address is a Ray cluster's; add --engine ray"),
    ):
        result = peer_rl("sweep", *words, cwd=tmp_path)
        assert (result.returncode, result.stderr) == (2, f"peer-rl: {told}{', but is 0' * ('workers' in told)}\n")


def test_one_directory_for_two_runs_is_refused(tmp_path):
    jobs = [Job.of(configure("dqn", "gridworld/paper", threads=threads), tmp_path) for threads in (1, 2)]
    with pytest.raises(ConfigError, match="differ: threads 1 and 2"):
        merge(jobs)


def test_the_plan_and_the_pages_own_file(tmp_path):
    """docs/sweeps.md: every TOML block on it is read, and what it says about the first one is true."""
    blocks = re.findall(r"^```toml\n(.*?)^```$", (ROOT / "docs/sweeps.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        assert sweep(tmp_path, block).jobs
    (tmp_path / "sweep.toml").write_text(blocks[0])
    result = peer_rl("sweep", "sweep.toml", "--dry-run", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    *lines, last = result.stdout.splitlines()
    assert last == "55 runs: 0 done, 0 begun, 55 to do"
    assert len(lines) == 55
    assert all(re.fullmatch(r"to do +peer-rl train \S+ --task \S+ .* --runs runs", line) for line in lines)
    assert not (tmp_path / "runs").exists()


def test_search_settings_have_the_ranges_of_the_page():
    page = (ROOT / "docs/sweeps.md").read_text()
    settings = SearchSettings()
    assert f"[{settings.low:g}, {settings.high:g}]".replace("1e-06", "1e-6") in page
    assert f"{settings.trials} betas" in page
