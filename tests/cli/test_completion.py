"""Completion as the shells ask for it, and in the shells themselves."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running import command

from peer_rl.cli.completion import SCRIPTS, complete
from peer_rl.cli.main import COMMANDS
from peer_rl.paper import EXPERIMENTS
from peer_rl.settings import AGENTS

ASK = {
    "bash": 'eval "$(peer-rl completion bash)"; COMP_WORDS=(peer-rl {words}); COMP_CWORD={last}; _peer_rl; '
    'printf "%s\\n" "${{COMPREPLY[@]}}"',
    "zsh": 'eval "$(peer-rl completion zsh)"; compadd() {{ print -l -- $found; }}; _files() {{ print files; }}; '
    "words=(peer-rl {words}); CURRENT=$(( {last} + 1 )); _peer_rl",
    "fish": 'peer-rl completion fish | source; complete -C "peer-rl {words}"',
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("tra", {"train"}),
        ("train redq --task mujoco/ho", {"mujoco/hopper"}),
        ("train td3 --task pybullet/hopper --actor-l", {"--actor-learning-rate"}),
        ("train dqn --no-dou", {"--no-double"}),
        ("train td3 --profile ", {"paper", "small", "smoke"}),
        ("runs --state f", {"finished"}),
        ("completion z", {"zsh"}),
        ("train td3 --quiet ", set()),
        ("train nonsense --s", set()),
        ("nonsense ", set()),
        ("eval ", set()),
    ],
)
def test_words_options_and_values(words, expected):
    assert set(complete(words.split(" "))) == expected


def test_every_command_agent_and_experiment():
    assert {*COMMANDS} < set(complete([""]))
    assert complete(["train", ""]) == [*AGENTS]
    assert complete(["reproduce", ""]) == [*EXPERIMENTS]
    for name in COMMANDS:
        if name != "completion":
            assert len(complete([name, *(["dqn"] if name == "train" else []), "--"])) > 1, name


def test_what_is_wrong_is_one_line():
    assert command("completion", "tcsh").stderr == "peer-rl: no completion for 'tcsh'; there are: bash, zsh, fish\n"
    assert command("completion").returncode == 2
    for shell in SCRIPTS:
        assert f"peer-rl completion {shell}" in command("completion", "--help").stdout


@pytest.mark.parametrize("shell", ASK)
def test_the_shell_completes(shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed: make packages")
    (tmp_path / "peer-rl").write_text(f'#!/bin/sh\nexec {sys.executable} -m peer_rl "$@"\n')
    (tmp_path / "peer-rl").chmod(0o755)
    for words, expected in (("doc", "doctor"), ("train td3 --task pybullet/ho", "pybullet/hopper")):
        line = ASK[shell].format(words=words, last=len(words.split()))
        done = run(shell, line, tmp_path)
        assert done.stdout.split() == [expected], done.stderr


def run(shell: str, line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{folder}:{os.environ['PATH']}"
    quiet = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    environment = {**os.environ, "PATH": path, "HOME": str(folder)}
    return subprocess.run([shell, *quiet, "-c", line], capture_output=True, text=True, env=environment)
