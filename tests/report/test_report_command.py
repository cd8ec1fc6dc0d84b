import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import Page, write_both
from synthetic import write_run

from peer_rl.cli import main as cli
from peer_rl.cli import report as command
from peer_rl.errors import PeerError


def test_the_command_writes_a_report_and_prints_where(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    write_both(Path("runs"))
    monkeypatch.setattr(sys, "argv", ["peer-rl", "report", "--no-pictures"])
    assert cli.main() == 0
    assert capsys.readouterr().out.splitlines() == ["4 runs", str(Path("report", "report.html"))]
    assert not list(Path("report").glob("*.png"))
    page = Page(tmp_path / "report" / "report.html")
    assert re.search(r"\bruns/paper/gridworld-paper/dqn\+beta0/seed1\b", page.text)
    assert str(tmp_path) not in page.text


@pytest.fixture
def complaint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    """Runs the command in an empty folder and returns the one line it complains with."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["peer-rl", "report", *arguments])
        assert cli.main() == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.count("\n") == 1, printed.err
        return printed.err

    return run


def test_the_command_without_runs_is_one_line(complaint) -> None:
    assert "there is no folder runs" in complaint()
    Path("runs").mkdir()
    assert "no run directory below runs" in complaint()


def test_an_unwritable_place_is_one_line(complaint) -> None:
    write_run(Path("runs"), task="gym/CartPole-v1", returns=())
    Path("file").write_text("")
    assert "cannot write the report into file" in complaint("runs", "--out", "file")


@pytest.mark.parametrize("missing", ["plotly", "matplotlib", "jinja2", "scipy"])
def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    write_run(tmp_path)
    for name in [name for name in sys.modules if name.startswith(("peer_rl.report.", "peer_rl.paper.", missing))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(PeerError, match=rf"needs {missing}.*pip install 'peer-rl\[report\]'"):
        command.main([str(tmp_path), "--out", str(tmp_path / "out")])


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from peer_rl.cli.report import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('torch', 'matplotlib', 'plotly', 'jinja2', 'scipy', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
