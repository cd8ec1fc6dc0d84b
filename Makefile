# make demo, make test and make lint each set up what they need, once.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: demo test lint format docs clean

demo: .venv/.ready
	$(BIN)/peer-rl reproduce gridworld

test: .venv/.ready
	@sh tools/system_packages.sh
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: .venv/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/.ready
	$(BIN)/mkdocs build --strict
	@echo "site/index.html"

# torch comes first and pinned: a looser requirement would pull gigabytes of CUDA packages.
.venv/.ready: pyproject.toml constraints.txt
	PYTHON="$(PYTHON)" sh tools/make_venv.sh
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
