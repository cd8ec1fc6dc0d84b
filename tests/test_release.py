"""What a release consists of: metadata, its page on an index, images, workflows, the wheel in empty environments."""

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import peer_rl

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
DOCKERFILES = ("Dockerfile", "Dockerfile.cuda")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
INDEX_LINK = re.compile(
    r"\(https://(?:github\.com/peer-rl/peer-rl/blob|raw\.githubusercontent\.com/peer-rl/peer-rl)/v([\d.]+)/([^)#]+)"
)


def tool(name: str) -> ModuleType:
    spec = spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def index_page() -> str:
    """The README as the build hook of pyproject.toml rewrites it."""
    text = (ROOT / "README.md").read_text()
    for rule in PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    return text.replace("$HFPR_VERSION", peer_rl.__version__)


def write_wheel(path: Path, *requirements: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        lines = "".join(f"Requires-Dist: {line}\n" for line in requirements)
        archive.writestr("peer_rl-1.dist-info/METADATA", f"Metadata-Version: 2.1\nName: peer-rl\n{lines}\n")
    return path


def lines_of(path: str) -> str:
    """A Dockerfile with continued lines joined and comments left out."""
    text = re.sub(r"^#.*\n", "", (ROOT / path).read_text(), flags=re.MULTILINE)
    return text.replace("\\\n", " ")


def test_the_index_page_has_no_relative_link_and_no_formula():
    tool("try_package").check_page(index_page())
    links = INDEX_LINK.findall(index_page())
    assert len(links) > 20
    for version, path in links:
        assert version == peer_rl.__version__
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", ["[a](docs/a.md)", "![a](a.png)", r"so $\beta$ is"])
def test_a_bad_index_page_is_refused(page):
    module = tool("try_package")
    module.check_page(f"`{page}`\n\n```console\n{page}\n```\n\n[x](https://example.org) [y](#z)")
    with pytest.raises(module.Broken):
        module.check_page(page)


def test_only_what_the_metadata_asks_for_is_linked(tmp_path):
    module = tool("try_package")
    wheel = write_wheel(tmp_path / "a.whl", "safetensors>=0.4", "gymnasium; extra == 'train'", "rich; extra == 'other'")
    assert {found.name for found in module.requirements(wheel, set())} == {"safetensors"}
    assert "gymnasium" in {found.name for found in module.requirements(wheel, {"train"})}
    assert "rich" not in {found.name for found in module.requirements(wheel, {"train"})}
    with pytest.raises(module.Broken, match=r"safetensors>=99 is required"):
        list(module.requirements(write_wheel(tmp_path / "b.whl", "safetensors>=99"), set()))


def test_a_wheel_without_our_data_files_is_refused(tmp_path):
    module = tool("try_package")
    with pytest.raises(module.Broken, match=r"lacks peer_rl/"):
        module.check_contents(write_wheel(tmp_path / "a.whl"))


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == peer_rl.__version__
    newest = re.search(r"^## \[?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert newest == peer_rl.__version__


def test_the_citation_is_the_readmes():
    paper = yaml.safe_load((ROOT / "CITATION.cff").read_text())["preferred-citation"]
    bibtex = re.search(r"```bibtex\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    authors = " and ".join(f"{who['family-names']}, {who['given-names']}" for who in paper["authors"])
    for words in (paper["title"], authors, paper["collection-title"], str(paper["year"])):
        assert f"{{{words}}}" in bibtex


def test_the_classifiers_name_the_pythons_that_are_tested():
    named = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)}
    matrix = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())["jobs"]["versions"]["strategy"][
        "matrix"
    ]
    assert named == set(matrix["python"]) == set(tool("try_versions").PYTHONS)
    assert matrix["torch"] == ["oldest", "newest"]


def test_oldest_and_newest_torch():
    requirement = tool("try_versions").torch_requirement
    assert PROJECT["dependencies"] == [f"torch>={requirement('oldest').removeprefix('torch==').removesuffix('.*')}"]
    assert requirement("newest") == "torch"
    assert requirement("2.7.1") == "torch==2.7.1"


def test_the_matrix_runs_tests_that_exist():
    module = tool("try_versions")
    for path in (*module.TESTS, *module.WITHOUT_TORCH):
        assert (ROOT / "tests" / path).exists(), path
    assert set(module.EXTRAS.split(",")) <= set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("path", DOCKERFILES)
def test_what_the_images_copy_and_run_exists(path):
    """No engine builds them here, so their parts are checked."""
    text = lines_of(path)
    kept = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"}
    for words in re.findall(r"^COPY (.*)$", text, re.MULTILINE):
        for source in words.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert source in kept, f".dockerignore leaves out {source}"
    extras = set(re.search(r"^ARG EXTRAS=(\S+)$", text, re.MULTILINE)[1].split(","))
    assert extras <= set(PROJECT["optional-dependencies"])
    assert re.search(r'^ENTRYPOINT \["(.*)"\]$', text, re.MULTILINE)[1] in PROJECT["scripts"]
    assert re.search(r"^USER (?!root)", text, re.MULTILINE)
    assert {line.split()[0] for line in text.splitlines() if line.strip()} <= {
        *("FROM", "ARG", "ENV", "RUN", "WORKDIR", "COPY", "USER", "ENTRYPOINT", "CMD"),
    }


@pytest.mark.parametrize("path", DOCKERFILES)
def test_the_images_shell_lines_parse(path):
    found = re.findall(r"^RUN (.*)$", lines_of(path), re.MULTILINE)
    assert found
    for line in found:
        subprocess.run(["sh", "-n", "-c", line], check=True)


@pytest.mark.parametrize("path", DOCKERFILES)
def test_the_images_examples_are_commands_of_ours(path):
    from peer_rl.cli.train import read_options

    found = re.findall(r" peer-rl(?::cuda)? train (.*)$", (ROOT / path).read_text(), re.MULTILINE)
    assert found
    for words in found:
        read_options(words.replace("--device cuda", "").split())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_workflows_run_what_exists(path):
    workflow: dict[str, Any] = yaml.safe_load(path.read_text())
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    runs = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert runs
    for line in runs:
        for target in re.findall(r"\bmake ([\w-]+)", line):
            assert target in targets, line
        for script in re.findall(r"(?:python|sh) (\S+\.(?:py|sh))", line):
            assert (ROOT / script).exists(), line
    for job in workflow["jobs"].values():
        assert set(job.get("needs", "").split()) <= set(workflow["jobs"])


def test_pre_commit_formats_as_make_lint_does():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    pinned = re.search(r"^ruff==.*$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[0]
    assert [hook["additional_dependencies"] for hook in hooks if "ruff" in hook["id"]] == [[pinned]] * 2
    assert {hook["entry"].split()[0] for hook in hooks} == {"ruff", "make"}


@pytest.mark.slow
def test_the_package_builds_and_works_in_environments_of_its_own(tmp_path):
    for name in ("hatchling", "hatch_fancy_pypi_readme"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install -e '.[dev]'")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "try_package.py"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "first PEER loss after" in done.stdout
