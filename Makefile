# Everything that a person or a machine does with this checkout. `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
READY := $(VENV)/.ready
SITE := $(VENV)/.site
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable
BENCHMARKS := $(filter-out %/audited_lists.py %/goodreads_files.py %/small_language_model.py,$(wildcard benchmarks/*.py))  # those write files for others
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal -q

unexport PYTHONDONTWRITEBYTECODE  # else every process that a test starts would compile torch and others anew

.DEFAULT_GOAL := help
.PHONY: help setup quickstart check test slow faults bench papers docs pages picture clean

help:  ## what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(CORE): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "recbias needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) .
	touch $(CORE)

$(READY): $(CORE)
	$(INSTALL) '.[dev,all]'
	touch $(READY)

setup: $(READY)  ## a virtual environment in .venv with every extra, in the versions that were tested

quickstart: $(CORE)  ## the first result: installs the core, runs it on generated data, no download
	$(BIN)/recbias run configs/quickstart.yaml

check: $(READY)  ## format, lint, types
	$(BIN)/ruff format --check src tests benchmarks studies docs
	$(BIN)/ruff check src tests benchmarks studies docs
	$(BIN)/mypy

test: $(READY)  ## all tests but the slow ones; with real data where RECBIAS_DATA names a folder of it
	$(PYTEST) -m 'not slow'

slow: $(READY)  ## the slow tests: simulations, trainings on real data, variants
	$(PYTEST) -m slow

faults: $(READY)  ## every case of the fault suites, of which `make test` runs a fixed sample; RECBIAS_FAULTS=N repeats one
	RECBIAS_FAULTS=$${RECBIAS_FAULTS:-all} $(PYTEST) tests/faults

bench: $(READY)  ## speed, as ratios to named libraries in the same process; a line for what is not at hand
	for script in $(BENCHMARKS); do $(BIN)/python $$script || exit 1; done

# Table A.5 depends on the casts, which the thesis read from IMDb in 2023, five people a film: docs/papers/children.md.
papers: $(READY)  ## rows of published tables, on data/ or RECBIAS_DATA; fails if a value differs by more than the tolerances below
	$(BIN)/recbias run papers/children/a3-core --quiet
	$(BIN)/recbias run papers/children/ngim-ml-1m --quiet
	$(BIN)/recbias compare children-a3-core --reference children/a3 --fail-over 0.01
	$(BIN)/recbias compare children-ngim-ml-1m --reference children/a5 \
		--fail-over HIT_BAD_Gender=0.01 --fail-over MRR_BAD_Gender=0.12 --fail-over REC-ST_Gender=0.16

$(SITE): Makefile constraints.txt
	$(PYTHON) -m venv $(VENV)/site
	$(VENV)/site/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt mkdocs-material 'mkdocstrings[python]'
	touch $(SITE)

docs: $(SITE)  ## the documentation site in site/: needs no other package than those of mkdocs
	NO_MKDOCS_2_WARNING=1 $(VENV)/site/bin/mkdocs build --quiet

pages: $(CORE)  ## the generated parts of docs/: plug-in pages, columns, keys, plots
	$(BIN)/python docs/make_plugin_pages.py
	$(BIN)/python docs/make_plots.py

picture: $(READY)  ## docs/report.png, the first screen of the quickstart's report (needs Chromium)
	$(BIN)/python docs/make_picture.py

clean:  ## remove the virtual environment and caches; results stay
	rm -rf $(VENV) .mypy_cache .ruff_cache build site
