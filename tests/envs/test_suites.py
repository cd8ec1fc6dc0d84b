"""The paper's PyBullet and MuJoCo tasks: its dimensions, episodes that repeat bit for bit, and no noise."""

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from running import peer_rl

from peer_rl.envs.make import make_env
from peer_rl.envs.simulators import engine_of
from peer_rl.errors import ConfigError
from peer_rl.launch.api import train
from peer_rl.settings import configure
from peer_rl.settings.tasks import TASKS, find_task
from peer_rl.training.rundir import RunDirectory

SUITES = sorted(name for name, task in TASKS.items() if task.suite in ("pybullet", "mujoco"))
DIFFERENT = {"mujoco/reacher": (10, 11), "mujoco/ant": (105, 111), "mujoco/inverted-double-pendulum": (9, 11)}
LOCOMOTION = ["pybullet/ant", "pybullet/half-cheetah", "pybullet/hopper", "pybullet/walker2d"]


def play(env: gym.Env, seed: int, steps: int = 200) -> bytes:
    """Everything that ``steps`` random actions get to see, over episodes that begin with the seed."""
    rng = np.random.default_rng(seed)
    seen, over = [], True
    for _ in range(steps):
        if over:
            seen.append(env.reset(seed=seed)[0])
        low, high = env.action_space.low, env.action_space.high
        observation, reward, terminated, truncated, _ = env.step(rng.uniform(low, high).astype(np.float32))
        over = terminated or truncated
        seen += [observation, np.array([reward, terminated, truncated], dtype=np.float64)]
    return b"".join(np.ascontiguousarray(part).tobytes() for part in seen)


def test_both_suites_of_the_appendix_are_complete():
    names = {
        suite: {name.split("/")[1] for name in SUITES if name.startswith(suite)} for suite in ("pybullet", "mujoco")
    }
    both = {"inverted-pendulum", "inverted-double-pendulum", "reacher", "walker2d", "half-cheetah", "ant", "hopper"}
    assert names == {"pybullet": both | {"inverted-pendulum-swingup"}, "mujoco": both | {"swimmer"}}


@pytest.mark.parametrize("name", SUITES)
def test_dimensions_are_the_papers_or_the_difference_is_noted(name):
    task, env = TASKS[name], make_env(TASKS[name])
    assert (*env.observation_space.shape, *env.action_space.shape) == task.dimensions
    ours, papers = DIFFERENT.get(name, (task.dimensions[0],) * 2)
    assert (task.dimensions, task.paper_dimensions) == ((ours, task.dimensions[1]), (papers, task.dimensions[1]))
    assert (f"the paper's has {papers}" in task.note) == (name in DIFFERENT)
    assert task.summary.endswith(task.note)
    env.close()


@pytest.mark.parametrize("name", SUITES)
def test_a_fresh_and_a_used_environment_play_the_same_episodes(name):
    used = make_env(TASKS[name])
    assert play(used, seed=1) != play(used, seed=2)
    again = play(used, seed=3)
    assert play(used, seed=3) == again
    assert play(make_env(TASKS[name]), seed=3) == again


@pytest.mark.parametrize("name", LOCOMOTION)
def test_pybullet_needs_the_reset_at_making(name):
    """Should this fail, PyBullet has fixed it and ``settle`` can go."""
    bare = gym.make(TASKS[name].make, disable_env_checker=True)
    first = play(bare, seed=3)
    assert play(bare, seed=3) != first


def test_a_runs_manifest_reports_the_environments_version_and_the_simulators(tmp_path):
    config = configure("td3", "mujoco/hopper", steps=60, start_steps=50, batch_size=8, eval_every=0)
    manifest = json.loads((train(config, runs=tmp_path) / "manifest.json").read_text())
    assert manifest["environment"] == "Hopper-v5"
    assert manifest["packages"]["mujoco"] == metadata.version("mujoco")


def test_a_games_manifest_reports_ales_version_and_opencvs(tmp_path):
    """cv2 comes in a package of another name."""
    run = RunDirectory(tmp_path, configure("dqn", "gym/ALE/Pong-v5"))
    run.write_manifest({})
    packages = json.loads((tmp_path / "manifest.json").read_text())["packages"]
    assert packages["ale_py"] == metadata.version("ale-py")
    assert metadata.version("opencv-python-headless").startswith(packages["cv2"])


NOISE = """
from peer_rl.envs.make import make_env
from peer_rl.settings.tasks import find_task
print("before")
env = make_env(find_task({name!r}))
env.reset(seed=0)
env.step(env.action_space.sample())
env.close()
print("after")
"""


@pytest.mark.parametrize(
    "name", ["pybullet/ant", "mujoco/half-cheetah", "gym/HalfCheetah-v4", "atari/pong", "gym/ALE/Pong-v5"]
)
def test_simulators_print_nothing_and_leave_no_file(name, tmp_path):
    command = [sys.executable, "-W", "error", "-c", NOISE.format(name=name)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert (result.stdout, result.stderr) == ("before\nafter\n", "")
    assert not list(tmp_path.iterdir())


def test_training_loads_no_gl(tmp_path):
    """Drawing is for ``peer-rl watch``; a training machine may have no GL library at all."""
    code = NOISE.format(name="mujoco/ant") + (
        "import sys\nloaded = [m for m in sys.modules if m.split('.')[0] == 'OpenGL']\n"
        "libraries = ('libEGL', 'libGL', 'libOSMesa')\n"
        "mapped = [line for line in open('/proc/self/maps') if any(name in line for name in libraries)]\n"
        "print(loaded, mapped)"
    )
    env = {name: value for name, value in os.environ.items() if name != "MUJOCO_GL"}
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True, env=env)
    assert result.stdout.splitlines()[-1] == "[] []"


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("pybullet/ant", "pybullet"),
        ("mujoco/ant", "mujoco"),
        ("gym/HalfCheetah-v5", "mujoco"),
        ("gym/pybullet_envs_gymnasium:AntBulletEnv-v0", "pybullet"),
        ("atari/pong", "atari"),
        ("gym/ALE/Pong-v5", "atari"),
        ("gym/CartPole-v1", ""),
        ("gym/NoSuchThing-v9", ""),
        ("gridworld/paper", ""),
        ("toy_envs:choice", ""),
    ],
)
def test_the_engine_of_any_task_is_known(name, engine):
    assert engine_of(find_task(name)) == engine


@pytest.mark.parametrize(
    ("blocked", "task", "words"),
    [
        ("mujoco", "mujoco/hopper", "task mujoco/hopper needs mujoco; install it with: pip install 'peer-rl[mujoco]'"),
        (
            "imageio",
            "mujoco/hopper",
            "task mujoco/hopper needs imageio; install it with: pip install 'peer-rl[mujoco]'",
        ),
        ("mujoco", "gym/HalfCheetah-v5", "needs mujoco; install it with: pip install 'peer-rl[mujoco]'"),
        (
            "pybullet_envs_gymnasium",
            "pybullet/ant",
            "task pybullet/ant needs pybullet_envs_gymnasium; install it with: pip install 'peer-rl[pybullet]'",
        ),
        ("ale_py", "atari/pong", "task atari/pong needs ale_py; install it with: pip install 'peer-rl[atari]'"),
        ("cv2", "atari/pong", "task atari/pong needs cv2; install it with: pip install 'peer-rl[atari]'"),
        ("ale_py", "gym/ALE/Pong-v5", "needs ale_py; install it with: pip install 'peer-rl[atari]'"),
    ],
)
def test_a_missing_simulator_names_the_pip_line(blocked, task, words):
    code = (
        f"import sys; sys.modules[{blocked!r}] = None\n"
        "from peer_rl.envs.make import make_env\nfrom peer_rl.settings.tasks import find_task\n"
        f"try: make_env(find_task({task!r}))\nexcept ValueError as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert words in result.stdout
    assert len(result.stdout.splitlines()) == 1


def test_a_missing_simulator_is_one_line_of_the_command_line(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['mujoco'] = None")
    result = peer_rl("train", "dqn", "--task", "gym/HalfCheetah-v5", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert (result.returncode, result.stdout) == (2, "")
    expected = "task gym/HalfCheetah-v5 needs mujoco; install it with: pip install 'peer-rl[mujoco]'"
    assert result.stderr == f"peer-rl: {expected}\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pybullet/hoper", "did you mean 'pybullet/hopper'"),
        ("mujoco/HalfCheetah", "did you mean 'mujoco/half-cheetah'"),
        ("mujoc/ant", "did you mean 'mujoco/ant'"),
        ("pybullet/xyz", "pybullet has: inverted-pendulum, .*, ant, hopper"),
        ("mujoco/", "mujoco has: reacher, .*swimmer"),
        ("dmc/cheetah_run", "did you mean 'dmc/cheetah-run'"),
        ("dmc/walker-wlak", "did you mean 'dmc/walker-walk'"),
        ("dmc/humanoid", "dmc has: ball-in-cup-catch, .*, walker-walk"),
        ("atari/mspacman", "did you mean 'atari/ms-pacman'"),
        ("atari/MsPacman", "did you mean 'atari/ms-pacman'"),
        ("atari/zzz", "atari has: alien, .*, up-n-down"),
    ],
)
def test_unknown_tasks_suggest_the_nearest_or_list_the_suite(name, words):
    with pytest.raises(ConfigError, match=words):
        find_task(name)


def test_the_docs_show_the_table():
    page = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in page.splitlines()]
    shown = {row[0]: row[1:] for row in rows if row[0] in SUITES}
    for name in SUITES:
        task = TASKS[name]
        papers = [task.paper_dimensions[0]] if task.suite == "mujoco" else []
        sizes = [str(size) for size in (task.dimensions[0], *papers, task.dimensions[1])]
        assert shown[name] == [*sizes, task.make.split(":")[-1]]
