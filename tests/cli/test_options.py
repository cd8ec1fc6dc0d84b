"""Options as users type them: numbers, unknown names, a saved file, and --dry-run in a pipe."""

import pytest
from running import command

from peer_rl.cli.train import read_options
from peer_rl.launch.api import train
from peer_rl.settings import as_dict, configure
from peer_rl.training.rundir import read_config

TD3 = ["td3", "--task", "pybullet/hopper"]


@pytest.mark.parametrize(("word", "number"), [("1e5", 100_000), ("2.5e3", 2_500), ("100_000", 100_000), ("300.0", 300)])
def test_whole_numbers_may_be_written_with_an_exponent_or_underscores(word, number):
    assert read_options([*TD3, "--steps", word])[0].run.steps == number
    assert read_options([*TD3, "--critic.hidden", word, "4"])[0].run.settings.critic.hidden == (number, 4)


@pytest.mark.parametrize("word", ["1.5", "1e-3", "nan", "1e99", "five", "1.5e0"])
def test_other_numbers_are_no_whole_numbers(word):
    result = command("train", *TD3, "--steps", word)
    assert result.returncode == 2
    assert f"--steps takes a whole number, but was given {word!r}" in result.stderr


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("--lr", "--actor-learning-rate or --critic-learning-rate"),
        ("--bs", "--batch-size"),
        ("--total-timesteps", "--steps"),
        ("--learning-starts", "--start-steps"),
        ("--discount", "--gamma"),
        ("--hidden-sizes", "--actor.hidden or --critic.hidden"),
        ("--critic.hiden", "--critic.hidden"),
        ("--polyak", "--tau"),
        ("--batch_sise", "--batch-size"),
    ],
)
def test_an_unknown_option_suggests_what_it_means(option, meant):
    result = command("train", *TD3, option, "3")
    assert result.returncode == 2
    assert f"did you mean {meant}?" in result.stderr


def test_suggestions_hold_for_every_command_and_name_only_options_that_it_has():
    assert "did you mean --workers?" in command("sweep", "grid.toml", "--jobs", "3").stderr
    assert "did you mean" not in command("sweep", "grid.toml", "--lr", "3").stderr
    assert "did you mean --learning-rate?" in command("train", "dqn", "--task", "gym/CartPole-v1", "--lr", "3").stderr


def test_dry_run_is_complete_in_a_pipe_and_names_options_as_they_are_typed(tmp_path):
    words = ("train", "sac", "--task", "pybullet/hopper", "--critic.hidden", "64", "32", "--critic.layer-norm")
    result = command(*words, "--dry-run", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    rows = [line.split(maxsplit=1) for line in result.stdout.splitlines() if line.startswith("  ")]
    shown = {name: rest for name, rest in rows if name.startswith("--")}
    assert shown["--critic.hidden"].split() == ["64", "32", "given"]
    assert shown["--critic.layer-norm"].split() == ["given"]
    assert shown["--batch-size"].endswith("PEER appendix, PyBullet and MuJoCo table")
    assert "…" not in result.stdout
    assert len(rows) == len(as_dict(configure("sac", "pybullet/hopper")))


def test_what_dry_run_shows_can_be_typed(tmp_path):
    words = ["dqn", "--task", "gym/CartPole-v1", "--double", "--critic.hidden", "1e1", "20", "--beta", "auto"]
    shown = command("train", *words, "--dry-run", cwd=tmp_path).stdout.splitlines()[1:]
    typed = ["dqn"]
    for line in shown:
        name = line.split()[0]
        if name.startswith("--") and name != "--preset":
            rest = [word for word in line[len(name) + 2 :].split("  ") if word.strip()]
            typed += [name, *(rest[0].split() if len(rest) > 1 else [])]
    assert read_options(typed)[0].run == read_options(words)[0].run


def test_reproduce_and_sweep_have_dry_runs_that_write_nothing(tmp_path):
    words = ("reproduce", "gridworld", "--profile", "smoke", "--seeds", "2", "--dry-run")
    result = command(*words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    commands = [line for line in result.stdout.splitlines() if "peer-rl train dqn --task gridworld/paper" in line]
    assert len(commands) >= 4
    assert all(line.startswith("to do") for line in commands)
    grid = tmp_path / "grid.toml"
    grid.write_text('agents = "dqn"\ntasks = "gym/CartPole-v1"\nseeds = [0, 1]\nsteps = 1e3\n')
    result = command("sweep", grid, "--dry-run", cwd=tmp_path)
    assert result.stdout.count("--steps 1000") == 2, result.stderr
    assert list(tmp_path.iterdir()) == [grid]


@pytest.mark.parametrize(
    ("words", "origin"),
    [
        ([], "PEER appendix"),
        (["--regularizer", "beer"], "ours: PEER's, for beer too"),
        (["--regularizer", "beer", "--beta", "5e-4"], "given"),
        (["--regularizer", "beer", "--beta", "1e-3"], "given"),
    ],
)
def test_the_papers_beta_is_the_papers_for_its_own_term_only(words, origin):
    assert read_options(["td3", "--task", "gym/Pendulum-v1", *words])[1]["beta"] == origin


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = {"critic.hidden": (8,), "steps": 60, "start_steps": 30, "beta": 0.01, "seed": 3, "eval_every": 0}
    config = configure("dqn", "gym/CartPole-v1", profile="smoke", **settings)
    return train(config, runs=tmp_path_factory.mktemp("runs"))


class TestConfig:
    def test_a_saved_config_is_the_same_run(self, run):
        options, origins = read_options(["--config", str(run / "config.toml")])
        assert options.run == read_config(run)
        assert origins["settings.critic.hidden"] == str(run / "config.toml")

    def test_options_override_it(self, run):
        words = ["--config", str(run / "config.toml"), "--seed", "4", "--beta", "0", "--episodes", "7"]
        options, origins = read_options(["dqn", *words])
        assert (options.run.seed, options.run.beta, options.run.steps, options.run.episodes) == (4, 0.0, None, 7)
        assert options.run.settings.critic.hidden == (8,)
        assert origins["seed"] == "given"

    def test_the_command_line_trains_from_it(self, run, tmp_path):
        result = command("train", "--config", run / "config.toml", "--seed", 5, "--runs", tmp_path, "--quiet")
        assert result.returncode == 0, result.stderr
        (path,) = (file.parent for file in tmp_path.rglob("config.toml"))
        ours, theirs = as_dict(read_config(path)), as_dict(read_config(run))
        assert {name for name in ours if ours[name] != theirs[name]} == {"seed"}

    def test_a_file_of_the_users_own_needs_only_what_differs(self, tmp_path):
        (tmp_path / "mine.toml").write_text('agent = "sac"\ntask = "pybullet/ant"\nseed = 2\n[learning]\ngamma = 0.9\n')
        options, _ = read_options(["--config", str(tmp_path / "mine.toml")])
        assert options.run == configure("sac", "pybullet/ant", seed=2, gamma=0.9)

    @pytest.mark.parametrize(
        ("text", "words", "problem"),
        [
            ('agent = "dqn"', ["td3"], "is of the agent dqn, not td3"),
            ('agent = "dqn"\ntask = 3', [], "task must be a text"),
            ('agent = "dqn"\ntask = "gym/CartPole-v1"\ngama = 3', [], "unknown setting 'gama'"),
            ('agent = "dqn"\ntask = "gym/CartPole-v1"\nlr = 3', [], "did you mean 'settings.learning_rate'?"),
            ('agent = "dqn"\ntask = "gym/CartPole-v1"', ["--profile", "smoke"], "leave one of them out"),
            ("agent = ", [], "is not TOML"),
        ],
    )
    def test_what_is_wrong_with_a_file_is_said(self, tmp_path, text, words, problem):
        (tmp_path / "file.toml").write_text(text)
        result = command("train", *words, "--config", tmp_path / "file.toml", cwd=tmp_path)
        assert result.returncode == 2
        assert problem in result.stderr
        assert len(result.stderr.splitlines()) == 1

    def test_a_file_that_is_not_there(self, tmp_path):
        assert "there is no file none.toml" in command("train", "--config", "none.toml", cwd=tmp_path).stderr
