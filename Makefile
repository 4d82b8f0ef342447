# Every target sets up what it needs by itself: see tools/run.sh.
RUN      := bash tools/run.sh
NO_JVM   := bash tools/run.sh --no-jvm
ROWS     ?= 8000000
EXAMPLES ?= 2000
WORKERS  ?= 2
ENGINE   ?= spark
SEEDS    ?= 3000
FIRST    ?= 0
KILLS    ?= 200
MINUTES  ?= 15

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast oldest lint types layers check conformance bench fuzz simulate kills soak clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1@\2/p' $(MAKEFILE_LIST) | awk -F@ '{ printf "%-20s %s\n", $$1, $$2 }'

setup: ## the virtual environment, the package in it, a check for Java, and an archive of classes for tests and demo
	@$(RUN) python -m tests.class_archive

demo: ## the main job on real records: a change stream, compacted; four feeds, a changelog and its totals; masked rows; joins
	@$(RUN) bash -c 'JDK_JAVA_OPTIONS="$$(python -m tests.class_archive --options)" exec python jobs/demo.py'

test: ## every test with fixed seeds, those without a JVM first, on [WORKERS=2] processes
	@$(RUN) python -m tests.class_archive
	@$(RUN) python -m pytest -n $(WORKERS) $(ARGS)

test-fast: ## only the tests without a JVM
	@$(NO_JVM) python -m pytest -n $(WORKERS) -m "not spark" $(ARGS)

oldest: ## every test on Python 3.10 with the oldest releases that are supported
	@PYTHON="$${PYTHON:-python3.10}" VENV=.venv-oldest CONSTRAINTS=tools/oldest.txt $(RUN) python -m pytest -n $(WORKERS) $(ARGS)

lint: ## ruff
	@$(NO_JVM) ruff check .

types: ## mypy, strict
	@$(NO_JVM) mypy

layers: ## imports only go down
	@$(NO_JVM) lint-imports

check: lint types layers ## lint, types and layers

conformance: ## cases of a file: CASES=file.jsonl [ENGINE=spark or local] [TOPIC=name] [ID=case]
	@test -n "$(CASES)" || { echo "usage: make conformance CASES=file.jsonl [ENGINE=spark or local] [TOPIC=name] [ID=case]" >&2; exit 2; }
	@$(RUN) python -m tests.conformance --cases "$(abspath $(CASES))" --engine "$(ENGINE)" $(if $(TOPIC),--topic "$(TOPIC)") $(if $(ID),--id "$(ID)")

bench: ## speed and memory beside Spark's floors and the peers: [ROWS=8000000]
	@$(RUN) python -m benchmarks --rows $(ROWS) $(ARGS)

fuzz: ## the property tests with many more random examples: [EXAMPLES=2000; of the merge engines ten times as many], SEED=n repeats a run; [WORKERS=2]
	@LAKELSM_FUZZ_EXAMPLES=$(EXAMPLES) $(RUN) python -m pytest -n $(WORKERS) -m property --hypothesis-profile=fuzz \
		$(if $(SEED),--hypothesis-seed=$(SEED)) $(ARGS)

simulate: ## tables under races, crashes and lost answers, on a store in memory: [SEEDS=3000] [FIRST=0], SEED=n alone, PLANTED=1
	@$(NO_JVM) python -m tests.simulation --seeds $(SEEDS) --first $(FIRST) --workers $(WORKERS) $(if $(SEED),--seed $(SEED)) \
		$(if $(PLANTED),--planted) $(ARGS)

kills: ## processes killed at random moments of writes and upkeep, a tenth under Spark: [KILLS=200] [WHERE=both, local, s3 or a URI] [FIRST=0]
	@$(RUN) python -m tests.campaign kills --kills $(KILLS) --first $(FIRST) $(if $(WHERE),--where $(WHERE)) $(ARGS)

soak: ## writers, upkeep and readers on one table for a while: [MINUTES=15] [WHERE=local, s3 or a URI]
	@$(RUN) python -m tests.campaign soak --minutes $(MINUTES) $(if $(WHERE),--where $(WHERE)) $(ARGS)

clean: ## remove what the other targets made
	rm -rf .venv .venv-oldest build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache spark-warehouse metastore_db derby.log bench-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
