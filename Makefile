# numalign: what a developer and CI run. `make help` lists the targets.
#
#   PYTHON=...   the interpreter that .venv is made with (3.11 or newer)
#   V=1          print the commands
#   JOBS=...     processes that tests run in
#   BUILDER=...  buildah or docker, which builds the image
#   BASE=...     what the image is built on, IMAGE@sha256:..., if not what its Dockerfile names

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RELEASED := protos/released.binpb
SPELLED := README.md CHANGELOG.md Makefile mkdocs.yml docs service clients tests protos tools .ci deploy
TYPED := service tests $(patsubst %/,%,$(dir $(wildcard clients/*/__init__.py)))

JOBS ?= 2
IMAGE ?= numalign:$(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
BUILDER ?= $(firstword $(foreach p,buildah docker,$(if $(shell command -v $(p)),$(p))))
V ?= 0
ifeq ($(V),0)
Q := @
PIP_QUIET := --quiet
endif

# The first of the usual names that is new enough; looked for only when it is needed.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; \
	done)

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint lint-python lint-layers lint-protos lint-text docs e2e e2e-deploy e2e-vm fuzz soak crash bench \
	protos release-protos lock image clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Create .venv with the locked packages and this project

demo: $(READY) ## Admit a few pods on a made-up machine, and explain each decision
	$(Q)$(BIN)/numalign demo

test: $(READY) ## Run all tests
	$(Q)$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal $(ARGS)

lint: lint-python lint-layers lint-protos lint-text docs ## Run every check that is not a test

lint-python: $(READY) ## Check style, format and types
	$(Q)$(BIN)/ruff check .
	$(Q)$(BIN)/ruff format --check .
	$(Q)$(BIN)/mypy $(TYPED)

lint-layers: $(READY) ## Check that arrows go speak, keep, decide, never back
	$(Q)$(BIN)/lint-imports

lint-protos: $(READY) ## Check the contract, its compatibility, and the generated code
	$(Q)$(BIN)/buf lint protos
	$(Q)$(BIN)/buf format -d --exit-code protos
	$(Q)if [ -f $(RELEASED) ]; then $(BIN)/buf breaking protos --against $(RELEASED); \
		else echo "no contract is released yet, so nothing can break: $(RELEASED)"; fi
	$(Q)PYTHON=$(BIN)/python tools/protos check

lint-text: $(READY) ## Check spelling
	$(Q)$(BIN)/codespell $(wildcard $(SPELLED))

docs: $(READY) ## Build the documents as a site in dist/docs; what is wrong with them is an error
	$(Q)$(BIN)/mkdocs build --strict

e2e: $(READY) ## Run real containers, Prometheus, a browser and kubectl; needs root, and gets Debian packages
	$(Q)$(BIN)/python -m pytest -q -m e2e tests/e2e tests/observability tests/deploy $(ARGS)

e2e-deploy: $(READY) ## Build the image and run it as the manifests say, in real containers; four minutes
	$(Q)$(BIN)/python -m pytest -q -m e2e tests/e2e/deploy/check_deploy.py tests/e2e/deploy/check_overlays.py $(ARGS)

e2e-vm: $(READY) ## Run real containers in a virtual machine with four NUMA nodes; five minutes
	$(Q)$(BIN)/python -m pytest -q -m e2e tests/e2e/vm/check_containerd.py $(ARGS)

fuzz: $(READY) ## Try made-up inputs on every parser; ARGS="--target quantity --runs 10000"
	$(Q)$(BIN)/python -m tests.fuzz $(ARGS)

soak: $(READY) ## Load five services for long and break them meanwhile; ARGS="--admissions 1000"
	$(Q)$(BIN)/python -m tests.soak $(ARGS)

crash: $(READY) ## Kill services at every place, in pairs and while they recover; ARGS="--seed 7"
	$(Q)$(BIN)/python -m tests.integration.crash $(ARGS)

bench: $(READY) ## Measure how long decisions take; ARGS="five one --against tests/bench/baseline.json"
	$(Q)$(BIN)/python tests/bench $(ARGS)

protos: $(READY) ## Generate the Python code of protos/
	$(Q)PYTHON=$(BIN)/python tools/protos generate

release-protos: $(READY) ## Make the contract the one that later changes must not break
	$(Q)$(BIN)/buf build protos --exclude-source-info -o $(RELEASED)

lock: $(READY) ## Renew requirements.lock from pyproject.toml; UPGRADE=1 takes newer versions
	$(Q)$(BIN)/python -m pip install $(PIP_QUIET) 'uv>=0.9'
	$(Q)$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
		--generate-hashes --custom-compile-command 'make lock' --quiet \
		$(if $(UPGRADE),--upgrade) --output-file requirements.lock
	$(Q)$(BIN)/uv pip compile pyproject.toml --extra agent --extra logind --universal \
		--python-version 3.11 --constraint requirements.lock --no-annotate \
		--generate-hashes --custom-compile-command 'make lock' --quiet \
		$(if $(UPGRADE),--upgrade) --output-file deploy/docker/requirements.lock

# Made anew each time, since a wheel that is left over would be installed as well.
image: $(READY) ## Build the container image; IMAGE=..., BASE=..., IMAGE_FLAGS="--build-arg PIP_INDEX_URL=..."
	$(if $(BUILDER),,$(error Neither buildah nor docker was found; name one with BUILDER=...))
	$(Q)rm -rf dist/image && mkdir -p dist/image
	$(Q)$(BIN)/python -m pip wheel $(PIP_QUIET) --no-deps --no-build-isolation -w dist/image .
	$(Q)$(BIN)/cyclonedx-py requirements deploy/docker/requirements.lock --pyproject pyproject.toml \
		--output-reproducible --of JSON -o dist/image/sbom.cdx.json
	$(Q)$(BUILDER) build $(if $(BASE),--build-arg PYTHON_IMAGE=$(BASE)) $(IMAGE_FLAGS) -t $(IMAGE) -f deploy/docker/Dockerfile .

clean: ## Remove the environment and everything that tools left behind
	$(Q)rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis \
		.import_linter_cache .coverage
	$(Q)find service clients tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(if $(PYTHON),,$(error Python 3.11 or newer was not found; name it with PYTHON=...))
	$(Q)$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	$(Q)$(PYTHON) -m venv $(VENV)

# Done again only when what is to be installed has changed.
$(READY): requirements.lock pyproject.toml | $(BIN)/python
	$(Q)$(BIN)/python -m pip install $(PIP_QUIET) --require-hashes -r requirements.lock
	$(Q)$(BIN)/python -m pip install $(PIP_QUIET) --no-deps --no-build-isolation -e .
	$(Q)touch $@
