# make read: build the book and read it.   make test: test it.   All other commands: make help.
PYTHON ?= python3
BIN := .venv/bin
export PYTHONPATH := $(CURDIR)
# Kernels, builders and test workers import the same files a hundred times, so keep the compiled ones.
unexport PYTHONDONTWRITEBYTECODE
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help read test check coverage lab html site pdf notebooks wheel bench train real mutants clean

help:
	@echo "make read       build the book, serve it on 127.0.0.1, open it"
	@echo "make test       lint, unit tests, strict build, browser tests (SKIP_BROWSER=1 leaves those out)"
	@echo "make check      lint and the tests of what changed since BASE (default HEAD), in a minute or so"
	@echo "make coverage   list the lines of code that no unit test runs"
	@echo "make lab        open copies of the chapters in JupyterLab"
	@echo "make notebooks  write the chapters as notebooks with outputs, into _build/notebooks"
	@echo "make html       only build the site, into _build/html"
	@echo "make site       the site for a host, into _build/site; SITE=https://… says where it will be, if that is known"
	@echo "make pdf        print the core pages, into _build/pdf"
	@echo "make wheel      pack the package, into _build/wheel"
	@echo "make bench      run the measurements; writes to results/"
	@echo "make train      train the small models and test them beyond their length; resumes where it stopped"
	@echo "make real       fetch a published model (93 MB), measure its pairs and heads again and compare (half an hour or more, 2.5 GB of memory)"
	@echo "make mutants    mutate the modules at random and see whether their tests notice (some minutes)"
	@echo "make clean      remove what was built, but not .venv"

# One environment with three stamps: what readers need, what the tests need in addition, and what the published model needs.
.venv/.reader: requirements.txt constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed; %s is %s. Try make PYTHON=python3.11" % (sys.executable, sys.version.split()[0]))'
	@test -x $(BIN)/python || { echo "Making .venv ..."; $(PYTHON) -m venv .venv; }
	@echo "Installing what the book needs (a few minutes the first time) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -r requirements.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-deps -e .
	@touch $@

.venv/.test: .venv/.reader
	@echo "Installing what the tests need ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@

.venv/.real: .venv/.reader
	@echo "Installing the reader for a published model ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[real]'
	@touch $@

read: .venv/.reader
	@$(BIN)/python -m tools.book read

html: .venv/.reader
	@$(BIN)/python -m tools.book html

site: .venv/.reader
	@$(BIN)/python -m tools.publish $(SITE)

pdf: .venv/.test
	@$(BIN)/python -m tools.pdf $(SITE)

wheel: .venv/.reader
	@$(BIN)/python -m tools.wheel

notebooks: .venv/.reader
	@$(BIN)/python -m tools.book notebooks

lab: .venv/.reader
	@$(BIN)/python -m tools.book lab

check: .venv/.test
	@$(BIN)/python -m tools.check $(BASE)

# Four workers on two processors, because half of the tests wait for a browser. Running the cells uses all processors,
# writing the pages only one, so the tests start meanwhile, and those that open a page wait for it. If a page can't be
# written, everything stops. (nice: the pages go first.)
test: .venv/.test
	@$(BIN)/python -m tools.browser
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo "ruff format . would change files"; exit 1; }
	@$(BIN)/python -m tools.scripts
	@$(BIN)/python -m tools.book execute
	@$(BIN)/python -m tools.book html & pages=$$!; \
	nice $(BIN)/python -m pytest -m "not timing" -n 4 --dist worksteal --durations=10 & tests=$$!; \
	trap "kill $$pages $$tests 2> /dev/null" INT TERM; \
	wait $$pages || { kill $$tests; exit 1; }; \
	wait $$tests
	@$(BIN)/python -m pytest tests/site -m timing

coverage: .venv/.test
	@$(BIN)/python -m pytest tests/test_*.py -n 2 --cov --cov-report=term

bench: .venv/.test
	@$(BIN)/python benchmarks/rotary.py
	@$(BIN)/python benchmarks/base.py
	@$(BIN)/python benchmarks/relatives.py
	@$(BIN)/python benchmarks/site.py

train: .venv/.reader
	@$(BIN)/python benchmarks/trials.py train
	@$(BIN)/python benchmarks/trials.py train --twice
	@$(BIN)/python benchmarks/trials.py choose
	@$(BIN)/python benchmarks/trials.py tune
	@$(BIN)/python benchmarks/trials.py evaluate --part held_out
	@$(BIN)/python benchmarks/trials.py gather
	@$(BIN)/python benchmarks/inside.py

real: .venv/.real
	@$(BIN)/python benchmarks/real.py

mutants: .venv/.test
	@$(BIN)/python benchmarks/mutants.py

clean:
	rm -rf _build
