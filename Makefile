# Every target sets up .venv by itself (python3 >= 3.11 is all it needs) and is quick the second time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup demo web pages pictures test test-fast property soak lint mutants format bench wheel release docs docs-serve clean chaos chaos-spark torture fuzz kafka cluster versions
.DEFAULT_GOAL := help

help: ## show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv with weft and all it needs

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "weft needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Setting up $(VENV) (about 500 MB of packages the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=23'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(READY) ## find card fraud and a fire on an embedded Spark
	@$(BIN)/python examples/demo.py

web: $(READY) ## open the workbench with the examples, in a browser on this machine
	@$(BIN)/weft web examples

pages: $(READY) ## fifty pages of the workbench open at once, in a real browser
	@WEFT_PAGES=50 $(BIN)/python -m pytest -q tests/workbench/test_journeys.py -k pages

test: $(READY) ## run all tests, in two processes
	@$(BIN)/python -m pytest -q -n 2

property: $(READY) ## compare engines with their meaning on new random programs; EXAMPLES=300 chooses how many in each test
	@WEFT_EXAMPLES=$(or $(EXAMPLES),300) $(BIN)/python -m pytest -q -n 2 tests/property

soak: $(READY) ## feed every kind of pattern for long and count the bytes it holds
	@WEFT_SOAK=20 $(BIN)/python -m pytest -q tests/unit/engine/test_soak.py

chaos: $(READY) ## end a simulated process at every step, 100,000 times; HISTORIES=… chooses how often, SEED=… from which stream on
	@WEFT_HISTORIES=$(or $(HISTORIES),100000) WEFT_SEED=$(or $(SEED),0) $(BIN)/python -m pytest -q -n 2 tests/chaos/test_micro_batches.py

chaos-spark: $(READY) ## kill processes of runs on a real Spark, 16 times (KILLS=100; SEED=… where, MINUTES=… at most), and damage 24 files of a checkpoint (DAMAGES=…)
	@WEFT_KILLS=$(or $(KILLS),16) WEFT_SEED=$(or $(SEED),1) WEFT_MINUTES=$(or $(MINUTES),45) WEFT_DAMAGES=$(or $(DAMAGES),24) \
	  $(BIN)/python -m pytest -q -s tests/chaos/test_spark_kills.py tests/chaos/test_damaged_runs.py

torture: $(READY) ## everything at once on a real Spark: kills, full disks, second runs, programs, lanes, clocks, formats, rewritten files; MINUTES=60, SEED=…
	@$(BIN)/python -m tests.chaos.torture --minutes $(or $(MINUTES),60) $(if $(SEED),--seed $(SEED))

kafka: $(READY) ## a real Kafka broker (needs Java and Maven): round trips, restarts and 20 kills under load; KILLS=… chooses how many, ONLY=… which tests, RELEASE=4.1 which Spark
	@$(if $(RELEASE),PYTEST_ADDOPTS='$(if $(ONLY),-k "$(ONLY)")' WEFT_KILLS=$(or $(KILLS),2) $(PYTHON) tests/releases/run.py --kafka $(RELEASE),WEFT_KAFKA=1 WEFT_KILLS=$(or $(KILLS),20) $(BIN)/python -m pytest -q -rs tests/kafka $(if $(ONLY),-k "$(ONLY)"))

cluster: $(READY) ## a Spark master and three workers on this machine: batch and streams, each loses an executor; KIND=local-cluster lets Spark start them
	@WEFT_CLUSTER=$(or $(KIND),three) $(BIN)/python -m pytest -q tests/spark/test_cluster.py

fuzz: $(READY) ## read 20,000 mutated files, compile and run 20,000 mutated programs; FUZZ=… chooses how many, SEED=… which
	@WEFT_FUZZ=$(or $(FUZZ),20000) WEFT_SEED=$(or $(SEED),2) $(BIN)/python -m pytest -q -n 2 tests/fuzz

versions: ## try the supported releases of Spark, each in an environment of its own; RELEASES="3.5 4.0" chooses
	@$(PYTHON) tests/releases/run.py $(RELEASES)

lint: $(READY) ## check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

mutants: $(READY) ## look for lines that no test notices; ARGS="--minutes 30 --only plan/keys"
	@$(BIN)/python tests/mutants/run.py $(ARGS)

format: $(READY) ## put all code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## measure; NAME="…" chooses benchmarks
	@$(BIN)/weft bench $(NAME)

wheel: $(READY) ## wheels in dist/: a pure one, and one with compiled kernels for each Python here (ONLY=3.11 chooses); each is tested
	@$(BIN)/python packaging/wheels.py $(if $(ONLY),--only $(ONLY))

release: $(READY) ## build all wheels, check them, and run the demo from each in a clean environment
	@$(BIN)/python packaging/wheels.py --demo $(if $(ONLY),--only $(ONLY))
	@$(BIN)/python -m twine check --strict dist/*.whl

pictures: $(READY) ## make the pictures of the documents anew: the terminal, and speed against DuckDB, Flink SQL and Spark SQL
	@$(BIN)/python packaging/recording.py
	@$(BIN)/weft bench peers sql --plot docs/speed.svg

test-fast: $(READY) ## the tests without Spark, for the inner loop
	@$(BIN)/python -m pytest -q -n 2 -m "not spark" tests/unit tests/languages tests/golden tests/rules

docs: $(READY) ## the documentation site in build/site; broken links and pages without a place are errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

docs-serve: $(READY) ## the documentation site on this machine, made anew when a page changes
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

clean: ## remove what was built, .venv included
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
