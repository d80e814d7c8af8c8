# Bare `make` lists the verbs. ARGS="..." goes to pytest or the command behind a verb.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN   := .venv/bin
STAMP := .venv/.stamp
ARGS  ?=

.PHONY: help setup java demo examples test test-all lint types format bench bench-peers clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with the pinned dependencies; see that Java is there
	@scripts/ensure_java.sh || echo "setup: done, but without Java (see above)" >&2

demo: setup ## a join of three streams, start to end
	$(BIN)/watersmeet demo $(ARGS)

examples: $(STAMP) ## make the data of examples/ and run each job there
	$(BIN)/python examples/make_data.py
	@for job in examples/*.sql; do printf '\n%s\n' "$$job"; $(BIN)/watersmeet run --overwrite "$$job" || exit 1; done

test: $(STAMP) java ## the tests, without the long ones (under 10 minutes)
	$(BIN)/python -m pytest -n 2 --dist loadgroup $(ARGS)

test-all: $(STAMP) java ## all tests, the long ones too
	$(BIN)/python -m pytest -n 2 --dist loadgroup --long -o faulthandler_timeout=3600 $(ARGS)

lint: $(STAMP) ## ruff, its formatter as a check, and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(STAMP) ## mypy --strict
	$(BIN)/mypy --strict watersmeet tests

format: $(STAMP) ## format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## the benchmarks; one of them: make bench ARGS="spark --quick"
	@for name in $(if $(ARGS),'$(ARGS)',engine spark); do $(BIN)/watersmeet bench $$name || exit 1; done

bench-peers: .venv-flink/.stamp ## make .venv-flink: Flink, for the benchmark against it

clean: ## remove caches and build leftovers (.venv stays)
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist *.egg-info
	find . -path ./.venv -prune -o -path ./.git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml constraints.txt
	@scripts/setup_venv.sh $@

.venv-flink/.stamp: scripts/setup_flink.sh
	@scripts/setup_flink.sh $@

java:
	@scripts/ensure_java.sh
