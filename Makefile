# Everything one can do here, each by one command. `make` alone lists them.
# Paths are relative on purpose: the clone may lie under a path with spaces.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: faults sigterm soak recovery simulate ablate exhaust help demo up test check crash crash-matrix restore-drill mutants fresh-machine mission bench schemas locks doctor clean bootstrap

ARGS ?=
N ?= 20
SEED ?= 1
ABLATE ?=
WORKERS ?= 2
SEEDS ?=
FROM ?= 0
FAULTS ?=
MINUTES ?= 10
STATES ?= 60000
BIN := .venv/bin

help: ## list these targets
	@echo "make <target>    (ARGS=... is passed on)"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

bootstrap: # .venv with the locked packages; does nothing when it is up to date
	@tools/bootstrap.sh run

demo: bootstrap ## turn a brief into a finished video ad, and show how  (ARGS="--brief FILE --json --out DIR")
	@$(BIN)/longtake demo $(ARGS)

up: bootstrap ## run the service here until Ctrl-C, with its own Postgres and NATS
	@$(BIN)/longtake up $(ARGS)

doctor: bootstrap ## explain what on this machine may stand in the way
	@$(BIN)/longtake doctor $(ARGS)

test: ## run the test suite  (ARGS="tests/unit -k money", WORKERS=4)
	@tools/bootstrap.sh run test
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

check: ## format, lint and strict types, as CI wants them
	@tools/bootstrap.sh run test check
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

crash: bootstrap ## kill service and servers at N seeds and check what is left  (N=20 SEED=1 ABLATE=reconcile|receipt)
	@$(BIN)/python tools/crash.py --runs $(N) --seed $(SEED) $(if $(ABLATE),--ablate $(ABLATE)) $(ARGS)

crash-matrix: bootstrap ## kill, stop and cut off a service at named points  (CELLS=suite|all POINT= ACTION= HIT=)
	@$(BIN)/python tools/crash_matrix.py --cells $(or $(CELLS),suite) $(if $(POINT),--point $(POINT)) $(if $(ACTION),--action $(ACTION)) $(if $(HIT),--hit $(HIT)) $(ARGS)

restore-drill: bootstrap ## lose 500 runs to a restore, twice, and three times with one thing left out  (RUNS=500)
	@LONGTAKE_RESTORE_RUNS=$(or $(RUNS),500) $(BIN)/python -m pytest -q -s -n 0 tests/acceptance/test_restore.py $(ARGS)

mutants: ## break decide and evolve in one line at a time; each must turn the tests red
	@tools/bootstrap.sh run test
	@$(BIN)/python tools/mutants.py $(ARGS)

fresh-machine: ## make the demo on a bare Debian, as root and as a user  (needs root and debootstrap)
	@tools/fresh_machine.sh $(ARGS)

faults: ## hurt a service of separate processes and judge it  (FAULTS=N07,N11 SEEDS=3; none: all)
	@tools/bootstrap.sh run test
	@$(BIN)/python tools/faults.py --faults "$(FAULTS)" --seeds $(or $(SEEDS),3) $(ARGS)

soak: ## load and faults for a while  (MINUTES=10 SEED=1)
	@tools/bootstrap.sh run test
	@$(BIN)/python tools/soak.py --minutes $(MINUTES) --seed $(SEED) $(ARGS)

sigterm: ## tell workers to stop at random moments  (N=200 SEED=1)
	@tools/bootstrap.sh run test
	@$(BIN)/python tools/sigterm.py --times $(if $(filter file,$(origin N)),200,$(N)) --seed $(SEED) $(ARGS)

recovery: ## from a kill to the next decision, printed
	@tools/bootstrap.sh run test
	@$(BIN)/python tools/recovery.py --seed $(SEED) $(ARGS)

simulate: ## play seeds of the simulated world  (SEEDS=20000 FROM=0 ARGS="--keep")
	@tools/bootstrap.sh run test
	@PYTHONHASHSEED=0 $(BIN)/python tools/simulate.py --seeds $(or $(SEEDS),1000) --from $(FROM) $(ARGS)

ablate: ## take the defences away one by one; each must be missed  (ARGS="--all --seeds 1000")
	@tools/bootstrap.sh run test
	@PYTHONHASHSEED=0 $(BIN)/python tools/ablate.py $(ARGS)

exhaust: ## walk through every state of the small worlds  (STATES=60000 a walk, ARGS="--round crash")
	@tools/bootstrap.sh run test
	@PYTHONHASHSEED=0 $(BIN)/python tools/exhaust.py --states $(STATES) $(ARGS)

mission: ## which mission item is proved by which test
	@tools/bootstrap.sh run test
	@$(BIN)/python tools/mission.py $(ARGS)

bench: bootstrap ## steps per second, and the ratio to the bare limit
	@$(BIN)/python bench/steps.py $(ARGS)

schemas: bootstrap ## write the JSON Schemas from the code
	@$(BIN)/longtake schemas export $(ARGS)

locks: ## resolve requirements/ again  (needs uv)
	@tools/lock.sh

clean: ## remove .venv, caches and outputs; data in .longtake stays
	@rm -rf .venv .cache dist build out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
