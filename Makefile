# tools/run.sh sets up the environment that a target needs.
RUN      := bash tools/run.sh
NO_JVM   := bash tools/run.sh --no-jvm
ROWS     ?= 8000000
EXAMPLES ?= 2000
WORKERS  ?= 2
ENGINE   ?= spark
SEEDS    ?= 3000
FIRST    ?= 0
KILLS    ?= 200
STREAM_KILLS ?= 300
STREAM_MINUTES ?= 30
MINUTES  ?= 15

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast oldest matrix lint types layers check conformance bench fuzz simulate kills kill-streams soak soak-streams clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1@\2/p' $(MAKEFILE_LIST) | awk -F@ '{ printf "%-20s %s\n", $$1, $$2 }'

setup: ## create the virtual environment with the package, find Java, and archive its classes for tests and demo
	@$(RUN) python -m tests.class_archive

demo: ## run the demo on real records: merge on read, changelogs, deletion vectors, lookup joins, live streams
	@$(RUN) bash -c 'JDK_JAVA_OPTIONS="$$(python -m tests.class_archive --options)" exec python jobs/demo.py'

test: ## run all tests with fixed seeds, first those without a JVM, on [WORKERS=2] processes
	@$(RUN) python -m tests.class_archive
	@$(RUN) python -m pytest -n $(WORKERS) $(ARGS)

test-fast: ## run the tests without a JVM
	@$(NO_JVM) python -m pytest -n $(WORKERS) -m "not spark" $(ARGS)

oldest: ## run all tests on Python 3.10 with the oldest supported releases
	@PYTHON="$${PYTHON:-python3.10}" VENV=.venv-oldest CONSTRAINTS=tools/oldest.txt $(RUN) python -m pytest -n $(WORKERS) $(ARGS)

matrix: ## run the package on Spark 4.0 to 4.3 and Python 3.10 to 3.13: [ARGS="--spark 4.3 --python 3.13 --allow-missing"]
	@$(RUN) python tools/matrix.py $(ARGS)

lint: ## run ruff
	@$(NO_JVM) ruff check .

types: ## run mypy in strict mode
	@$(NO_JVM) mypy

layers: ## check the import contracts
	@$(NO_JVM) lint-imports

check: lint types layers ## run lint, types and layers

conformance: ## run the cases of a file: CASES=file.jsonl [ENGINE=spark or local] [TOPIC=name] [ID=case]
	@test -n "$(CASES)" || { echo "usage: make conformance CASES=file.jsonl [ENGINE=spark or local] [TOPIC=name] [ID=case]" >&2; exit 2; }
	@$(RUN) python -m tests.conformance --cases "$(abspath $(CASES))" --engine "$(ENGINE)" $(if $(TOPIC),--topic "$(TOPIC)") $(if $(ID),--id "$(ID)")

bench: ## measure speed and memory beside plain Spark and the peers: [ROWS=8000000]
	@$(RUN) python -m benchmarks --rows $(ROWS) $(ARGS)

fuzz: ## run the property tests with more examples: [EXAMPLES=2000, ten times as many for merge engines]; SEED=n repeats a run; [WORKERS=2]
	@LAKELSM_FUZZ_EXAMPLES=$(EXAMPLES) $(RUN) python -m pytest -n $(WORKERS) -m property --hypothesis-profile=fuzz \
		$(if $(SEED),--hypothesis-seed=$(SEED)) $(ARGS)

simulate: ## simulate races, crashes and lost answers on a store in memory: [SEEDS=3000] [FIRST=0]; SEED=n runs one seed; PLANTED=1
	@$(NO_JVM) python -m tests.simulation --seeds $(SEEDS) --first $(FIRST) --workers $(WORKERS) $(if $(SEED),--seed $(SEED)) \
		$(if $(PLANTED),--planted) $(ARGS)

kills: ## kill processes at random moments of writes and upkeep, a tenth of them on Spark: [KILLS=200] [WHERE=both, local, s3 or a URI] [FIRST=0]
	@$(RUN) python -m tests.campaign kills --kills $(KILLS) --first $(FIRST) $(if $(WHERE),--where $(WHERE)) $(ARGS)

kill-streams: ## kill streams at the steps of their micro-batches: [STREAM_KILLS=300] [WHERE=both, local, s3 or a URI] [FIRST=0]
	@$(RUN) python -m tests.campaign streams --kills $(STREAM_KILLS) --first $(FIRST) $(if $(WHERE),--where $(WHERE)) $(ARGS)

soak: ## run writers, upkeep and readers on one table: [MINUTES=15] [WHERE=local, s3 or a URI]
	@$(RUN) python -m tests.campaign soak --minutes $(MINUTES) $(if $(WHERE),--where $(WHERE)) $(ARGS)

soak-streams: ## run two streams into a table and one out of it, with upkeep and a new column: [STREAM_MINUTES=30] [WHERE=local, s3 or a URI]
	@$(RUN) python -m tests.campaign soak-streams --minutes $(STREAM_MINUTES) $(if $(WHERE),--where $(WHERE)) $(ARGS)

clean: ## remove the files of the other targets
	rm -rf .venv .venv-oldest build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache spark-warehouse metastore_db derby.log bench-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
