# `make run` and `make test` are all that a newcomer needs; CONTRIBUTING.md explains the rest.
PYTHON ?= python3
BIN := .venv/bin
# Real Kafka leaves its jars here: one download for all runs.
export TIDEGATE_KAFKA_DIR ?= $(CURDIR)/.kafka

.PHONY: run test check lint bench nightly soak lock format clean

# The demo; with BOOTSTRAP=HOST:PORT the sidecar in front of that Kafka.
run: .venv/runtime
	$(BIN)/tidegate $(if $(BOOTSTRAP),run --bootstrap $(BOOTSTRAP),demo)

test: .venv/dev
	$(BIN)/coverage run -m pytest -p no:cacheprovider $(PYTEST)
	$(BIN)/coverage report --fail-under=85

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint
	$(BIN)/pytest -q -n 2 -m "not kafka and not slow" $(PYTEST)

bench: .venv/dev
	$(BIN)/python -m tests.benchmarks $(BENCH)

nightly: .venv/dev
	TIDEGATE_NIGHTLY=1 $(BIN)/pytest -n 2 $(PYTEST)

soak: .venv/dev
	$(BIN)/python -m tests.soak $(SOAK)

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: .venv/dev
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header requirements/runtime.in -o requirements/runtime.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header requirements/dev.in -o requirements/dev.lock

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tidegate needs Python 3.11 or later; name one with PYTHON=")'
	$(PYTHON) -m venv .venv

.venv/runtime: .venv/bin/python requirements/runtime.lock pyproject.toml
	@test -e .venv/dev || $(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/runtime.lock
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/dev: .venv/bin/python requirements/dev.lock pyproject.toml
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.lock
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@ .venv/runtime

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info build dist
