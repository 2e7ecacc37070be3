# Two commands do everything: `make demo` shows the main job, `make test` passes the tests.
# What a command needs is installed the first time, from locked files.

PYTHON ?= python3
SCENARIO ?= inflate
SEEDS ?= 20
FOLDERS ?=
VENV := .venv
BIN := $(VENV)/bin
PAGE := functions/cli/watch/page
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes: what they import is compiled once.
unexport PYTHONDONTWRITEBYTECODE
MAKEFLAGS += --no-print-directory

.PHONY: access all-types aws-judges bench bundle cases catalog chart check clean contract corpus coverage crds \
    days demo deploy-local e2e faults flaky help hostile infra local lock lock-image metrics node opinion others \
    page page-browser page-test peers real real-judges real-smoke release rights reports sbom scale \
    schedules setup setup-tests smoke-inflate smoke-others supply tenants terraform test types types-cdk unit \
    verify verify-commit weeks whole

help:  ## Show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

# --- What is installed ---------------------------------------------------------------------------

setup: node $(VENV)/.local node_modules/.ready  ## Install what `dovetail` and the CDK need: .venv, node_modules

setup-tests: setup $(VENV)/.dev $(PAGE)/node_modules/.ready  ## Install what the tests need besides

node:
	@$(PYTHON) tools/check_machine.py node

$(VENV)/.local: requirements/build.txt requirements/local.txt pyproject.toml
	@$(PYTHON) tools/check_machine.py
	@$(PYTHON) tools/set_up.py $(VENV) requirements/local.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.local requirements/dev.txt
	@$(PYTHON) tools/set_up.py $(VENV) requirements/dev.txt
	@touch $@

node_modules/.ready: package.json package-lock.json
	@$(PYTHON) tools/check_machine.py node npm
	@echo "installing the locked CDK command line ..."
	@npm ci --silent --no-audit --no-fund
	@touch $@

$(PAGE)/node_modules/.ready: $(PAGE)/package.json $(PAGE)/package-lock.json
	@$(PYTHON) tools/check_machine.py node npm
	@echo "installing the locked packages of the page ..."
	@cd $(PAGE) && npm ci --silent --no-audit --no-fund
	@touch $@

# --- The main job --------------------------------------------------------------------------------

demo: node $(VENV)/.local  ## Run the main job on this machine and show what happens (SCENARIO=inflate)
	@$(BIN)/dovetail demo --scenario $(SCENARIO)

page: $(PAGE)/node_modules/.ready  ## Build the page of `dovetail watch`
	@cd $(PAGE) && npm run --silent build

# --- Tests ---------------------------------------------------------------------------------------

# A suite prints when it begins and what came of it; a failing one all that it said.
SUITE := $(PYTHON) tools/suite.py
PYTEST := $(BIN)/pytest -p no:cacheprovider
NOW := -m "not slow and not landing"
CASES_OF_TESTS := tests/karpenter_cases tests/property tests/functions tests/docs tests/peers \
    tests/corpus tests/node_groups tests/scale tests/weeks tests/whole
# What imports the types of aws_cdk, whose reading takes three times as long as all the rest.
CDK_SOURCES := infra/aws tests/infra tests/docs tools
LOCKS := requirements package-lock.json pyproject.toml
# Suites in the order in which they begin, two at a time: long ones first. EXTENT=whole runs all inputs
# of suites that run a share of them, the tests marked landing, and each suite whether or not what it
# tests has changed.
ifeq ($(EXTENT),whole)
NOW := -m "not slow"
SUITES := others schedules coverage all-types e2e contract infra hostile opinion reports supply \
    local page-test aws-judges
IF_CHANGED =
else
SUITES := schedules unit e2e contract cases infra types hostile opinion reports others supply \
    types-cdk local page-test
IF_CHANGED = --if-changed $(1)
endif

test: setup-tests  ## Everything a commit must pass (9 minutes at most)
	@began=$$(date +%s); $(MAKE) --jobs 2 $(SUITES) \
	&& echo "all tests passed in $$(( $$(date +%s) - began )) s"

verify-commit:  ## The same and what it leaves out, once for each landing (25 minutes)
	@EXTENT=whole $(MAKE) test

check: setup-tests  ## Format, lint, types, import contracts
	@$(MAKE) --jobs 2 all-types others

types: $(VENV)/.dev
	@$(SUITE) types -- $(BIN)/mypy --no-error-summary $$(git ls-files --cached --others \
	    --exclude-standard 'functions/*.py' 'infra/local/*.py' 'shared/*.py' 'tests/*.py' \
	    | grep -vE '^tests/(infra|docs)/|^tests/simulation/test_simulator.py')

types-cdk: $(VENV)/.dev types
	@$(SUITE) types-cdk $(call IF_CHANGED,$(CDK_SOURCES) $(LOCKS)) -- $(BIN)/mypy --no-error-summary

all-types: $(VENV)/.dev
	@$(SUITE) all-types -- $(BIN)/mypy --no-error-summary

others: $(VENV)/.dev
	@$(SUITE) format -- $(BIN)/ruff format --check --quiet --no-cache .
	@$(SUITE) lint -- $(BIN)/ruff check --quiet --no-cache .
	@$(SUITE) contracts -- $(BIN)/lint-imports --no-cache

supply: $(VENV)/.dev  ## What is installed is what is locked, hash by hash; licences of what is shipped
	@$(SUITE) supply -- $(BIN)/python -m tools.check_installed
	@$(SUITE) licences -- $(BIN)/python -m tools.make_sbom

unit: $(VENV)/.dev  ## Unit tests
	@$(SUITE) unit -- $(PYTEST) tests/unit $(NOW)

cases: $(VENV)/.dev  ## Karpenter's cases, laws, handlers, documents, recorded answers
	@$(SUITE) cases -- $(PYTEST) $(CASES_OF_TESTS) $(NOW)

coverage: $(VENV)/.dev  ## The pure core is covered to the last branch by unit tests, cases and laws
	@$(SUITE) coverage -- $(PYTEST) tests/unit $(CASES_OF_TESTS) -m "not slow" --cov \
	    --cov-report=term:skip-covered

opinion: $(VENV)/.dev  ## A second opinion, on random clusters: would kube-scheduler agree?
	@$(SUITE) opinion -- $(PYTEST) tests/scheduler_oracle $(NOW)

reports: $(VENV)/.dev  ## Public reports of users, played on `dovetail plan`
	@$(SUITE) reports -- $(PYTEST) tests/reports $(NOW)

schedules: $(VENV)/.dev  ## Random schedules of faults, crash points, every safeguard taken away once
	@$(SUITE) schedules -- $(PYTEST) tests/simulation $(NOW)

hostile: $(VENV)/.dev  ## The hostile corpus
	@$(SUITE) hostile -- $(PYTEST) tests/hostile $(NOW)

infra: $(VENV)/.dev  ## Synthesis, template assertions, rights
	@$(SUITE) infra -- $(PYTEST) tests/infra $(NOW)

contract: $(VENV)/.dev  ## Adapters and fakes against the same contracts
	@$(SUITE) contract -- $(PYTEST) tests/contract $(NOW)

local: $(VENV)/.dev  ## The embedded world's own tests, when they or what they test changed
	@$(SUITE) local $(call IF_CHANGED,infra/local tests/local $(LOCKS)) -- $(PYTEST) tests/local $(NOW)

e2e: $(VENV)/.dev  ## One scenario from event to running pod, on the embedded world
	@$(SUITE) e2e -- $(PYTEST) tests/e2e $(NOW)

page-test: $(PAGE)/node_modules/.ready  ## The page's types and its data layer, when the page changed
	@$(SUITE) page $(call IF_CHANGED,$(PAGE) tests/page) -- npm --prefix $(PAGE) test --silent

page-browser: setup-tests page  ## The page in a real browser (Chromium, or CHROMIUM=); PICTURES=DIR keeps what it saw
	@cd $(PAGE) && PYTHON=$(CURDIR)/$(BIN)/python npm run --silent browser

verify: setup-tests  ## The long runs: every scenario, every expectation falsified once
	@$(BIN)/pytest tests/scheduler_oracle -m slow -n 2
	@$(BIN)/pytest tests/hostile -m slow -n 2
	@$(BIN)/pytest tests --ignore tests/scheduler_oracle --ignore tests/hostile -m "slow or e2e"
	@$(MAKE) --no-print-directory page-browser

flaky: setup-tests  ## contract, local, infra, e2e, functions with 20 seeds; goes on where it stopped (SEEDS=, FOLDERS=)
	@$(BIN)/python tools/flaky.py $(NOW) --seeds $(SEEDS) $(FOLDERS)

bench: $(VENV)/.dev  ## Benchmarks: one run, one table, written to docs/evidence/benchmarks.md (10 minutes)
	@$(BIN)/python -m tests.benchmarks.bench --write docs/evidence/benchmarks.md

tenants: $(VENV)/.dev  ## What a hostile tenant costs the others of its cluster; prints tables (3 minutes)
	@$(BIN)/python -m tests.benchmarks.planning.tenants

days: $(VENV)/.dev  ## What a cluster costs over a day under settings of small batches; prints a table (15 minutes)
	@$(BIN)/python -m tests.benchmarks.planning.days

TRACES ?=
PODS ?=
AFTER ?= 30s

weeks: $(VENV)/.dev  ## What traces of days cost, in virtual time: dollars, waits, evictions (TRACES=, PODS=, AFTER=; 15 minutes)
	@$(BIN)/python -m tests.weeks $(TRACES) --after $(AFTER) $(if $(PODS),--pods "$(PODS)") \
	    $(if $(TRACES),,--write docs/evidence/weeks.md)

ROW ?=

scale: $(VENV)/.dev  ## How cost and time grow up to 10,000 nodes and 100,000 pods (ROW= for one row, 15 minutes for all); all rows are written to docs/evidence/scale.md
	@$(BIN)/python -m tests.scale $(if $(ROW),--row $(ROW),--write docs/evidence/scale.md)

faults: $(VENV)/.dev  ## 100,000 random schedules, crash points, mutations, hard days; goes on where it stopped
	@$(BIN)/python -m tests.simulation --schedules 100000 --workers 2 --write docs/evidence/reliability.md

DIR ?=

corpus: $(VENV)/.dev  ## Judge a folder of manifests as its INDEX.md says (DIR=)
	@$(BIN)/python -m tests.corpus "$(DIR)"

CASES ?=

peers: $(VENV)/.dev  ## Beside the real Karpenter: price, nodes, time (CASES=), or what becomes of published NodePools (DIR=)
	@$(BIN)/python -m tests.peers $(if $(CASES),$(CASES),--write docs/evidence/peers.md) $(if $(DIR),--manifests "$(DIR)")

MINOR ?=
KUBELET ?= hollow
CLOUD ?= simulated
RUNS ?= 1
REAL = $(BIN)/python -m tests.real $(if $(MINOR),--minor $(MINOR)) --kubelet $(KUBELET) --cloud $(CLOUD)

TRACE ?= bursts-1
SYSTEMS ?= karpenter dovetail
SECONDS_PLAYED ?= 0

whole: node $(VENV)/.dev  ## A trace on real components, with Karpenter's controller and with Dovetail, as a table (TRACE= RUNS= SYSTEMS= SECONDS_PLAYED= AFTER=; 26 minutes each)
	@$(BIN)/python -m tests.whole $(TRACE) --runs $(RUNS) --systems $(SYSTEMS) --seconds $(SECONDS_PLAYED) --after $(AFTER)

SOME_SCENARIOS = $(filter command line environment,$(origin SCENARIO))

real: node $(VENV)/.dev  ## Scenarios on real Kubernetes components (SCENARIO= MINOR= KUBELET= CLOUD= RUNS=), as a table
	@$(if $(SOME_SCENARIOS),,$(MAKE) --no-print-directory real-judges)
	@$(REAL) --runs $(RUNS) $(if $(SOME_SCENARIOS),--scenario $(SCENARIO))

real-smoke: node $(VENV)/.dev  ## Machines join and pods run on real Kubernetes components (4 minutes once built)
	@$(BIN)/python -m tests.real --only-build
	@$(MAKE) --no-print-directory --jobs 2 --output-sync smoke-inflate smoke-others

smoke-inflate:
	@$(BIN)/pytest tests/real/test_smoke.py -k "attached or inflate"

smoke-others:
	@$(BIN)/pytest tests/real/test_smoke.py tests/real/test_joining.py -k "not inflate and not attached"
	@$(BIN)/pytest tests/real/test_admitted_pods.py -k few

real-judges: node $(VENV)/.dev  ## What kubelet, kubectl, cloud-init, bash, API server and controllers say of user data, documents, definitions and pods
	@$(BIN)/python -m tests.real --only-build
	@$(BIN)/pytest tests/real/test_user_data.py tests/real/test_offers.py tests/real/test_commands.py \
	    tests/real/test_definitions.py tests/real/test_admitted_pods.py -rs

RELEASE ?=
JUDGE ?=
TWICE ?=

aws-judges: node $(VENV)/.dev  ## What AWS's tables, its rule engine and others say of what is deployed, as a table (RELEASE=1 for all, JUDGE=)
	@$(BIN)/python -m tests.infra.judges $(if $(RELEASE),--release) $(JUDGE)

deploy-local: node $(VENV)/.dev  ## The full template into the embedded AWS, every resource looked up, and away
	@$(BIN)/python -m tools.deploy_local

bundle: $(VENV)/.dev  ## The functions' real bundle for Lambda: its size, and whether it is reproducible
	@$(BIN)/python -m tools.make_bundle

sbom: $(VENV)/.dev  ## Bill of materials of what is locked (.build/sbom.json), and its licences
	@$(BIN)/python -m tools.make_sbom

crds: $(VENV)/.dev  ## Make the definitions of the custom resources again from their models
	@$(BIN)/python -m tools.manifests.crds

access: $(VENV)/.dev  ## Make the roles in the cluster again from their table (tools/manifests/access.py)
	@$(BIN)/python -m tools.manifests.access

rights: node $(VENV)/.dev  ## Make the table of rights of docs/security.md again from the templates
	@$(BIN)/python -m tests.infra.policies.rights_table

metrics: $(VENV)/.dev  ## Make the tables of docs/operations/metrics.md again from infra/aws/metrics.py
	@$(BIN)/python -m tools.metrics_table

chart: $(VENV)/.dev  ## Make the Helm chart from infra/cluster (.build/chart)
	@$(BIN)/python -m tools.manifests.chart

release: node $(VENV)/.dev page  ## All that a release consists of (.build/release; TWICE=1 compares two)
	@$(BIN)/python -m tools.release.make_release $(if $(TWICE),--twice)

terraform: node $(VENV)/.dev  ## Make the variables of the Terraform module again from tools/release/options.py
	@$(BIN)/python -m tools.release.terraform

lock-image: node $(VENV)/.dev  ## Lock the packages of the image's base again (needs apt of Debian)
	@$(BIN)/python -m tools.release.image --lock

lock: $(VENV)/.dev  ## Lock the packages again after a change of pyproject.toml
	@$(LOCK) --universal --python-version 3.11 --extra infra --extra local --extra dev \
	    -o requirements/dev.txt pyproject.toml
	@$(LOCK) --universal --python-version 3.11 --extra infra --extra local \
	    -c requirements/dev.txt -o requirements/local.txt pyproject.toml
	@printf 'setuptools\nuv\n' | $(LOCK) --universal --python-version 3.11 \
	    -c requirements/dev.txt -o requirements/build.txt -
	@$(LOCK) --python-version 3.13 --python-platform aarch64-manylinux_2_28 --group functions \
	    -c requirements/dev.txt -o requirements/functions.txt
	@$(LOCK) --python-version 3.13 --python-platform aarch64-manylinux_2_28 --group forwarder \
	    -c requirements/dev.txt -o requirements/forwarder.txt
	@npm install --package-lock-only --silent

LOCK := $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links \
    --custom-compile-command "make lock"

catalog: $(VENV)/.dev  ## Generate the embedded catalogue again after an upgrade of its sources
	@$(BIN)/python tools/generate_catalog.py

clean:  ## Remove everything that was made
	@rm -rf $(VENV) node_modules .build cdk.out .mypy_cache .ruff_cache .pytest_cache .hypothesis
