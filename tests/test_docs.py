"""Every Python block of README.md and docs/*.md runs, page by page, and prints what its page says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import peer_rl.regularizers

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?|nan")


def words(text: str) -> list[str]:
    """The text without its numbers, whose last digits depend on the machine."""
    return NUMBER.sub("#", text).split()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_pages_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(peer_rl.regularizers._Watch, "warned", False)
    text = page.read_text()
    namespace: dict[str, object] = {"__name__": "page"}
    for match in BLOCK.finditer(text):
        # Empty lines in front make a traceback show the page's own line numbers.
        source = "\n" * (text[: match.start()].count("\n") + 1) + match[1]
        # Stable-Baselines3's longer trainings are cut; tests/integrations/test_sb3_docs.py looks at what they leave.
        source = re.sub(r"total_timesteps=\d+_000", "total_timesteps=300", source)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, str(page), "exec"), namespace)
        if match[2] is not None:
            assert words(printed.getvalue()) == words(match[2]), printed.getvalue()


def test_fences_are_python_text_or_console() -> None:
    for page in PAGES:
        fences = re.findall(r"^```(.*)$", page.read_text(), re.MULTILINE)
        opening = set(fences[::2])
        assert opening <= {"python", "text", "console", "toml", "bash", "json"}, (page.name, opening)
        assert set(fences[1::2]) <= {""}, page.name
