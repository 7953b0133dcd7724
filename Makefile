# Two commands do everything on a fresh machine with python3 and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := fa,mo,cluster,tensorboard,docs,test,dev
INSTALLED := $(VENV)/.installed

# Runs of `make reproduce` go to a folder of their own, so that committed results stay as they are.
PROFILE ?= reduced
WORKERS ?= 2
RESULTS ?= reproduced

.PHONY: help demo docs reproduce results test check coq lint bench clean
help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## /\1\t/' | expand -t 12

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]'
	touch $@

demo: $(INSTALLED)  ## the theory checks, a small experiment, then report/index.html
	$(BIN)/python -m experiments.demo

reproduce: $(INSTALLED)  ## every experiment (PROFILE=reduced or paper, WORKERS=2), then the report
	$(BIN)/python -m experiments.reproduce --profile $(PROFILE) --workers $(WORKERS) --results $(RESULTS)

results: $(INSTALLED)  ## figures, verdicts and pages from the tables in results/
	$(BIN)/python -m experiments.pages
	$(BIN)/python -m proofs_checks --markdown docs/claims.md

docs: $(INSTALLED)  ## the documentation as a site, site/index.html; warnings and dead links fail
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo wrote site/index.html

test: $(INSTALLED)  ## the whole test suite
	$(BIN)/python -m pytest --numprocesses auto

check: $(INSTALLED) lint  ## ruff, mypy and the fast tests
	$(BIN)/python -m pytest --numprocesses auto -m "not slow"

coq: $(INSTALLED)  ## the theorems for all finite sizes, checked by Coq
	$(BIN)/python -m proofs_checks.coq

lint: $(INSTALLED)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(INSTALLED)  ## speed, as ratios measured in one run
	$(BIN)/python -m benchmarks

clean:  ## remove what was generated, except runs: environment, report, caches
	rm -rf $(VENV) report site counterexamples build dist .coverage .benchmarks *.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
