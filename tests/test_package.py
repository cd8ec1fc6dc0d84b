"""The package as a whole: names, start-up, layering."""

import ast
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import peer_rl

SOURCE = Path(peer_rl.__file__).parent


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", sorted(set(peer_rl.__all__)))
def test_every_public_name_can_be_had(name):
    assert getattr(peer_rl, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = peer_rl.nothing


def test_importing_the_package_and_its_configs_imports_no_torch():
    heavy = "torch,numpy,gymnasium,matplotlib,plotly"
    code = "import sys, peer_rl, peer_rl.settings, peer_rl.cli.train, peer_rl.cli.listing, peer_rl.cli.main; "
    assert python(code + f"print([m for m in '{heavy}'.split(',') if m in sys.modules])").strip() == "[]"


@pytest.mark.parametrize(
    "command", [[], ["train", "dqn"], ["eval"], ["watch"], ["report"], ["reproduce"], ["sweep"], ["list"], ["doctor"]]
)
def test_help_is_fast(command):
    """0.5 s is the promise for peer-rl --help; processor time, the best of up to three: other tests run too."""
    times, limit = [], 1.0 if command else 0.5
    while len(times) < 3 and (not times or min(times) >= limit):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = subprocess.run([sys.executable, "-m", "peer_rl", *command, "--help"], capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
        assert result.returncode == 0
        assert "usage" in result.stdout
    assert min(times) < limit


def test_files_and_functions_stay_small():
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        assert len(text.splitlines()) <= 400, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno <= 60, (path, node.name)


def test_no_module_has_the_name_of_one_of_pythons_own():
    names = {path.stem for path in SOURCE.rglob("*.py")} - {"__init__", "__main__"}
    assert not names & sys.stdlib_module_names


TD3_FILES = """agents/__init__ agents/td3 networks/mlp networks/optimizer replay/replay replay/store settings/fields
settings/networks settings/run settings/td3 training/loop training/observers"""


def test_td3_can_be_read_in_an_afternoon():
    """From its settings to the optimizer's step, with replay, loop and observers."""
    files = [SOURCE / f"{name}.py" for name in TD3_FILES.split()]
    assert len(files) <= 12
    assert sum(len(path.read_text().splitlines()) for path in files) <= 1500


def test_the_word_done_names_nothing_in_the_data_flow():
    """terminated, truncated and discount are three things; `done` would be any of them."""
    for path in [*(SOURCE / "replay").glob("*.py"), *(SOURCE / "agents").glob("*.py")]:
        names = {n.id for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Name)}
        assert not names & {"done", "dones"}, path
