# Every target sets up .venv by itself; python3.11 (or newer), its venv module, pip and make are enough.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PROTOS := $(wildcard protos/veiltab/v1/*.proto)

.PHONY: demo test test-all lint format proto proto-check bench bench-peers compose-test lock clean

.venv/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: .venv/ready ## a whole release on this machine
	$(BIN)/veiltab demo

test: .venv/ready ## everything that is quick
	$(BIN)/python -m pytest -m "not long" -n 2 --dist loadfile

test-all: .venv/ready ## the long tests too
	VEILTAB_EXAMPLES=searching $(BIN)/python -m pytest -n 2 --dist loadfile

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/buf lint

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

proto: .venv/ready ## generate the Python of the protocol
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m grpc_tools.protoc -I protos \
	  --python_out=protos --pyi_out=protos --grpc_python_out=protos --mypy_grpc_out=quiet:protos $(PROTOS)
	cd protos/veiltab/v1 && rm -f access_pb2_grpc.py* release_pb2_grpc.py*

proto-check: proto ## fails if the generated code is not that of the protocol
	@git diff --exit-code -- protos && test -z "$$(git status --porcelain -- protos)"

bench: .venv/ready ## measures, in ratios to plain numpy and pandas
	$(BIN)/python -m benchmarks.kernels
	$(BIN)/python -m benchmarks.release
	$(BIN)/python -m benchmarks.reports

.venv-peers/ready: benchmarks/peers-requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

bench-peers: .venv-peers/ready ## measures our oracles beside two published packages
	.venv-peers/bin/python -m benchmarks.peers

compose-test: .venv/ready ## the parties in containers; root on Debian needs no engine
	$(BIN)/python -m veiltab.deploy.compose.check $(COMPOSE_OPTIONS)

lock: .venv/ready ## refresh the pinned versions
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate --extra dev --extra dask --extra metrics --extra otel --extra postgres pyproject.toml -o requirements.lock

clean:
	rm -rf .venv .venv-peers .mypy_cache .ruff_cache .pytest_cache .hypothesis
