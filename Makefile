# Every target sets up .venv by itself; python3.11 (or newer), its venv module, pip and make are enough.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The parties are hundreds of processes: none of them is to compile its modules anew.
unexport PYTHONDONTWRITEBYTECODE
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-header --no-annotate
PROTOS := $(wildcard protos/veiltab/v1/*.proto)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all mutants reliability lint advisories format proto proto-check proto-accept bench bench-compare bench-costs bench-relay bench-scale bench-linked bench-peers docs tutorial-test docs-pictures study-page compose-test console-test client-test lock clean

help: ## this list; durations are those of two cores
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1	\2/p' $(MAKEFILE_LIST) | expand -t 15

# What the parties run.
.venv/ready: requirements.lock requirements-build.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) --no-compile --require-hashes -r requirements.lock -r requirements-build.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# What developers run besides.
.venv/dev: .venv/ready requirements-dev.lock
	$(PIP) --require-hashes -r requirements-dev.lock
	@touch $@

demo: .venv/ready ## the paper's release by processes on this machine: 10 s once .venv is there
	$(BIN)/veiltab demo

# Four workers on two cores, as the parties of many tests wait. What the quick tests write lies in memory, if 4 GiB are
# free there, and waits for no disk; that of test-all is on one.
test: export TMPDIR := $(or $(TMPDIR),$(shell test "$$(df --output=avail -k /dev/shm 2>/dev/null | tail -1)" -gt 4194304 \
  2>/dev/null && echo /dev/shm || echo /tmp))
test: .venv/dev ## everything that is quick: 5 min
	$(BIN)/python -m pytest -m "not long and not compose and not browser" -n 4 --dist loadfile --no-loadscope-reorder

test-all: .venv/dev ## the long tests too: 2 h
	VEILTAB_EXAMPLES=searching $(BIN)/python -m pytest -m "not compose and not browser" -n 2 --dist loadfile

mutants: .venv/dev ## what the tests notice of 150 small changes to the core, one or two a module: 1 h (MUTANTS=--idle: and which tests notice none)
	$(BIN)/python -m tests.mutation $(MUTANTS)

reliability: .venv/dev ## every promise of docs/reliability.md, with its figure: hours
	$(BIN)/python -m tests.reliability

lint: .venv/dev ## style, types, import rules, the protocol and the published one: 1 min
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/buf lint
	$(BIN)/buf breaking --against protos/published.binpb

advisories: .venv/dev ## asks PyPI for known holes in the pinned versions, and says if it could not: 10 s
	$(BIN)/python -m tests.advisories

format: .venv/dev ## mend what ruff can mend: 2 s
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

proto: .venv/dev ## generate the Python of the protocol: 2 s
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m grpc_tools.protoc -I protos \
	  --python_out=protos --pyi_out=protos --grpc_python_out=protos --mypy_grpc_out=quiet:protos $(PROTOS)
	cd protos/veiltab/v1 && rm -f access_pb2_grpc.py* release_pb2_grpc.py*

proto-check: proto ## fails if the generated code is not that of the protocol: 2 s
	@git diff --exit-code -- protos && test -z "$$(git status --porcelain -- protos)"

# lint compares the protocol with protos/published.binpb, the one that parties elsewhere may run: a message, field, enum
# value or RPC may be added, and none changed, renamed or taken away. Renew it at every release. Before 1.0 renew it also
# with a change that is meant to break, in the same commit, and say so in CHANGELOG.md; after 1.0 make a veiltab.v2.
proto-accept: .venv/dev ## make the protocol as it stands the published one: 1 s
	$(BIN)/buf build --exclude-source-info -o protos/published.binpb

bench: .venv/dev ## measures, in ratios to plain numpy and pandas: 5 min
	$(BIN)/python -m benchmarks.kernels
	$(BIN)/python -m benchmarks.release
	$(BIN)/python -m benchmarks.latency
	$(BIN)/python -m benchmarks.reports

bench-compare: .venv/dev ## small releases of BASE=COMMIT and of this one in turns, with ratios: 4 min
	$(BIN)/python -m benchmarks.compare $(BASE)

bench-relay: .venv/dev ## a release of 10^6 people through a relay beside one without, on a quiet machine: 2 min
	$(BIN)/python -m benchmarks.relayed

bench-costs: .venv/dev ## what studies take by this machine's costs, into docs/how-to/scale.md: 1 min
	$(BIN)/python -m benchmarks.costs

bench-scale: .venv/dev ## releases at 10^6 to 10^8 people beside DuckDB; a cluster that loses workers: 15 min, 22 GB
	$(BIN)/python -m benchmarks.scale --picture docs/pictures/scale.svg
	$(BIN)/python -m benchmarks.scale --dask

.venv/linked: .venv/dev benchmarks/linked-requirements.txt
	$(PIP) --require-hashes -r benchmarks/linked-requirements.txt
	@touch $@

.venv-trusted/ready: benchmarks/trusted-requirements.txt
	$(PYTHON) -m venv .venv-trusted
	.venv-trusted/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

bench-linked: .venv/linked .venv-trusted/ready ## linked data beside a trusted curator's; how often intervals hold: 15 min (COVERAGE=--full: some hours)
	$(BIN)/python -m benchmarks.linked --seeds 5 --trusted .venv-trusted/bin/python --picture docs/pictures/linked.svg
	$(BIN)/python -m benchmarks.coverage $(COVERAGE)

.venv-peers/ready: benchmarks/peers-requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

bench-peers: .venv-peers/ready ## measures our oracles beside two published packages: 2 min
	.venv-peers/bin/python -m benchmarks.peers

docs: .venv/dev ## the site, in build/docs; fails at a link to nothing: 10 s
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs

tutorial-test: .venv/dev ## every command of the tutorial and the how-tos, typed in an empty folder: 2 min
	$(BIN)/python -m pytest -v -m '' -n 2 tests/tutorial

study-page: .venv/dev ## the template and the tables of docs/study-file.md, from the keys: 2 s
	$(BIN)/python -m tests.study_page

docs-pictures: .venv/dev ## the pictures of pages that the tutorial shows, taken anew with chromium: 2 min
	$(BIN)/python -m pytest -m '' tests/tutorial -k how_tos --pictures docs/pictures

compose-test: .venv/dev ## the parties in containers; root on Debian needs no engine: 4 min
	$(BIN)/python -m pytest -v -m '' tests/compose $(COMPOSE_OPTIONS)

console-test: .venv/dev ## the console and the report in a real browser, Debian's chromium: 2 min
	$(BIN)/python -m pytest -v -m browser -n 2 --dist loadfile tests/browser

client-test: .venv/dev ## clients in other languages against real services; says what is missing here: 4 min
	$(BIN)/python -m pytest -v -m '' -n 2 --dist loadfile tests/clients

# All extras but demo, whose package is the folder play.
lock: EXTRAS := papers console dask http metrics notify otel postgres tables
lock: .venv/dev ## refresh the pinned versions: 5 s
	$(COMPILE) $(EXTRAS:%=--extra %) --group dev --group docs pyproject.toml -o requirements-dev.lock
	$(COMPILE) --constraint requirements-dev.lock --extra console --extra http --extra researcher --extra tables pyproject.toml \
	  -o requirements.lock
	$(COMPILE) --constraint requirements-dev.lock --group build -o requirements-build.lock
	$(COMPILE) --constraint requirements-dev.lock --group release pyproject.toml -o requirements-release.lock
	$(COMPILE) --constraint requirements-dev.lock --group linked pyproject.toml -o benchmarks/linked-requirements.txt
	$(COMPILE) --constraint requirements-dev.lock --extra console --extra http pyproject.toml -o deploy/compose/locks/party.lock
	for extra in dask metrics notify otel postgres researcher tables; do $(COMPILE) --constraint requirements-dev.lock --extra $$extra \
	  $$(sed -n 's/^\([a-z0-9-]*\)==.*/--no-emit-package \1/p' deploy/compose/locks/party.lock) \
	  pyproject.toml -o deploy/compose/locks/$$extra.lock; done

# The same commit gives the same bytes: hatchling takes the time from the commit.
release: .venv/dev requirements-release.lock ## wheels, source, list of parts and checksums of a release, in build/release: 20 s
	rm -rf build/release build/release-tools
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/hatchling build -d build/release
	cd play && SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) ../$(BIN)/hatchling build -t wheel -d ../build/release
	$(PYTHON) -m venv build/release-tools
	build/release-tools/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-release.lock
	build/release-tools/bin/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --output-reproducible \
	  -o build/release/veiltab.cdx.json
	cp requirements.lock build/release/requirements.lock
	cd build/release && sha256sum * > SHA256SUMS

clean: ## remove what the targets made
	rm -rf .venv .venv-peers .mypy_cache .ruff_cache .pytest_cache .hypothesis
