"""The quickstart notebook runs from an empty folder, and the committed one was executed."""

from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "quickstart.ipynb"


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """What each code cell printed."""
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    return ["".join(one.text for one in cell.outputs if one.get("name") == "stdout") for cell in cells]


def test_the_committed_notebook_holds_its_outputs():
    notebook = nbformat.read(NOTEBOOK, 4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(text for cell, text in zip(code, printed(notebook), strict=True) if "%%capture" not in cell.source)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of jupyter_client, about its own event loop and sockets
def test_the_notebook_runs_from_an_empty_folder(tmp_path):
    notebook = nbformat.read(NOTEBOOK, 4)
    before = printed(notebook)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    after = printed(notebook)
    assert [len(text.splitlines()) for text in after] == [len(text.splitlines()) for text in before]
    assert after[:2] == before[:2]  # the plug-in's numbers, rounded
    assert after[5].startswith("compare/report.html\nWith 2 pairs, PEER (beta = 0.0005) changes the return by ")
    for page in ("compare/report.html", "xray/xray.html"):
        assert (tmp_path / page).stat().st_size > 1_000_000  # with its charts' script inside
    assert len(list((tmp_path / "runs").rglob("status.json"))) == 4
