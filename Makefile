# Two commands do everything: `make demo` shows the main job, `make test` passes the tests.
# Both make the virtual environment and install the locked packages first, once.

PYTHON ?= python3
SCENARIO ?= inflate
SEEDS ?= 20
FOLDERS ?=
VENV := .venv
BIN := $(VENV)/bin
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes: what they import is compiled once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo page page-test page-browser test check check-types check-others supply unit opinion schedules hostile infra contract e2e verify flaky bench scale faults corpus peers real real-smoke smoke-inflate smoke-others real-judges deploy-local bundle sbom crds access metrics chart release lock \
        catalog clean

help:  ## Show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(VENV)/.ready node_modules/.ready  ## Make the virtual environment, install locked packages

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	@$(PYTHON) tools/check_machine.py
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing locked Python packages (one to three minutes) ..."
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

PAGE := functions/cli/watch/page

$(PAGE)/node_modules/.ready: $(PAGE)/package.json $(PAGE)/package-lock.json
	@echo "installing the locked packages of the page ..."
	@cd $(PAGE) && npm ci --silent --no-audit --no-fund
	@touch $@

page: $(PAGE)/node_modules/.ready  ## Build the page of `dovetail watch`
	@cd $(PAGE) && npm run --silent build

page-test: $(PAGE)/node_modules/.ready  ## The page's types and its data layer
	@cd $(PAGE) && npm test --silent

page-browser: setup page  ## The page in a real browser (Chromium, or CHROMIUM=); PICTURES=DIR keeps what it saw
	@cd $(PAGE) && PYTHON=$(CURDIR)/$(BIN)/python npm run --silent browser

WORKERS ?= 2

test: setup $(PAGE)/node_modules/.ready  ## Everything a commit must pass (15 minutes at most)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync WORKERS=1 check-types check-others supply page-test opinion hostile
	@$(MAKE) --no-print-directory unit schedules infra contract e2e
	@echo "all tests passed"

check: setup  ## Format, lint, types, import contracts, sizes
	@$(MAKE) --no-print-directory --jobs 2 --output-sync check-types check-others

check-types:
	@$(BIN)/mypy --no-error-summary

check-others:
	@$(BIN)/ruff format --check --quiet --no-cache .
	@$(BIN)/ruff check --quiet --no-cache .
	@mkdir -p .build
	@$(BIN)/lint-imports --no-cache > .build/imports.log 2>&1 || (cat .build/imports.log; exit 1)
	@$(BIN)/python tools/check_size.py
	@$(BIN)/python -m tools.house --bars

supply: setup  ## What is installed is what is locked, hash by hash; licences of what is shipped
	@$(BIN)/python -m tools.check_installed
	@$(BIN)/python -m tools.make_sbom > /dev/null

unit: setup  ## Unit tests and laws; the pure core is covered to the last branch
	@$(BIN)/pytest tests/unit tests/property tests/functions tests/docs tests/karpenter_cases \
	    tests/peers tests/corpus tests/node_groups -m "not slow" -n 2 --cov --cov-report=term:skip-covered

opinion: setup  ## A second opinion, on 1,000 random clusters: would kube-scheduler agree?
	@$(BIN)/pytest tests/scheduler_oracle -m "not slow" -n $(WORKERS)

schedules: setup  ## 2,000 random schedules of faults, crash points, every safeguard taken away once
	@$(BIN)/pytest tests/simulation -m "not slow" -n 2 --dist worksteal

hostile: setup  ## The hostile corpus: a thousand inputs of each kind
	@$(BIN)/pytest tests/hostile -m "not slow" -n $(WORKERS) --dist worksteal

infra: setup  ## Synthesis, template assertions, lint
	@$(BIN)/pytest tests/infra -m "not slow" -n 2 --dist worksteal

contract: setup  ## Adapters and fakes against the same contracts; the embedded world's own tests
	@$(BIN)/pytest tests/contract tests/local tests/scale -m "not slow" -n 2

e2e: setup  ## One scenario from event to running pod, on the embedded world
	@$(BIN)/pytest tests/e2e -m "not slow" -n 2

verify: setup  ## The long runs: every scenario, every expectation falsified once
	@$(BIN)/pytest tests/scheduler_oracle -m slow -n 2
	@$(BIN)/pytest tests/hostile -m slow -n 2
	@$(BIN)/pytest tests --ignore tests/scheduler_oracle --ignore tests/hostile -m "slow or e2e"
	@$(MAKE) --no-print-directory page-browser

flaky: setup  ## contract, local, infra, e2e, functions with 20 seeds; goes on where it stopped (SEEDS=, FOLDERS=)
	@$(BIN)/python tools/flaky.py --seeds $(SEEDS) $(FOLDERS)

bench: setup  ## Benchmarks: one run, one table, written to docs/benchmarks.md (10 minutes)
	@$(BIN)/python -m tests.benchmarks.bench --write docs/benchmarks.md

ROW ?=

scale: setup  ## How cost and time grow up to 10,000 nodes and 100,000 pods (ROW= for one row, 15 minutes for all); all rows are written to docs/scale.md
	@$(BIN)/python -m tests.scale $(if $(ROW),--row $(ROW),--write docs/scale.md)

faults: setup  ## 100,000 random schedules, crash points, mutations, hard days; goes on where it stopped
	@$(BIN)/python -m tests.simulation --schedules 100000 --workers 2 --write docs/reliability.md

DIR ?=

corpus: setup  ## Judge a folder of manifests as its INDEX.md says (DIR=)
	@$(BIN)/python -m tests.corpus "$(DIR)"

CASES ?=

peers: setup  ## Beside the real Karpenter: price, nodes, time (CASES=), or what becomes of published NodePools (DIR=)
	@$(BIN)/python -m tests.peers $(if $(CASES),$(CASES),--write docs/peers.md) $(if $(DIR),--manifests "$(DIR)")

MINOR ?=
KUBELET ?= hollow
CLOUD ?= simulated
RUNS ?= 1
REAL = $(BIN)/python -m tests.real $(if $(MINOR),--minor $(MINOR)) --kubelet $(KUBELET) --cloud $(CLOUD)

SOME_SCENARIOS = $(filter command line environment,$(origin SCENARIO))

real: setup  ## Scenarios on real Kubernetes components (SCENARIO= MINOR= KUBELET= CLOUD= RUNS=), as a table
	@$(if $(SOME_SCENARIOS),,$(MAKE) --no-print-directory real-judges)
	@$(REAL) --runs $(RUNS) $(if $(SOME_SCENARIOS),--scenario $(SCENARIO))

real-smoke: setup  ## Machines join and pods run on real Kubernetes components (4 minutes once built)
	@$(BIN)/python -m tests.real --only-build
	@$(MAKE) --no-print-directory --jobs 2 --output-sync smoke-inflate smoke-others

smoke-inflate:
	@$(BIN)/pytest tests/real/test_smoke.py -k "attached or inflate"

smoke-others:
	@$(BIN)/pytest tests/real/test_smoke.py tests/real/test_joining.py -k "not inflate and not attached"

real-judges: setup  ## What kubelet, kubectl, cloud-init, bash and API server say of user data, documents and definitions
	@$(BIN)/python -m tests.real --only-build
	@$(BIN)/pytest tests/real/test_user_data.py tests/real/test_commands.py \
	    tests/real/test_definitions.py -rs

deploy-local: setup  ## The full template into the embedded AWS, every resource looked up, and away
	@$(BIN)/python -m tools.deploy_local

bundle: setup  ## The functions' real bundle for Lambda: its size, and whether it is reproducible
	@$(BIN)/python -m tools.make_bundle

sbom: setup  ## Bill of materials of what is locked (.build/sbom.json), and its licences
	@$(BIN)/python -m tools.make_sbom

crds: setup  ## Make the definitions of the custom resources again from their models
	@$(BIN)/python -m tools.manifests.crds

access: setup  ## Make the roles in the cluster again from their table (tools/manifests/access.py)
	@$(BIN)/python -m tools.manifests.access

metrics: setup  ## Make the tables of docs/operations/metrics.md again from infra/aws/metrics.py
	@$(BIN)/python -m tools.metrics_table

chart: setup  ## Make the Helm chart from infra/cluster (.build/chart)
	@$(BIN)/python -m tools.manifests.chart

release: setup page  ## Wheel, Helm chart, bill of materials, notes and checksums (.build/release)
	@$(BIN)/python -m tools.release.make_release

lock: setup  ## Lock the packages again after a change of pyproject.toml
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --extra infra --extra local --extra watch --extra dev \
	    --custom-compile-command "make lock" -o requirements/dev.txt pyproject.toml
	@$(BIN)/uv pip compile --quiet --python-version 3.13 --python-platform aarch64-manylinux_2_28 \
	    --generate-hashes --no-emit-index-url --no-emit-find-links \
	    --custom-compile-command "make lock" -o requirements/functions.txt pyproject.toml
	@npm install --package-lock-only --silent

catalog: setup  ## Generate the embedded catalogue again after an upgrade of its sources
	@$(BIN)/python tools/generate_catalog.py

clean:  ## Remove everything that was made
	@rm -rf $(VENV) node_modules .build cdk.out .mypy_cache .ruff_cache .pytest_cache .hypothesis
