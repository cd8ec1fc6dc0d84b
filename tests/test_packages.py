"""What is said where a package is missing: one sentence with the pip command, never a traceback."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import peer_rl
from peer_rl import packages
from peer_rl.cli import doctor
from peer_rl.cli.main import COMMANDS, main
from peer_rl.errors import PeerError

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
PLUGIN = {name for name, home in peer_rl._HOME.items() if home.startswith("plugin")}

WITHOUT_TRAINER = f"""
import sys
for name in {packages.TRAINER!r}:
    if name != "filelock":  # torch brings it
        sys.modules[name.replace("-", "_")] = None
"""


def names_of(requirements: list[str]) -> set[str]:
    """The packages among requirements, without versions and without extras of ours."""
    return {re.match(r"[\w-]+", line)[0] for line in requirements if not line.startswith("peer-rl[")}


def forget(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in names:
        monkeypatch.setitem(sys.modules, name.replace("-", "_"), None)


def test_the_lists_are_those_of_pyproject():
    assert names_of(PROJECT["dependencies"]) == {"torch"}
    assert names_of(EXTRAS["train"]) == set(packages.TRAINER)
    assert names_of(EXTRAS["report"]) == set(packages.REPORT)


def test_every_extra_for_users_brings_the_trainer():
    for extra in set(EXTRAS) - {"train", "all", "docs", "dev"}:
        assert "peer-rl[train]" in EXTRAS[extra], extra
    everything = re.findall(r"[\w-]+", EXTRAS["all"][0].removeprefix("peer-rl"))
    assert set(everything) | {"train", "all", "docs", "dev"} == set(EXTRAS)


def test_the_plug_in_runs_beside_torch_alone():
    code = f"""{WITHOUT_TRAINER}
import torch
import peer_rl
for name in {sorted(PLUGIN)!r}:
    getattr(peer_rl, name)
phi = torch.rand(8, 4, requires_grad=True)
peer_rl.peer_loss(phi, torch.rand(8, 4), beta=0.5).backward()
critic = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
tap = peer_rl.RepresentationTap(critic)
critic(torch.rand(8, 3))
print(peer_rl.check_critic(critic, torch.rand(8, 3)))
print(peer_rl.diagnose(tap.phi, torch.rand(8, 4)))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "cosine" in result.stdout


@pytest.mark.parametrize("name", sorted(set(peer_rl.__all__) - PLUGIN - {"__version__"}))
def test_a_name_that_needs_the_trainer_says_so(name, monkeypatch):
    forget(monkeypatch, "tyro", "gymnasium")
    with pytest.raises(ImportError) as raised:
        getattr(peer_rl, name)
    extra = "report" if name == "xray" else "train"
    sentence = f"peer_rl.{name} needs gymnasium and tyro; install with: pip install 'peer-rl[{extra}]'"
    assert str(raised.value) == sentence
    assert isinstance(raised.value, PeerError)


def test_xray_needs_the_packages_of_a_report(monkeypatch):
    forget(monkeypatch, "plotly")
    with pytest.raises(ImportError, match=r"^peer_rl\.xray needs plotly; .*'peer-rl\[report\]'$"):
        _ = peer_rl.xray
    assert peer_rl.configure


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"doctor", "completion"}))
def test_every_command_says_what_it_needs(command, monkeypatch, capsys):
    forget(monkeypatch, *packages.TRAINER)
    monkeypatch.setattr(sys, "argv", ["peer-rl", command, "--help"])
    assert main() == 2
    said = capsys.readouterr()
    assert said.out == ""
    needed = "gymnasium, numpy, safetensors, tyro, rich, tomli-w and filelock"
    assert said.err == f"peer-rl: peer-rl {command} needs {needed}; install with: pip install 'peer-rl[train]'\n"


def test_help_and_version_need_nothing():
    for option, answer in (("--help", "usage: peer-rl"), ("--version", peer_rl.__version__)):
        code = f"{WITHOUT_TRAINER}\nsys.argv[1:] = [{option!r}]\nfrom peer_rl.cli.main import main\nsys.exit(main())"
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        assert answer in result.stdout


def test_doctor_without_the_trainer(monkeypatch, capsys):
    forget(monkeypatch, "tyro", "rich")
    assert doctor.main([]) == 2
    said = capsys.readouterr().out
    assert "ok        the plug-in: torch 2." in said
    fix = "\n          fix: pip install 'peer-rl[train]'\n"
    assert f"missing   the trainer: tyro and rich not installed{fix}" in said
    assert said.endswith("1 problem(s) to fix\n")
    with pytest.raises(PeerError, match=r"^an option of peer-rl doctor needs tyro and rich; "):
        doctor.main(["--runs", "elsewhere"])


def test_doctor_without_torch(monkeypatch, capsys):
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name == "torch" else object())
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    assert doctor.main([]) == 2
    assert "missing   the plug-in: torch not installed\n          fix: pip install torch\n" in capsys.readouterr().out
