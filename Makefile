# Two commands do everything: `make demo` shows the main job, `make test` passes the tests.
# Both make the virtual environment and install the locked packages first, once.

PYTHON ?= python3
SCENARIO ?= inflate
VENV := .venv
BIN := $(VENV)/bin
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup demo test check unit infra contract e2e verify bench lock catalog clean

help:  ## Show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(VENV)/.ready node_modules/.ready  ## Make the virtual environment, install locked packages

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	@$(PYTHON) tools/check_machine.py
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing locked Python packages (about a minute) ..."
	@$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

node_modules/.ready: package.json package-lock.json
	@$(PYTHON) tools/check_machine.py
	@echo "installing the locked CDK command line ..."
	@npm ci --silent --no-audit --no-fund
	@touch $@

demo: setup  ## Run the main job on this machine and show what happens (SCENARIO=inflate)
	@$(BIN)/dovetail demo --scenario $(SCENARIO)

test: check unit infra contract e2e  ## Everything a commit must pass, under 10 minutes on 2 cores
	@echo "all tests passed"

check: setup  ## Format, lint, types, import contracts, sizes
	@$(BIN)/ruff format --check --quiet --no-cache .
	@$(BIN)/ruff check --quiet --no-cache .
	@mkdir -p .build
	@$(BIN)/lint-imports --no-cache > .build/imports.log 2>&1 || (cat .build/imports.log; exit 1)
	@$(BIN)/python tools/check_size.py
	@$(BIN)/mypy --no-error-summary

unit: setup  ## Unit tests and laws; the pure core is covered to the last branch
	@$(BIN)/pytest tests/unit tests/property tests/functions tests/docs -m "not slow" -n 2 \
	    --cov --cov-report=term:skip-covered

infra: setup  ## Synthesis, template assertions, lint
	@$(BIN)/pytest tests/infra -m "not slow"

contract: setup  ## Adapters and fakes against the same contracts; the embedded world's own tests
	@$(BIN)/pytest tests/contract -m "not slow" -n 2

e2e: setup  ## One scenario from event to running pod, on the embedded world
	@$(BIN)/pytest tests/e2e -m "not slow"

verify: setup  ## The long runs: every scenario, every expectation falsified once
	@$(BIN)/pytest tests -m "slow or e2e"

bench: setup  ## Benchmarks: ratios in one run, written to docs/benchmarks.md
	@$(BIN)/python -m tests.benchmarks.cold_import
	@$(BIN)/python -m tests.benchmarks.forwarder_memory
	@$(BIN)/python -m tests.benchmarks.packing.bench --write docs/benchmarks.md

lock: setup  ## Lock the packages again after a change of pyproject.toml
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --extra infra --extra local --extra dev \
	    --custom-compile-command "make lock" -o requirements/dev.txt pyproject.toml
	@$(BIN)/uv pip compile --quiet --python-version 3.13 --python-platform aarch64-manylinux_2_28 \
	    --generate-hashes --no-emit-index-url --no-emit-find-links \
	    --custom-compile-command "make lock" -o requirements/functions.txt pyproject.toml
	@npm install --package-lock-only --silent

catalog: setup  ## Generate the embedded catalogue again after an upgrade of its sources
	@$(BIN)/python tools/generate_catalog.py

clean:  ## Remove everything that was made
	@rm -rf $(VENV) node_modules .build cdk.out .mypy_cache .ruff_cache .pytest_cache .hypothesis
