# make demo, make test and make lint set up what they need, once.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: demo test test-slow test-all attack packages lint format docs package ledger clean
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

demo: .venv/.ready
	$(BIN)/peer-rl reproduce gridworld --seeds 2

# Everything but what kills processes, starts Ray or a browser, trains to a threshold or builds the site.
test: .venv/.ready
	$(PYTEST) -m "not slow"

test-slow: .venv/.ready packages
	$(PYTEST) -m slow

test-all: .venv/.ready packages
	$(PYTEST)

# Seeded kills, bad input, damaged and crafted run directories, at the lowest priority.
attack: .venv/.ready
	nice -n 10 $(BIN)/python tools/attack --out benchmarks/results/attack.json $(ATTACK)

# A compiler, a GL library and a browser; the script says what it installs before it does.
packages:
	@sh tools/system_packages.sh

lint: .venv/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/.ready
	$(BIN)/mkdocs build --strict
	@echo "site/index.html"

# The sdist and the wheel, in dist/, used in environments that hold only what their metadata asks for.
package: .venv/.ready
	@rm -rf dist
	$(BIN)/python tools/try_package.py --out dist

# Paired runs at the lowest priority, for as long as you let it; LEDGER="--engine ray" and the like are passed on.
ledger: .venv/.ready
	@$(BIN)/python tools/ledger.py $(LEDGER)

# torch comes first and pinned: a looser requirement would pull gigabytes of CUDA packages.
.venv/.ready: pyproject.toml constraints.txt
	PYTHON="$(PYTHON)" sh tools/make_venv.sh
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
