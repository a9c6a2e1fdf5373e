# All commands needed for development. Everything is installed into .venv first.
# The browser tests of the report also need Debian's packages chromium and chromium-driver;
# without them these tests are skipped.

PYTHON ?= python3
VENV := .venv
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)
CHECKED := src tests paper examples docs/skeletons $(wildcard docs/*.py)
BAYESRING_DATA ?= $(wildcard ../shared/data)
export BAYESRING_DATA := $(abspath $(BAYESRING_DATA))
ifeq ($(BAYESRING_DATA),)
unexport BAYESRING_DATA
endif

.PHONY: help setup demo examples test test-slow same-bits lint types format bench scan-model bench-check bench-against accuracy reproduce reliability clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(VENV)/.installed  ## create .venv with everything needed for development

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --group dev --editable .
	@touch $@

demo: setup  ## complete a hyperspectral scene from 1 % of its cells; pictures in demo/
	$(BIN)/bayesring demo

examples: setup  ## run the examples and the code on the pages; write output and pictures into docs
	$(BIN)/python examples/render.py
	$(BIN)/python docs/pages.py

lint: setup  ## style, spelling, direction of imports
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/codespell
	$(BIN)/lint-imports --no-logo

types: setup  ## static types
	$(BIN)/mypy

test: lint types  ## lint, types and tests, under 10 minutes
	$(BIN)/python -m pytest -n 2 --durations=20 -m "not slow and not ci"

.PHONY: test-ci
test-ci: setup  ## what continuous integration runs besides: more statistics, kills; under 40 minutes
	$(BIN)/python -m pytest -n 2 -m "ci and not slow"

test-slow: setup  ## the statistical tests at full length
	$(BIN)/python -m pytest -n 2 -m slow -v

.PHONY: docs test-oldest test-wheel kills mutants

kills: setup  ## kill fits at 200 random moments and see that they go on with the same bits; about 8 minutes
	$(BIN)/python -m tests.checkpoint.kills --kills $(or $(KILLS),200)

# make mutants ONLY=checkpoint JOBS=1     a part of them: pattern of file or name, mutants at a time
mutants: setup  ## plant more than 600 bugs, one at a time, and see that tests notice each; under an hour
	$(BIN)/python -m tests.mutants.run --jobs $(or $(JOBS),2) $(if $(ONLY),--only '$(ONLY)')

.PHONY: fuzz soak

fuzz: setup  ## generated and damaged input, CASES=100000 by default: refused in a sentence, or works
	$(BIN)/python -m tests.fuzz.run --cases $(or $(CASES),100000) --seed $(or $(SEED),1)

soak: setup  ## fit, save, load, predict and complete for an hour, or MINUTES=n: memory and files stay as they are
	$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),60)

docs: setup  ## build the site into build/site, warnings as errors, and check its links, code and examples
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --clean
	$(BIN)/python -m pytest -m "not slow" tests/test_site.py tests/test_pages.py tests/test_docstrings.py tests/test_documents.py tests/test_readme.py tests/test_examples.py tests/test_skeletons.py

# Tests that need neither a browser nor peers; the others do not depend on versions any more than these do.
OLDEST_TESTS ?= tests/contract tests/kernels tests/sampling/test_conditionals.py $(wildcard tests/test_*.py)
test-oldest:  ## the tests with the oldest dependencies that pyproject.toml allows, in build/oldest
	$(PYTHON) -m venv --clear build/oldest
	build/oldest/$(SCRIPTS)/python -m pip install --quiet --upgrade pip
	build/oldest/$(SCRIPTS)/python -m pip install --quiet --constraint .ci/oldest.txt --group test '.[data,files,plot]'
	build/oldest/$(SCRIPTS)/python -m pytest -n 2 -m "not slow and not ci" $(OLDEST_TESTS)

test-wheel:  ## build a wheel, install it without extras, and fit a ring, in build/wheel
	rm -rf build/dist
	$(PYTHON) -m venv --clear build/wheel
	build/wheel/$(SCRIPTS)/python -m pip install --quiet --upgrade pip
	build/wheel/$(SCRIPTS)/python -m pip wheel --quiet --no-deps --wheel-dir build/dist .
	build/wheel/$(SCRIPTS)/python -m pip install --quiet build/dist/*.whl
	cd build && wheel/$(SCRIPTS)/python -W error ../.ci/smoke.py
	build/wheel/$(SCRIPTS)/bayesring --help > build/help.txt

same-bits: setup  ## compare the bits of every kind of fit with those of the recorded commit
	$(BIN)/python tests/same_bits/compare.py

format: setup  ## fix style and format the code
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

$(VENV)/.peers: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group paper --editable .
	@touch $@

bench: $(VENV)/.peers  ## measure speed and memory against goals and other programs, into docs/speed.md; QUICK=1 only prints, LARGE=1 does more
	$(BIN)/python -m paper.bench $(if $(QUICK),--quick,--out paper/results/bench.json --page docs/speed.md) $(if $(LARGE),--large)

scan-model: setup  ## measure scans on clusters of 1, 2 and 4 processes anew, and fit the model of docs/scaling.md; ROWS="100000 1000000"
	rm -f paper/results/cluster.csv
	for workers in 1 2 4; do DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False $(BIN)/python -m paper.bench.cluster --workers $$workers \
		--rows $(or $(ROWS),100000 300000 1000000) --scans 3 --delay 0 0.1 --bandwidth inf 2e7 --store --json > /dev/null || exit 1; done
	$(BIN)/python -m paper.bench.scan_model

bench-check: setup  ## fail if a scan is 30 % slower than the committed figure
	$(BIN)/python -m paper.bench --check paper/results/bench.json

bench-against: setup  ## compare scans with another commit, in turn: COMMIT=..., by default the one of same-bits
	$(BIN)/python -m paper.bench.against $(if $(COMMIT),--commit $(COMMIT)) $(if $(ONLY),--only '$(ONLY)') $(if $(LARGE),--memory 1000000 --memory 10000000)

accuracy: $(VENV)/.peers  ## the defaults on six real data sets next to the paper and SMURFF, into README and docs/accuracy.md
	$(BIN)/python -m paper.accuracy_tables

# make peers ONLY='Enron,Birmingham RM 40'   some data sets only
.PHONY: peers curves
peers: $(VENV)/.peers  ## SMURFF's best number of factors and cap on eight sets, for accuracy and bench; continues where it stopped
	$(BIN)/python -m paper.smurff_search '$(ONLY)'

# make curves ONLY='Enron' BUSY=1            CPU seconds, on a machine with other work
curves: $(VENV)/.peers  ## error against seconds of SMURFF, Gibbs and online EM, into docs/images/curves.png; part of bench
	$(BIN)/python -m paper.bench.error_curves $(if $(BUSY),--busy) '$(ONLY)'

# make reproduce QUICK=1 OUT=folder       a smoke test of every path, into folder/quick
# make reproduce WHAT=binary ONLY='Enron/TTWOPT DBLP' JOBS=1
# make reproduce ONLY=Enron AGAIN=1        recomputes existing cells too
WHAT ?= all
OUT ?= $(if $(QUICK),results,docs)
RESULTS ?= $(if $(filter docs,$(OUT)),paper/results,$(OUT))
reproduce: $(VENV)/.peers  ## the paper's tables and figures next to ours, into docs; continues where it stopped
	$(BIN)/python -m paper.reproduce $(WHAT) --out $(OUT) --results $(RESULTS) $(if $(QUICK),--quick) $(if $(AGAIN),--again) $(if $(JOBS),--jobs $(JOBS)) $(foreach each,$(ONLY),--only '$(each)')

.PHONY: rank-from-truth
rank-from-truth: setup  ## chains of the rank study that start at the truth, with 90 % missing, into docs/reproduction.md
	$(BIN)/python -m paper.rank_from_truth

reliability: setup  ## measured coverage of intervals on real and simulated data, into docs/reliability.md; goes on where it stopped
	$(BIN)/python -m paper.reliability $(if $(QUICK),--quick) $(if $(AGAIN),--again)

# make gaps ONLY='Birmingham/*' MASKS=3    some tables and patterns, some masks
.PHONY: gaps
gaps: setup  ## coverage where real tables miss days, hours or ends, into docs/reliability.md; continues where it stopped
	$(BIN)/python -m paper.gap_coverage $(if $(ONLY),--only '$(ONLY)') $(if $(MASKS),--masks $(MASKS))
	$(BIN)/python -m paper.reliability --page

# make kinds ONLY='NYC*' AGAIN=1           some of the figures only, measured anew
.PHONY: kinds
kinds: setup  ## counts, outliers, ratings and links against normal noise and the trivial, into docs/kinds-of-values.md; continues where it stopped
	$(BIN)/python -m paper.kind_figures $(if $(ONLY),--only '$(ONLY)') $(if $(AGAIN),--again)

# make arena ONLY='Birmingham*/bayesring NYC*/additive'   some cells only; AGAIN=1 recomputes them
.PHONY: arena
arena: $(VENV)/.peers  ## published figures, trivial methods and the defaults, into docs/arena.md; continues where it stopped
	$(BIN)/python -m paper.arena $(if $(QUICK),--quick build/arena) $(if $(AGAIN),--again) $(foreach each,$(ONLY),--only '$(each)')

.PHONY: side-information
side-information: $(VENV)/.peers  ## what features and shared modes are worth, into docs/side-information.md; continues where it stopped
	$(BIN)/python -m paper.side_information $(if $(AGAIN),--again) $(if $(ONLY),--only '$(ONLY)')

clean:  ## remove what the targets above created
	rm -rf $(VENV) build demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
