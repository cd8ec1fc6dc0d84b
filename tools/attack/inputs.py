"""Bad input: command lines, environments that break Gymnasium's API, and objects given to the plug-in."""

from __future__ import annotations

import json
import math
import random
import re
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attack.cases import Result, finish, peer_rl, start

SUMMARY = "command lines with wrong words and values, broken environments in short runs, odd objects for the plug-in"
PER_CASE = 1
_TRAIN = {"dqn": "gridworld/paper", "td3": "gym/Pendulum-v1", "sac": "gym/Pendulum-v1", "ppo": "gym/CartPole-v1"}
_TRAIN |= {"rainbow": "atari/pong", "td-mpc": "dmc/cartpole-swingup", "curl-sac": "dmc/cartpole-swingup"}
_HARMLESS = {  # a command that ends at once whatever option follows
    **{f"train {agent}": ["train", agent, "--task", task, "--dry-run"] for agent, task in _TRAIN.items()},
    "reproduce": ["reproduce", "gridworld", "--dry-run"],
    "sweep": ["sweep", "grid.toml", "--dry-run"],
    "eval": ["eval", "no-run"],
    "watch": ["watch", "no-run"],
    "export": ["export", "no-run"],
    "report": ["report", "no-runs"],
    "compare": ["compare", "no-script.py:make"],
    "xray": ["xray", "no-model.zip"],
    "runs": ["runs", "--runs", "."],
    "list": ["list"],
    "completion": ["completion", "bash"],
}
# fmt: off
_VALUES = [
    "9" * 20, "-" + "9" * 20, "1" + "0" * 400, "1e400", "-1", "0", "nan", "inf", "-inf", "1e5", "100_000", "0x10", "",
    " ", "-", "--", "=", "None", "True", "{}", "[1]", "1.5", "²", "٣", "½", "\u202e", "\udcff", "\n", "\x1b[2J",
    "a" * 5_000, "/" * 300, "x/" * 500, "/dev/null/x", "/proc/1/no", "~", "..", "%s%n", "$(id)", "auto", "os:abort",
    "module:", ":x", "gym/", "gym/No-v99", "dmc/a-b-c", "json:loads", "os:getcwd", "a b", "'", '"', "1,2", "1 2",
]
_WORDS = [
    "--help", "--no-such", "--", "-", "-x", "--=", "--beta", "--seed=", "--runs", "--config", "--wandb", "--é", "",
]
_TOML = [
    'agents = ["dqn"]', 'tasks = ["gridworld/paper"]', "seeds = 2", "betas = [0.0]", "steps = 100", "[options]",
    "x = 1",
]
# fmt: on


def prepare(base: Path) -> None:
    """The options of each command, from its --help."""
    options = {}
    for name, words in _HARMLESS.items():
        shown = peer_rl(base / "help", *words, "--help")
        assert shown.code == 0, shown
        options[name] = sorted(
            set(re.findall(r"(?<![\w-])--[a-z][\w.-]*", shown.out)) - {"--help", "--pictures"}
        )  # those of a list are drawn
    (base / "options.json").write_text(json.dumps(options))


def attack(dice: random.Random, home: Path, base: Path) -> Result:
    """One command line, environment or object."""
    kind = dice.choices([command_line, environment, plug_in], [6, 3, 1])[0]
    return kind(dice, home, base)


def command_line(dice: random.Random, home: Path, base: Path) -> Result:
    """A command that would end at once, with one to four wrong words."""
    name = dice.choice(list(_HARMLESS))
    words, options = list(_HARMLESS[name]), json.loads((base / "options.json").read_text())[name]
    (home / "work").mkdir()
    text = "\n".join(dice.choice([line, line, _bad_line(dice, line)]) for line in _TOML[: dice.randint(2, len(_TOML))])
    (home / "work" / "grid.toml").write_text(text, errors="surrogateescape")
    for _ in range(dice.randint(1, 3)):
        act = dice.random()
        place = dice.randint(0, len(words))
        if act < 0.6 and options:
            words += [dice.choice(options), *dice.choices(_VALUES, k=dice.choice([0, 1, 1, 1, 2]))]
        elif act < 0.75:
            words.insert(place, dice.choice(_WORDS + _VALUES))
        elif act < 0.85 and len(words) > 1:
            words[dice.randrange(len(words))] = dice.choice(_VALUES)
        else:
            words.insert(place, dice.choice(options or _WORDS))
    if words[0] in ("train", "reproduce", "sweep") and not {"--dry-run", "--help"} & set(words):
        words.append("--dry-run")
    outcome = peer_rl(home, *words)
    return Result(outcome.line, outcome.faults(), commands=1)


def _bad_line(dice: random.Random, line: str) -> str:
    name = line.partition(" = ")[0]
    return f"{name} = {dice.choice(['[]', '-1', '[' * 3000, '1e999', 'true', '{}', '9' * 25, '[[1]]', '1979-05-27'])}"


BREAKS = {  # what the environment does from some step on; `self`, `obs` (an array of 2) are there
    "step": {
        "four values": "return obs, 1.0, False, {}",
        "one value": "return obs",
        "None": "return None",
        "six values": "return obs, 1.0, False, False, {}, 0",
        "reward None": "return obs, None, False, False, {}",
        "reward text": "return obs, 'much', False, False, {}",
        "reward array": "return obs, np.ones(2), False, False, {}",
        "reward complex": "return obs, 1j, False, False, {}",
        "reward NaN": "return obs, float('nan'), False, False, {}",
        "reward huge": "return obs, 10**400, False, False, {}",
        "flag array": "return obs, 1.0, np.array([True, False]), False, {}",
        "flag None": "return obs, 1.0, None, False, {}",
        "flag text": "return obs, 1.0, 'no', False, {}",
        "info None": "return obs, 1.0, False, False, None",
        "obs None": "return None, 1.0, False, False, {}",
        "obs ragged": "return [[1.0], [1.0, 2.0]], 1.0, False, False, {}",
        "obs short": "return obs[:1], 1.0, False, False, {}",
        "obs long": "return np.ones(7), 1.0, False, False, {}",
        "obs text": "return 'here', 1.0, False, False, {}",
        "obs dict": "return {'a': obs}, 1.0, False, False, {}",
        "obs NaN": "return obs * np.nan, 1.0, False, False, {}",
        "SystemExit": "raise SystemExit(0)",
        "sys.exit": "import sys; sys.exit()",
        "Exception": "raise KeyError(None)",
        "no message": "raise Exception",
        "StopIteration": "raise StopIteration",
        "KeyboardInterrupt": "raise KeyboardInterrupt",
    },
    "reset": {
        "no tuple": "return obs",
        "None": "return None",
        "three values": "return obs, {}, 0",
        "obs None": "return None, {}",
        "obs short": "return obs[:1], {}",
        "obs ragged": "return [[1.0], [1.0, 2.0]], {}",
        "Exception": "raise RuntimeError('no robot')",
        "SystemExit": "raise SystemExit(0)",
        "no message": "raise Exception",
    },
    "close": {"Exception": "raise RuntimeError('stuck')", "SystemExit": "raise SystemExit(0)"},
    "space": {
        "no observation": "del self.observation_space",
        "no action": "del self.action_space",
        "None": "self.observation_space = None",
        "text": "self.action_space = 'left'",
        "NaN bounds": "self.action_space = space(np.full(1, np.nan), np.full(1, np.nan))",
        "reversed": "self.action_space = space(np.ones(1), -np.ones(1))",
        "infinite": "self.action_space = space(np.full(1, -np.inf), np.full(1, np.inf))",
        "empty": "self.action_space = space(np.zeros(0), np.zeros(0))",
        "no states": "self.observation_space = space(np.zeros(0), np.zeros(0))",
        "tuple": "self.observation_space = spaces.Tuple([self.observation_space])",
        "huge": "self.observation_space = spaces.Discrete(10**15)",
        "text space": "self.observation_space = spaces.Text(5)",
        "raises": "raise OSError('no display')",
        "SystemExit": "raise SystemExit(0)",
    },
    "signature": {"reset without seed": "def reset(self):", "step without action": "def step(self):"},
}
_ENVIRONMENT = """
import gymnasium as gym
import numpy as np
from gymnasium import spaces

def space(low, high):
    box = spaces.Box(-1.0, 1.0, low.shape, np.float32)
    box.low, box.high = low.astype(np.float32), high.astype(np.float32)
    return box

class Broken(gym.Env):
    count = resets = 0
    def __init__(self):
        self.observation_space = spaces.Box(-9.0, 9.0, (2,), np.float32)
        self.action_space = {actions}
        {space}
    def reset(self, *, seed=None, options=None):
        obs = np.ones(2, np.float32)
        self.resets += 1
        if self.resets > {resets}:
            {reset}
        return obs, {{}}
    def step(self, action):
        obs = np.ones(2, np.float32)
        self.count += 1
        if self.count > {steps}:
            {step}
        return obs, 1.0, self.count % 9 == 0, False, {{}}
    def close(self):
        {close}

def make():
    return Broken()
"""


def environment(dice: random.Random, home: Path, base: Path) -> Result:
    """A short run of an environment that breaks its contract: at once, after some steps, or later."""
    (home / "work").mkdir()
    where = dice.choice(list(BREAKS))
    what = dice.choice(list(BREAKS[where]))
    body = BREAKS[where][what]
    agent = dice.choice(["dqn", "td3", "sac", "ppo"])
    actions = "spaces.Discrete(2)" if agent == "dqn" else "spaces.Box(-1.0, 1.0, (1,), np.float32)"
    lines = {name: body if name == where else "pass" for name in ("step", "reset", "close", "space")}
    text = _ENVIRONMENT.format(actions=actions, steps=dice.choice([0, 5, 30]), resets=dice.choice([0, 1, 4]), **lines)
    if where == "signature":
        text = re.sub(rf"def {body.split('(')[0][4:]}\(.*\):", body, text)
    (home / "work" / "broken.py").write_text(text)
    words = ["train", agent, "--task", "broken:make", "--steps", "40", "--eval-every", "20", "--eval-episodes", "1"]
    words += ["--checkpoint-seconds", "0", "--runs", "runs", "--max-episode-steps", "20", "--quiet", "--threads", "1"]
    words += ["--batch-steps", "16", "--minibatches", "2"] if agent == "ppo" else ["--start-steps", "10"]
    outcome = peer_rl(home, *words)
    codes = (
        (0, 1, 2, 130) if "Interrupt" in body else (0, 1, 2)
    )  # 1: an exception of the user's code, with its traceback
    failures = outcome.faults(codes=codes)
    if outcome.code == 1 and "Traceback" not in outcome.errors:
        failures.append(f"exit code 1 without a traceback: {outcome.errors[-200:]!r}")
    states = [json.loads(path.read_text()).get("state") for path in (home / "work").rglob("status.json")]
    if where != "close" and (outcome.code == 0) != (states == ["finished"]):
        failures.append(f"exit code {outcome.code}, but the run's state is {states}")
    return Result(f"{agent}: {where}: {what}", failures, commands=1)


def _odd(dice: random.Random) -> Any:
    import numpy as np
    import torch

    tensor = torch.ones(3, 4)
    odd = [None, 1, 1.5, "x", b"x", [], {}, object(), math.nan, np.ones((3, 4)), [[1.0, 2.0]], lambda x: x, types, 1j]
    odd += [tensor, tensor.int(), tensor.bool(), tensor.to(torch.complex64), tensor.half(), tensor.double(), tensor[0]]
    odd += [tensor * math.nan, tensor * math.inf, torch.ones(0), torch.ones(3, 0), torch.ones(0, 4), torch.ones(3, 5)]
    odd += [torch.ones(2, 3, 4), torch.tensor(1.0), tensor.to("meta"), tensor.to_sparse(), torch.nn.Linear(4, 1)]
    odd += [torch.nn.Linear(4, 2), torch.nn.Sequential(), torch.nn.Identity(), torch.nn.LazyLinear(1), torch.nn.Flatten]
    return dice.choice(odd)


def plug_in(dice: random.Random, home: Path, base: Path) -> Result:
    """A function or class of the plug-in with odd arguments: a number, or an error of ours with a sentence."""
    seed, names = dice.random(), ["peer_loss", "PEER", "CosinePEER", "BEER", "drd", "diagnose", "check_critic", "tap"]
    name = dice.choice(names)

    def call() -> int:
        import peer_rl as ours

        inner = random.Random(seed)
        phi, phi_next = _odd(inner), _odd(inner)
        more = {"head_weight": _odd(inner), "reward": _odd(inner)}
        calls: dict[str, Callable[[], Any]] = {
            "peer_loss": lambda: ours.peer_loss(phi, phi_next, beta=inner.choice([0.1, _odd(inner)])),
            "drd": lambda: ours.drd(phi, phi_next, **more, gamma=inner.choice([0.9, _odd(inner)])),
            "diagnose": lambda: ours.diagnose(phi, phi_next, **more, gamma=inner.choice([0.9, _odd(inner)])),
            "check_critic": lambda: ours.check_critic(phi, phi_next),
            "tap": lambda: ours.RepresentationTap(phi).__enter__(),
        }
        made = calls.get(name) or (
            lambda: getattr(ours, name)(inner.choice([0.1, _odd(inner)]))(ours.Features(phi, phi_next, **more))
        )
        errors = (ValueError, TypeError)  # ConfigError is a ValueError
        if name in ("check_critic", "tap"):
            errors += (RuntimeError,)  # of the critic's own forward
        try:
            made()
        except errors as error:
            print(f"peer-rl: {error}")
        return 0

    outcome = finish(start(home, call), home, (name, f"{seed}"))
    return Result(f"plug-in: {name} {outcome.out.strip()[:200]}", outcome.faults(codes=(0,)), commands=1)
