# Everything that a person or CI does with the project. `make run` and `make test` work on a fresh machine.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
PORT ?= 8501
VENV := .venv
BIN := $(VENV)/bin
export HEADROOM_DATA ?= $(abspath ../shared/data)
# One process must not start a pool of BLAS threads a worker.
export OMP_NUM_THREADS ?= 1

.PHONY: run test unit e2e accept lint types bench clean chromium

run: $(VENV)/.run  ## the app on http://localhost:$(PORT)
	exec $(BIN)/python -m uvicorn deploy.asgi:app --port $(PORT) --log-level warning

test: lint types unit e2e  ## everything that CI checks

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m "not accept and not e2e" tests

e2e: $(VENV)/.dev chromium
	# What failed on a busy machine gets one more chance.
	$(BIN)/python -m pytest -m e2e tests/e2e || $(BIN)/python -m pytest -m e2e --last-failed tests/e2e

accept: $(VENV)/.dev  ## the long proofs; prints the figures that notes quote
	$(BIN)/python -m pytest -n 2 --dist worksteal -m accept -rA tests

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

bench: $(VENV)/.dev chromium  ## writes bench.json
	$(BIN)/python -m tests.bench.run

chromium:
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium; }

$(VENV)/.run: requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -r requirements.txt
	touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.run
	$(BIN)/python -m pip install -q -r requirements-dev.txt
	touch $@

clean:
	rm -rf $(VENV) bench.json
